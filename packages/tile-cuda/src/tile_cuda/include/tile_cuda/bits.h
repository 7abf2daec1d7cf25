// Values and registers as the words that instructions work on.
#pragma once
#include "tile_cuda/types.h"

namespace tile {

// The bits of `x` read as another type of the same size.
template <class T, class S>
TILE_DEVICE T bitcast(const S& x) {
  static_assert(sizeof(T) == sizeof(S), "tile::bitcast: the types differ in size");
  T result;
  memcpy(&result, &x, sizeof(T));
  return result;
}

// The `i`th 32-bit word from `p` on, which is the start of a word.
template <class T>
TILE_DEVICE u32 word(const T* p, int i) {
  return reinterpret_cast<const u32*>(p)[i];
}

template <class T>
TILE_DEVICE void set_word(T* p, int i, u32 w) {
  reinterpret_cast<u32*>(p)[i] = w;
}

// The address of shared memory as load and store instructions take it.
TILE_DEVICE u32 shared_address(const void* p) {
  return static_cast<u32>(__cvta_generic_to_shared(p));
}

// An unsigned integer of so many bytes.
template <int BYTES>
struct unsigned_of;
template <>
struct unsigned_of<1> {
  using type = u8;
};
template <>
struct unsigned_of<2> {
  using type = u16;
};
template <>
struct unsigned_of<4> {
  using type = u32;
};
template <>
struct unsigned_of<8> {
  using type = u64;
};
template <class T>
using bits_of = typename unsigned_of<sizeof(T)>::type;

}  // namespace tile
