// What `tile::cast<T>(x)` is made of: see tile_conversions.h.
#pragma once
#include "tile_hip/narrow_units.h"

namespace tile {

// float64 to float32 such that rounding once more gives what one rounding would: inexact
// results are rounded toward zero and get an odd last bit.
TILE_DEVICE float to_odd_float(double x) {
  const float nearest = static_cast<float>(x);
  const double back = static_cast<double>(nearest);
  const bool went_out = __builtin_fabs(back) > __builtin_fabs(x);
  const u32 toward_zero = bits_as<u32>(nearest) - static_cast<u32>(went_out);
  return bits_as<float>(toward_zero | static_cast<u32>(back != x && x == x));
}
// An integer as a float32 that rounds on as the integer would.
TILE_DEVICE float to_odd_float(u64 x) {
  const bool is_long = x >> 48 != 0;
  const u64 kept = is_long ? x >> 16 | static_cast<u64>((x & 0xffff) != 0) : x;
  return to_odd_float(static_cast<double>(kept)) * (is_long ? 65536.0f : 1.0f);
}
TILE_DEVICE float to_odd_float(i64 x) {
  const float size = to_odd_float(x < 0 ? 0 - static_cast<u64>(x) : static_cast<u64>(x));
  return x < 0 ? -size : size;
}

// Exact, but for double and long integers.
template <class S>
TILE_DEVICE float to_float(S x) {
  if constexpr (is_narrow<S>) {
    return from_narrow(x);
  } else {
    return static_cast<float>(x);
  }
}

// Smallest and largest integers of a type, which floats are compared with.
template <class T>
constexpr T least_integer = is_signed<T> ? static_cast<T>(T(1) << (8 * sizeof(T) - 1)) : T(0);
template <class T>
constexpr T largest_integer = static_cast<T>(~least_integer<T>);

// Truncated and saturated; NaN is 0. The instructions do just that, which C++ cannot say: to its
// optimizer such a conversion means nothing. It is kept from knowing what is converted; the
// instruction itself must be the compiler's, which knows how far from others it has to stand.
template <class T, class F>
TILE_DEVICE T truncated(F x) {
  constexpr F end = static_cast<F>(largest_integer<T> / 2 + 1) * 2;  // above the largest
  const F least = static_cast<F>(least_integer<T>);
  if (x != x) return T(0);
  return x >= end ? largest_integer<T> : x <= least ? least_integer<T> : static_cast<T>(x);
}
#if TILE_ON_GPU
#define TILE_TRUNCATED(T, F)                \
  template <>                               \
  TILE_DEVICE T truncated<T, F>(F x) {      \
    asm("" : "+v"(x));                      \
    T result = static_cast<T>(x);           \
    asm("" : "+v"(result));                 \
    return result;                          \
  }
TILE_TRUNCATED(i32, float)
TILE_TRUNCATED(u32, float)
TILE_TRUNCATED(i32, double)
TILE_TRUNCATED(u32, double)
#undef TILE_TRUNCATED
#endif

template <class S>
TILE_DEVICE half_t to_half(S x) {
  if constexpr (same<S, double>) {
    return static_cast<half_t>(x);
  } else if constexpr (is_half_number<S> && !unit_of<S>::decodes) {
    return decode_half(x);
  } else if constexpr (is_int4<S>) {
    return to_half(static_cast<i16>(static_cast<int>(x)));
  } else if constexpr (!is_float<S> && !same<S, bool> && sizeof(S) <= 2) {  // one instruction
    return static_cast<half_t>(static_cast<typename when_else<is_signed<S>, i16, u16>::type>(x));
  } else {  // integers that float32 does not hold are beyond float16 either way
    return static_cast<half_t>(to_float(x));
  }
}

// To nearest even; NaN keeps its sign and its upper bits.
TILE_DEVICE bfloat16_t rounded_bfloat16(float x) {
#if defined(__gfx950__)
  return bits_as<bfloat16_t>(static_cast<__bf16>(x));
#else
  const u32 bits = bits_as<u32>(x);
  const u32 rounded = bits + 0x7fffu + (bits >> 16 & 1);
  return {static_cast<u16>((x != x ? bits | 0x400000u : rounded) >> 16)};
#endif
}
template <class S>
TILE_DEVICE bfloat16_t to_bfloat16(S x) {
  if constexpr (same<S, double> || same<S, i32> || same<S, u32>) {
    return rounded_bfloat16(to_odd_float(static_cast<double>(x)));
  } else if constexpr (same<S, i64> || same<S, u64>) {
    return rounded_bfloat16(to_odd_float(x));
  } else {
    return rounded_bfloat16(to_float(x));
  }
}

}  // namespace tile

#include "tile_conversions.h"
