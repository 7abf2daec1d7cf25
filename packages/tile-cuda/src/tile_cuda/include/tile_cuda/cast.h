// Conversions: `tile::cast<T>(x)` for all pairs of element types.
//
// Float to integer truncates, saturates and takes NaN to 0; integers wrap; a number is true
// unless it is zero; every rounding is once, to nearest even; narrow floats saturate.
#pragma once
#include "tile_cuda/narrow.h"

namespace tile {

template <class T>
constexpr bool is_half = same<T, half_t> || same<T, bfloat16_t>;
template <class T>
constexpr bool is_float = same<T, float> || same<T, double> || is_half<T> || is_narrow<T>;
template <class T>
constexpr bool is_int4 = same<T, i4> || same<T, u4>;
template <class T>
constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);

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

// A saturated 32-bit integer in a type of at most 32 bits.
template <class T>
TILE_DEVICE T narrowed(int x) {
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(x);
  } else {
    constexpr int low = is_signed<T> ? -(1 << (8 * sizeof(T) - 1)) : 0;
    constexpr int high = low + (1 << (8 * sizeof(T))) - 1;
    return static_cast<T>(::max(low, ::min(high, x)));
  }
}

template <class T, class S>
TILE_DEVICE T float_to_integer(S x) {
  if constexpr (same<S, double>) {
    const bool is_nan = x != x;
    if constexpr (sizeof(T) == 8) {
      const T value = is_signed<T> ? static_cast<T>(__double2ll_rz(x))
                                   : static_cast<T>(__double2ull_rz(x));
      return is_nan ? T(0) : value;
    } else if constexpr (same<T, u32>) {
      return is_nan ? 0u : __double2uint_rz(x);
    } else {
      return narrowed<T>(is_nan ? 0 : __double2int_rz(x));
    }
  } else {
    const float wide = to_float(x);
    if constexpr (sizeof(T) == 8) {  // these take NaN to 2^63
      const T value = is_signed<T> ? static_cast<T>(__float2ll_rz(wide))
                                   : static_cast<T>(__float2ull_rz(wide));
      return wide != wide ? T(0) : value;
    } else if constexpr (same<T, u32>) {
      return __float2uint_rz(wide);
    } else {
      return narrowed<T>(__float2int_rz(wide));
    }
  }
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

template <class T, bool SATURATE, class S>
TILE_DEVICE T convert(S x) {
  if constexpr (same<T, S>) {
    return x;
  } else if constexpr (is_int4<S> && same<T, half_t>) {
    return to_half(x);
  } else if constexpr (is_int4<S>) {
    return convert<T, SATURATE>(static_cast<int>(x));
  } else if constexpr (is_int4<T>) {
    constexpr int low = same<T, i4> ? -8 : 0;
    if constexpr (is_float<S>) {
      return T(::max(low, ::min(low + 15, float_to_integer<int>(x))));
    } else {
      return T(static_cast<int>(x));
    }
  } else if constexpr (same<T, bool>) {
    if constexpr (is_half<S> || is_narrow<S>) {
      return to_float(x) != 0.0f;
    } else {
      return x != S(0);
    }
  } else if constexpr (is_narrow<T>) {
    if constexpr (same<S, double> || same<S, i32> || same<S, u32>) {
      return to_narrow<T, SATURATE>(to_odd_float(static_cast<double>(x)));
    } else {
      return to_narrow<T, SATURATE>(to_float(x));
    }
  } else if constexpr (same<T, half_t>) {
    return to_half(x);
  } else if constexpr (same<T, bfloat16_t>) {
    return to_bfloat16(x);
  } else if constexpr (is_half<S> || is_narrow<S>) {
    if constexpr (is_float<T>) {
      return static_cast<T>(to_float(x));
    } else {
      return float_to_integer<T>(x);
    }
  } else if constexpr (is_float<S> && !is_float<T>) {
    return float_to_integer<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

template <class T, class S>
TILE_DEVICE T cast(S x) {
  return convert<T, true>(x);
}

// As `cast`, but narrow floats overflow to infinity or NaN, whichever the type has.
template <class T, class S>
TILE_DEVICE T cast_unsaturated(S x) {
  return convert<T, false>(x);
}

}  // namespace tile
