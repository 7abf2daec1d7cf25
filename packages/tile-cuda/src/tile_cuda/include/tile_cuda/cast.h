// What `tile::cast<T>(x)` is made of: see tile_conversions.h.
#pragma once
#include "tile_cuda/narrow.h"

namespace tile {

// float64 to float32 such that rounding once more gives what one rounding would: inexact
// results get an odd last bit.
TILE_DEVICE float to_odd_float(double x) {
  const float toward_zero = __double2float_rz(x);
  const bool inexact = static_cast<double>(toward_zero) != x && x == x;
  return bitcast<float>(bitcast<u32>(toward_zero) | static_cast<u32>(inexact));
}

// Exact, but for double.
template <class S>
TILE_DEVICE float to_float(S x) {
  if constexpr (same<S, half_t>) {
    return __half2float(x);
  } else if constexpr (same<S, bfloat16_t>) {
    return bitcast<float>(static_cast<u32>(bitcast<u16>(x)) << 16);
  } else if constexpr (is_narrow<S>) {
    return decode(x);
  } else {
    return static_cast<float>(x);
  }
}

// Truncated and saturated; NaN is 0. The instructions with 64 bits on either side do something
// else with NaN.
template <class T, class F>
TILE_DEVICE T truncated(F x);
#define TILE_TRUNCATED(T, F, INSTRUCTION)     \
  template <>                                 \
  TILE_DEVICE T truncated<T, F>(F x) {        \
    const T value = INSTRUCTION(x);           \
    return x != x ? T(0) : value;             \
  }
TILE_TRUNCATED(i64, float, __float2ll_rz)
TILE_TRUNCATED(u64, float, __float2ull_rz)
TILE_TRUNCATED(i32, double, __double2int_rz)
TILE_TRUNCATED(u32, double, __double2uint_rz)
TILE_TRUNCATED(i64, double, __double2ll_rz)
TILE_TRUNCATED(u64, double, __double2ull_rz)
#undef TILE_TRUNCATED
template <>
TILE_DEVICE i32 truncated<i32, float>(float x) {
  return __float2int_rz(x);
}
template <>
TILE_DEVICE u32 truncated<u32, float>(float x) {
  return __float2uint_rz(x);
}

TILE_DEVICE u32 bits_below_1024(u8 x) { return x; }
TILE_DEVICE u32 bits_below_1024(i8 x) { return static_cast<u8>(x); }
TILE_DEVICE u32 bits_below_1024(i4 x) { return x.bits & 15; }
TILE_DEVICE u32 bits_below_1024(u4 x) { return x.bits & 15; }

template <class S>
TILE_DEVICE half_t to_half(S x) {
  if constexpr (same<S, double>) {
    return __double2half(x);
  } else if constexpr (same<S, e4m3> || same<S, e5m2>) {
    return decode_half(x);
  } else if constexpr (same<S, i8> || same<S, u8> || is_int4<S>) {
    // The bits become the last ones of 1024, where they count single units: no slow conversion.
    constexpr u32 sign = same<S, i8> ? 0x80 : same<S, i4> ? 8 : 0;
    const u32 biased = 0x6400u | (bits_below_1024(x) ^ sign);
    const u16 offset = static_cast<u16>(0x6400u + sign);
    return __hsub(bitcast<half_t>(static_cast<u16>(biased)), bitcast<half_t>(offset));
  } else {  // integers that float32 does not hold are beyond float16 either way
    return __float2half_rn(to_float(x));
  }
}

template <class S>
TILE_DEVICE bfloat16_t to_bfloat16(S x) {
  if constexpr (same<S, double> || same<S, i32> || same<S, u32>) {
    return __float2bfloat16_rn(to_odd_float(static_cast<double>(x)));
  } else if constexpr (same<S, i64>) {
    return __ll2bfloat16_rn(x);
  } else if constexpr (same<S, u64>) {
    return __ull2bfloat16_rn(x);
  } else {
    return __float2bfloat16_rn(to_float(x));
  }
}

}  // namespace tile

#include "tile_conversions.h"
