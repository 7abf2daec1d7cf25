// Mathematical functions. Those of 16 bits and fewer compute in float32 and round once.
#pragma once
#include "tile_hip/math/single_angles.h"
#include "tile_hip/math/single_exponential.h"
#include "tile_hip/math/single_logarithm.h"
#include "tile_hip/math/single_other.h"
#include "tile_math_overloads.h"

namespace tile {

TILE_MATH1(exp, single::exp, wide::exp)
TILE_MATH1(exp2, single::exp2, wide::exp2)
TILE_MATH1(exp10, single::exp10, wide::exp10)
TILE_MATH1(expm1, single::expm1, wide::expm1)
TILE_MATH1(log, single::log, wide::log)
TILE_MATH1(log2, single::log2, wide::log2)
TILE_MATH1(log10, single::log10, wide::log10)
TILE_MATH1(log1p, single::log1p, wide::log1p)
TILE_MATH1(sqrt, __builtin_sqrtf, __builtin_sqrt)
TILE_MATH1(rsqrt, single::rsqrt, wide::rsqrt)
TILE_MATH1(sigmoid, single::sigmoid, wide::sigmoid)
TILE_MATH1(tanh, single::tanh, wide::tanh)
TILE_MATH1(sin, single::sin, wide::sin)
TILE_MATH1(cos, single::cos, wide::cos)
TILE_MATH1(tan, single::tan, wide::tan)
TILE_MATH1(asin, single::asin, wide::asin)
TILE_MATH1(acos, single::acos, wide::acos)
TILE_MATH1(atan, single::atan, wide::atan)
TILE_MATH1(sinh, single::sinh, wide::sinh)
TILE_MATH1(cosh, single::cosh, wide::cosh)
TILE_MATH1(asinh, single::asinh, wide::asinh)
TILE_MATH1(acosh, single::acosh, wide::acosh)
TILE_MATH1(atanh, single::atanh, wide::atanh)
TILE_MATH1(erf, single::erf, wide::erf)
TILE_MATH1(floor, __builtin_floorf, __builtin_floor)
TILE_MATH1(ceil, __builtin_ceilf, __builtin_ceil)
TILE_MATH1(trunc, __builtin_truncf, __builtin_trunc)
TILE_MATH1(round, __builtin_rintf, __builtin_rint)  // halves to even
TILE_MATH1(nearbyint, __builtin_rintf, __builtin_rint)
TILE_MATH2(pow, single::pow, wide::pow)
TILE_MATH2(fmod, single::fmod, wide::fmod)
TILE_MATH2(hypot, single::hypot, wide::hypot)
TILE_MATH2(copysign, __builtin_copysignf, __builtin_copysign)
TILE_MATH2(atan2, single::atan2, wide::atan2)

// Fast forms: the units for special functions, and what it takes to bring arguments there.
// float64 has none.
TILE_MATH1(fast_exp, single::fast_exp, wide::exp)
TILE_MATH1(fast_exp2, single::exp2, wide::exp2)
TILE_MATH1(fast_exp10, single::fast_exp10, wide::exp10)
TILE_MATH1(fast_log, single::fast_log, wide::log)
TILE_MATH1(fast_log2, single::fast_log2, wide::log2)
TILE_MATH1(fast_log10, single::fast_log10, wide::log10)
TILE_MATH1(fast_tan, single::fast_tan, wide::tan)
TILE_MATH1(fast_cos, single::fast_cos, wide::cos)
TILE_MATH1(fast_sin, single::fast_sin, wide::sin)
TILE_MATH1(fast_rcp, single::reciprocal, wide::reciprocal)
#undef TILE_MATH1
#undef TILE_MATH2

// Quotient rounded toward zero, and the remainder that goes with it.
template <class T>
TILE_DEVICE T truncdiv(T a, T b) {
  if constexpr (same<T, double>) {
    return __builtin_trunc(a / b);
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_truncf(to_float(a) / to_float(b)));
  } else {
    return whole_quotient(a, b);
  }
}
template <class T>
TILE_DEVICE T truncmod(T a, T b) {
  if constexpr (is_float<T>) {
    return fmod(a, b);
  } else {
    return whole_remainder(a, b);
  }
}

// a + b such that rounding once more gives what one rounding would.
TILE_DEVICE double to_odd_sum(double a, double b) {
  const split sum = exact_sum(a, b);
  const u64 bits = bits_as<u64>(sum.high);
  if (!(size_of(sum.low) > 0.0)) return sum.high;
  const bool is_beyond = is_negative(sum.high) != is_negative(sum.low);
  return bits_as<double>((bits - static_cast<u64>(is_beyond)) | 1);
}

// a * b + c, rounded once: products of 16 bits are exact in float64, and their sums are rounded
// to odd on the way.
TILE_DEVICE float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TILE_DEVICE double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
#if TILE_ON_GPU
TILE_DEVICE half_t fma(half_t a, half_t b, half_t c) { return __builtin_fmaf16(a, b, c); }
#endif
template <class T>
TILE_DEVICE T fma(T a, T b, T c) {
  const double product = static_cast<double>(to_float(a)) * static_cast<double>(to_float(b));
  return cast<T>(to_odd_sum(product, static_cast<double>(to_float(c))));
}

// x * 2^n
TILE_DEVICE float ldexp(float x, int n) { return times_power(x, n); }
TILE_DEVICE double ldexp(double x, int n) { return times_power(x, n); }
template <class T>
TILE_DEVICE T ldexp(T x, int n) {
  return cast<T>(times_power(static_cast<double>(to_float(x)), n));
}

// By the bits: no assumption about floats can fold them away.
TILE_DEVICE u64 magnitude_bits(double x) { return bits_as<u64>(x) & 0x7fffffffffffffffull; }
TILE_DEVICE u32 magnitude_bits(float x) { return bits_as<u32>(x) & 0x7fffffffu; }
TILE_DEVICE bool isnan(double x) { return magnitude_bits(x) > 0x7ff0000000000000ull; }
TILE_DEVICE bool isinf(double x) { return magnitude_bits(x) == 0x7ff0000000000000ull; }
TILE_DEVICE bool isfinite(double x) { return magnitude_bits(x) < 0x7ff0000000000000ull; }
template <class T>
TILE_DEVICE bool isnan(T x) {
  return magnitude_bits(to_float(x)) > 0x7f800000u;
}
template <class T>
TILE_DEVICE bool isinf(T x) {
  return magnitude_bits(to_float(x)) == 0x7f800000u;
}
template <class T>
TILE_DEVICE bool isfinite(T x) {
  return magnitude_bits(to_float(x)) < 0x7f800000u;
}

// The neighbour of x on the way to y, in the type's own steps.
template <class T>
TILE_DEVICE T nextafter(T x, T y) {
  using U = bits_of<T>;
  using F = typename when_else<same<T, double>, double, float>::type;
  const auto value = [](T v) {
    if constexpr (same<T, double>) return v;
    else return to_float(v);
  };
  const F from = value(x), to = value(y);
  if (from != from || to != to) return cast<T>(TILE_NAN);
  if (from == to) return y;
  if (from == F(0)) {  // the smallest number, with the sign of y
    const U sign = to < F(0) ? bits_as<U>(cast<T>(-1.0f)) ^ bits_as<U>(cast<T>(1.0f)) : U(0);
    return bits_as<T>(static_cast<U>(sign | 1));
  }
  const bool grows = (to > from) == (from > F(0));
  return bits_as<T>(static_cast<U>(bits_as<U>(x) + (grows ? 1 : -1)));
}

}  // namespace tile
