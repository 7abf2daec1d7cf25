// Conversions: `tile::cast<T>(x)` for all pairs of element types.
//
// Float to integer truncates, saturates and takes NaN to 0; integers wrap; a number is true
// unless it is zero; every rounding is once, to nearest even; narrow floats saturate.
#pragma once
#include "tile_sim/narrow.h"
#include "tile_sim/pointers.h"

namespace tile {

template <class T>
constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);
template <>
inline constexpr bool is_signed<i4> = true;
template <>
inline constexpr bool is_signed<u4> = false;

// A float of any kind, exactly; an integer as the nearest double.
template <class S>
TILE_HOST double to_double(S x) {
  if constexpr (is_narrow<S>) {
    return decode(x);
  } else if constexpr (is_half<S>) {
    return static_cast<float>(x);
  } else {
    return static_cast<double>(x);
  }
}

// float64 to float32 such that rounding once more gives what one rounding would: inexact
// results get an odd last bit.
TILE_HOST float to_odd_float(double x) {
  const float nearest = static_cast<float>(x);
  const double back = nearest;
  if (back == x || x != x) return nearest;
  u32 bits = bits_as<u32>(nearest);
  const bool is_too_long = x < 0 ? back < x : back > x;
  if (is_too_long) bits -= 1;  // toward zero, from infinity to the largest number too
  return bits_as<float>(bits | 1);
}

// 64-bit integers to float32, likewise.
template <class S>
TILE_HOST float integer_to_odd_float(S x) {
  const bool is_negative = x < S(0);
  u64 magnitude = is_negative ? u64(0) - (u64)x : (u64)x;
  const int excess = 40 - __builtin_clzll(magnitude | 1);  // bits that a float does not hold
  if (excess > 0) {
    const bool is_inexact = magnitude & ((1ull << excess) - 1);
    magnitude = magnitude >> excess << excess | u64(is_inexact) << excess;
  }
  const float value = static_cast<float>(magnitude);
  return is_negative ? -value : value;
}

template <class T>
TILE_HOST T float_to_integer(double x) {
  constexpr int bits = 8 * sizeof(T) - is_signed<T>;
  // Powers of two: exact in double, one above the largest T.
  constexpr double beyond = bits == 64 ? 18446744073709551616.0 : double(1ull << (bits & 63));
  constexpr T largest = is_signed<T> ? T((1ull << (bits & 63)) - 1) : T(~T(0));
  if (x != x) return T(0);
  if (x >= beyond) return largest;
  if constexpr (is_signed<T>) {
    if (x < -beyond) return T(-largest - 1);
    return static_cast<T>(static_cast<i64>(x));
  } else {
    if (x <= -1.0) return T(0);
    return static_cast<T>(x);
  }
}

template <class S>
TILE_HOST half_t to_half(S x) {
  half_t result;
  if constexpr (same<S, double>) {
    result.bits = float_to_half_bits(to_odd_float(x));
  } else if constexpr (is_float<S>) {
    result.bits = float_to_half_bits(static_cast<float>(to_double(x)));
  } else {
    // Integers that float32 does not hold are beyond float16 either way.
    result.bits = float_to_half_bits(static_cast<float>(x));
  }
  return result;
}

template <class S>
TILE_HOST bfloat16_t to_bfloat16(S x) {
  bfloat16_t result;
  if constexpr (same<S, double>) {
    result.bits = float_to_bfloat16_bits(to_odd_float(x));
  } else if constexpr (is_float<S>) {
    result.bits = float_to_bfloat16_bits(static_cast<float>(to_double(x)));
  } else {
    result.bits = float_to_bfloat16_bits(integer_to_odd_float(x));
  }
  return result;
}

template <class T, bool SATURATE, class S>
TILE_HOST T convert(S x) {
  if constexpr (same<T, S>) {
    return x;
  } else if constexpr (is_int4<S>) {
    return convert<T, SATURATE>(static_cast<int>(x));
  } else if constexpr (is_int4<T> && is_float<S>) {
    const int value = float_to_integer<int>(to_double(x));
    constexpr int low = is_signed<T> ? -8 : 0;
    return T(value < low ? low : value > low + 15 ? low + 15 : value);
  } else if constexpr (is_int4<T>) {
    return T(static_cast<int>(x));
  } else if constexpr (same<T, bool>) {
    if constexpr (is_float<S>) return to_double(x) != 0.0;
    else return x != S(0);
  } else if constexpr (is_narrow<T>) {
    T result;
    if constexpr (is_float<S>) encode(result, to_double(x), SATURATE);
    else encode(result, integer_to_odd_float(x), SATURATE);
    return result;
  } else if constexpr (same<T, half_t>) {
    return to_half(x);
  } else if constexpr (same<T, bfloat16_t>) {
    return to_bfloat16(x);
  } else if constexpr (is_float<S> && !is_float<T>) {
    return float_to_integer<T>(to_double(x));
  } else if constexpr (is_half<S> || is_narrow<S>) {
    return static_cast<T>(to_double(x));
  } else {
    return static_cast<T>(x);
  }
}

template <class T, class S>
TILE_HOST T cast(const S& x) {
  return convert<T, true>(value_of(x));
}

// As `cast`, but narrow floats overflow to infinity or NaN, whichever the type has.
template <class T, class S>
TILE_HOST T cast_unsaturated(const S& x) {
  return convert<T, false>(value_of(x));
}

// The bits of `x` read as another type of the same size.
template <class T, class S>
TILE_HOST T bitcast(const S& x) {
  return bits_as<T>(value_of(x));
}

}  // namespace tile
