// Element types, and what decorates kernels.
#pragma once

// Forced, so that a kernel compiled with -O1 has no calls left but those into the runtime.
#define TILE_HOST inline __attribute__((always_inline))
#define TILE_INLINE TILE_HOST
#define TILE_UNROLL
#define TILE_NO_UNROLL
#define TILE_NAN __builtin_nanf("")
#define TILE_INFINITY __builtin_inff()

using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = __INT64_TYPE__;
using uint64_t = __UINT64_TYPE__;

#include "tile_types.h"

// Lanes of a warp: as many as the machine has that the kernel was printed for.
#ifndef TILE_WARP_SIZE
#define TILE_WARP_SIZE 32
#endif

namespace tile {

using uptr = __UINTPTR_TYPE__;

template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

template <class T>
struct without_const {
  using type = T;
};
template <class T>
struct without_const<const T> {
  using type = T;
};

// The bits of `x` read as another type of the same size.
template <class T, class S>
TILE_HOST T bits_as(const S& x) {
  static_assert(sizeof(T) == sizeof(S), "the types differ in size");
  T result;
  __builtin_memcpy(&result, &x, sizeof(T));
  return result;
}

float half_bits_to_float(u16 bits);
u16 float_to_half_bits(float x);
u16 float_to_bfloat16_bits(float x);

}  // namespace tile

// float16. Operators compute in float32 and round once, which gives the correctly rounded result.
struct half_t {
  unsigned short bits;
  half_t() = default;
  TILE_HOST explicit half_t(float x) : bits(tile::float_to_half_bits(x)) {}
  TILE_HOST explicit operator float() const { return tile::half_bits_to_float(bits); }
};

// bfloat16: the upper half of a float32.
struct bfloat16_t {
  unsigned short bits;
  bfloat16_t() = default;
  TILE_HOST explicit bfloat16_t(float x) : bits(tile::float_to_bfloat16_bits(x)) {}
  TILE_HOST explicit operator float() const { return tile::bits_as<float>((unsigned)bits << 16); }
};

#define TSIM_FLOAT16_OPERATORS(T)                                                        \
  TILE_HOST T operator+(T a, T b) { return T(float(a) + float(b)); }                     \
  TILE_HOST T operator-(T a, T b) { return T(float(a) - float(b)); }                     \
  TILE_HOST T operator*(T a, T b) { return T(float(a) * float(b)); }                     \
  TILE_HOST T operator/(T a, T b) { return T(float(a) / float(b)); }                     \
  TILE_HOST T operator-(T a) { T r = a; r.bits ^= 0x8000; return r; }                    \
  TILE_HOST T operator+(T a) { return a; }                                               \
  TILE_HOST bool operator<(T a, T b) { return float(a) < float(b); }                     \
  TILE_HOST bool operator>(T a, T b) { return float(a) > float(b); }                     \
  TILE_HOST bool operator<=(T a, T b) { return float(a) <= float(b); }                   \
  TILE_HOST bool operator>=(T a, T b) { return float(a) >= float(b); }                   \
  TILE_HOST bool operator==(T a, T b) { return float(a) == float(b); }                   \
  TILE_HOST bool operator!=(T a, T b) { return float(a) != float(b); }
TSIM_FLOAT16_OPERATORS(half_t)
TSIM_FLOAT16_OPERATORS(bfloat16_t)
#undef TSIM_FLOAT16_OPERATORS

namespace tile {

// Announced before C++ has it by the compilers of some machines.
#if defined(__FLT16_MAX__) && (defined(__x86_64__) || defined(__clang__) || __GNUC__ >= 13)
TILE_HOST float half_bits_to_float(u16 bits) { return (float)bits_as<_Float16>(bits); }
TILE_HOST u16 float_to_half_bits(float x) { return bits_as<u16>((_Float16)x); }
#else
extern "C" float tsim_half_to_float(u16 bits);
extern "C" u16 tsim_float_to_half(float x);
TILE_HOST float half_bits_to_float(u16 bits) { return tsim_half_to_float(bits); }
TILE_HOST u16 float_to_half_bits(float x) { return tsim_float_to_half(x); }
#endif

// Rounds to nearest even.
TILE_HOST u16 float_to_bfloat16_bits(float x) {
  const u32 bits = bits_as<u32>(x);
  if (x != x) return (u16)(bits >> 16 | 0x40);
  return (u16)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

template <class T>
constexpr bool is_narrow = same<T, e8m0>;
template <int E, int M, int B, codes C>
constexpr bool is_narrow<narrow_float<E, M, B, C>> = true;

template <class T>
constexpr bool is_int4 = same<T, i4> || same<T, u4>;
template <class T>
constexpr bool is_half = same<T, half_t> || same<T, bfloat16_t>;
template <class T>
constexpr bool is_float = same<T, float> || same<T, double> || is_half<T> || is_narrow<T>;

}  // namespace tile
