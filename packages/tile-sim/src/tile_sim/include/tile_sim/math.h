// Mathematical functions. Those of 16 bits and fewer compute in float32 and round once.
#pragma once
#include "tile_sim/arithmetic.h"

namespace tile {

TILE_HOST float rsqrt_of(float x) { return 1.0f / __builtin_sqrtf(x); }
TILE_HOST double rsqrt_of(double x) { return 1.0 / __builtin_sqrt(x); }
TILE_HOST float exp10_of(float x) { return static_cast<float>(__builtin_pow(10.0, x)); }
TILE_HOST double exp10_of(double x) { return __builtin_pow(10.0, x); }
TILE_HOST float reciprocal(float x) { return 1.0f / x; }
TILE_HOST double reciprocal(double x) { return 1.0 / x; }
TILE_HOST float logistic(float x) { return 1.0f / (1.0f + __builtin_expf(-x)); }
TILE_HOST double logistic(double x) { return 1.0 / (1.0 + __builtin_exp(-x)); }

#define TSIM_MATH1(NAME, F32, F64)                            \
  TILE_HOST float NAME(float x) { return F32(x); }            \
  TILE_HOST double NAME(double x) { return F64(x); }          \
  template <class T>                                          \
  TILE_HOST T NAME(T x) {                                     \
    return cast<T>(NAME(to_float(x)));                        \
  }
#define TSIM_MATH2(NAME, F32, F64)                            \
  TILE_HOST float NAME(float x, float y) { return F32(x, y); }   \
  TILE_HOST double NAME(double x, double y) { return F64(x, y); } \
  template <class T>                                          \
  TILE_HOST T NAME(T x, T y) {                                \
    return cast<T>(NAME(to_float(x), to_float(y)));           \
  }

TSIM_MATH1(exp, __builtin_expf, __builtin_exp)
TSIM_MATH1(exp2, __builtin_exp2f, __builtin_exp2)
TSIM_MATH1(exp10, exp10_of, exp10_of)
TSIM_MATH1(expm1, __builtin_expm1f, __builtin_expm1)
TSIM_MATH1(log, __builtin_logf, __builtin_log)
TSIM_MATH1(log2, __builtin_log2f, __builtin_log2)
TSIM_MATH1(log10, __builtin_log10f, __builtin_log10)
TSIM_MATH1(log1p, __builtin_log1pf, __builtin_log1p)
TSIM_MATH1(sqrt, __builtin_sqrtf, __builtin_sqrt)
TSIM_MATH1(rsqrt, rsqrt_of, rsqrt_of)
TSIM_MATH1(sigmoid, logistic, logistic)
TSIM_MATH1(tanh, __builtin_tanhf, __builtin_tanh)
TSIM_MATH1(sin, __builtin_sinf, __builtin_sin)
TSIM_MATH1(cos, __builtin_cosf, __builtin_cos)
TSIM_MATH1(tan, __builtin_tanf, __builtin_tan)
TSIM_MATH1(asin, __builtin_asinf, __builtin_asin)
TSIM_MATH1(acos, __builtin_acosf, __builtin_acos)
TSIM_MATH1(atan, __builtin_atanf, __builtin_atan)
TSIM_MATH1(sinh, __builtin_sinhf, __builtin_sinh)
TSIM_MATH1(cosh, __builtin_coshf, __builtin_cosh)
TSIM_MATH1(asinh, __builtin_asinhf, __builtin_asinh)
TSIM_MATH1(acosh, __builtin_acoshf, __builtin_acosh)
TSIM_MATH1(atanh, __builtin_atanhf, __builtin_atanh)
TSIM_MATH1(erf, __builtin_erff, __builtin_erf)
TSIM_MATH1(floor, __builtin_floorf, __builtin_floor)
TSIM_MATH1(ceil, __builtin_ceilf, __builtin_ceil)
TSIM_MATH1(trunc, __builtin_truncf, __builtin_trunc)
TSIM_MATH1(round, __builtin_rintf, __builtin_rint)  // halves to even
TSIM_MATH1(nearbyint, __builtin_rintf, __builtin_rint)
TSIM_MATH2(pow, __builtin_powf, __builtin_pow)
TSIM_MATH2(fmod, __builtin_fmodf, __builtin_fmod)
TSIM_MATH2(hypot, __builtin_hypotf, __builtin_hypot)
TSIM_MATH2(copysign, __builtin_copysignf, __builtin_copysign)
TSIM_MATH2(atan2, __builtin_atan2f, __builtin_atan2)

// Fast forms are as exact as the others here.
TSIM_MATH1(fast_exp, __builtin_expf, __builtin_exp)
TSIM_MATH1(fast_exp2, __builtin_exp2f, __builtin_exp2)
TSIM_MATH1(fast_exp10, exp10_of, exp10_of)
TSIM_MATH1(fast_log, __builtin_logf, __builtin_log)
TSIM_MATH1(fast_log2, __builtin_log2f, __builtin_log2)
TSIM_MATH1(fast_log10, __builtin_log10f, __builtin_log10)
TSIM_MATH1(fast_tan, __builtin_tanf, __builtin_tan)
TSIM_MATH1(fast_cos, __builtin_cosf, __builtin_cos)
TSIM_MATH1(fast_sin, __builtin_sinf, __builtin_sin)
TSIM_MATH1(fast_rcp, reciprocal, reciprocal)
#undef TSIM_MATH1
#undef TSIM_MATH2

// a * b + c, rounded once: products of 16 bits are exact in float64, and their sums are rounded
// to odd on the way.
TILE_HOST float fma(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TILE_HOST double fma(double a, double b, double c) { return __builtin_fma(a, b, c); }
template <class T>
TILE_HOST T fma(T a, T b, T c) {
  return cast<T>(__builtin_fma(to_double(a), to_double(b), to_double(c)));
}

// x * 2^n
TILE_HOST float ldexp(float x, int n) { return __builtin_ldexpf(x, n); }
TILE_HOST double ldexp(double x, int n) { return __builtin_ldexp(x, n); }
template <class T>
TILE_HOST T ldexp(T x, int n) {
  return cast<T>(__builtin_ldexp(to_double(x), n));
}

template <class T>
TILE_HOST bool isnan(T x) { return __builtin_isnan(to_double(x)); }
template <class T>
TILE_HOST bool isinf(T x) { return __builtin_isinf(to_double(x)); }
template <class T>
TILE_HOST bool isfinite(T x) { return __builtin_isfinite(to_double(x)); }

// The neighbour of x on the way to y, in the type's own steps.
TILE_HOST float nextafter(float x, float y) { return __builtin_nextafterf(x, y); }
TILE_HOST double nextafter(double x, double y) { return __builtin_nextafter(x, y); }
template <class T>
TILE_HOST T nextafter(T x, T y) {
  const float from = to_float(x), to = to_float(y);
  if (from != from || to != to) return cast<T>(TILE_NAN);
  if (from == to) return y;
  T result = x;
  if (from == 0.0f) {  // the smallest number, with the sign of y
    const T sign = cast<T>(to < 0.0f ? -1.0f : 1.0f);
    result.bits = (sign.bits ^ cast<T>(1.0f).bits) | 1;
    return result;
  }
  const bool grows = (to > from) == (from > 0.0f);
  result.bits += grows ? 1 : -1;
  return result;
}

}  // namespace tile
