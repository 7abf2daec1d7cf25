// Element types, and the bits of values.
#pragma once
#include "tile_hip/target.h"
#include "tile_types.h"

#ifndef TILE_HALF  // tests on other machines bring their own
using half_t = _Float16;
#endif

namespace tile {

// Its arithmetic computes in float32 and rounds once: see arithmetic.h.
struct bfloat16 {
  u16 bits;
  TILE_DEVICE explicit operator float() const {
    const u32 wide = static_cast<u32>(bits) << 16;
    float value;
    __builtin_memcpy(&value, &wide, 4);
    return value;
  }
};

}  // namespace tile
using bfloat16_t = tile::bfloat16;

#include "tile_type_traits.h"

namespace tile {

template <class T>
struct without_const {
  using type = T;
};
template <class T>
struct without_const<const T> {
  using type = T;
};

// An unsigned integer of so many bytes, and one that any memory may be read as.
template <int BYTES>
struct unsigned_of;
#define TILE_UNSIGNED(BYTES, T)                                \
  template <>                                                  \
  struct unsigned_of<BYTES> {                                  \
    using type = T;                                            \
    typedef T __attribute__((may_alias)) word;                 \
  };
TILE_UNSIGNED(1, u8)
TILE_UNSIGNED(2, u16)
TILE_UNSIGNED(4, u32)
TILE_UNSIGNED(8, u64)
#undef TILE_UNSIGNED
template <class T>
using bits_of = typename unsigned_of<sizeof(T)>::type;

// The bits of `x` read as another type of the same size.
template <class T, class S>
TILE_DEVICE T bits_as(const S& x) {
  static_assert(sizeof(T) == sizeof(S), "tile::bitcast: the types differ in size");
  T result;
  __builtin_memcpy(&result, &x, sizeof(T));
  return result;
}

}  // namespace tile
