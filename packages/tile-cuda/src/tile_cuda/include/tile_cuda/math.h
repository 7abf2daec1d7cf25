// Mathematical functions. Those of 16 bits and fewer compute in float32 and round once.
#pragma once
#include "tile_cuda/arithmetic.h"
#include "tile_math_overloads.h"

namespace tile {

// One instruction, 2 ulp; subnormal results become zero.
TILE_DEVICE float exp2_instruction(float x) {
  float y;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TILE_DEVICE float rcp_instruction(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}
TILE_DEVICE double reciprocal(double x) { return 1.0 / x; }
TILE_DEVICE float logistic(float x) { return 1.0f / (1.0f + ::expf(-x)); }
TILE_DEVICE double logistic(double x) { return 1.0 / (1.0 + ::exp(-x)); }

TILE_MATH1(exp, ::expf, ::exp)
TILE_MATH1(exp2, exp2_instruction, ::exp2)
TILE_MATH1(exp10, ::exp10f, ::exp10)
TILE_MATH1(expm1, ::expm1f, ::expm1)
TILE_MATH1(log, ::logf, ::log)
TILE_MATH1(log2, ::log2f, ::log2)
TILE_MATH1(log10, ::log10f, ::log10)
TILE_MATH1(log1p, ::log1pf, ::log1p)
TILE_MATH1(sqrt, ::sqrtf, ::sqrt)
TILE_MATH1(rsqrt, ::rsqrtf, ::rsqrt)
TILE_MATH1(sigmoid, logistic, logistic)
TILE_MATH1(tanh, ::tanhf, ::tanh)
TILE_MATH1(sin, ::sinf, ::sin)
TILE_MATH1(cos, ::cosf, ::cos)
TILE_MATH1(tan, ::tanf, ::tan)
TILE_MATH1(asin, ::asinf, ::asin)
TILE_MATH1(acos, ::acosf, ::acos)
TILE_MATH1(atan, ::atanf, ::atan)
TILE_MATH1(sinh, ::sinhf, ::sinh)
TILE_MATH1(cosh, ::coshf, ::cosh)
TILE_MATH1(asinh, ::asinhf, ::asinh)
TILE_MATH1(acosh, ::acoshf, ::acosh)
TILE_MATH1(atanh, ::atanhf, ::atanh)
TILE_MATH1(erf, ::erff, ::erf)
TILE_MATH1(floor, ::floorf, ::floor)
TILE_MATH1(ceil, ::ceilf, ::ceil)
TILE_MATH1(trunc, ::truncf, ::trunc)
TILE_MATH1(round, ::rintf, ::rint)  // halves to even
TILE_MATH1(nearbyint, ::rintf, ::rint)
TILE_MATH2(pow, ::powf, ::pow)
TILE_MATH2(fmod, ::fmodf, ::fmod)
TILE_MATH2(hypot, ::hypotf, ::hypot)
TILE_MATH2(copysign, ::copysignf, ::copysign)
TILE_MATH2(atan2, ::atan2f, ::atan2)

// Fast forms: the units for special functions, absolute error about 2^-21. float64 has none.
TILE_MATH1(fast_exp, __expf, ::exp)
TILE_MATH1(fast_exp2, exp2_instruction, ::exp2)
TILE_MATH1(fast_exp10, __exp10f, ::exp10)
TILE_MATH1(fast_log, __logf, ::log)
TILE_MATH1(fast_log2, __log2f, ::log2)
TILE_MATH1(fast_log10, __log10f, ::log10)
TILE_MATH1(fast_tan, __tanf, ::tan)
TILE_MATH1(fast_cos, __cosf, ::cos)
TILE_MATH1(fast_sin, __sinf, ::sin)
TILE_MATH1(fast_rcp, rcp_instruction, reciprocal)
#undef TILE_MATH1
#undef TILE_MATH2

// a * b + c, rounded once.
TILE_DEVICE float fma(float a, float b, float c) { return ::fmaf(a, b, c); }
TILE_DEVICE double fma(double a, double b, double c) { return ::fma(a, b, c); }
TILE_DEVICE half_t fma(half_t a, half_t b, half_t c) { return __hfma(a, b, c); }
TILE_DEVICE bfloat16_t fma(bfloat16_t a, bfloat16_t b, bfloat16_t c) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
  const double product = static_cast<double>(to_float(a) * to_float(b));  // exact
  return __float2bfloat16_rn(to_odd_float(product + static_cast<double>(to_float(c))));
#else
  return __hfma(a, b, c);
#endif
}
template <class T>
TILE_DEVICE T fma(T a, T b, T c) {
  return cast<T>(::fmaf(to_float(a), to_float(b), to_float(c)));
}

// x * 2^n
TILE_DEVICE float ldexp(float x, int n) { return ::ldexpf(x, n); }
TILE_DEVICE double ldexp(double x, int n) { return ::ldexp(x, n); }
template <class T>
TILE_DEVICE T ldexp(T x, int n) {
  return cast<T>(::ldexp(static_cast<double>(to_float(x)), n));
}

TILE_DEVICE bool isnan(double x) { return x != x; }
TILE_DEVICE bool isinf(double x) { return ::fabs(x) == __longlong_as_double(0x7ff0000000000000ll); }
TILE_DEVICE bool isfinite(double x) { return ::fabs(x) < __longlong_as_double(0x7ff0000000000000ll); }
template <class T>
TILE_DEVICE bool isnan(T x) {
  const float y = to_float(x);
  return y != y;
}
template <class T>
TILE_DEVICE bool isinf(T x) {
  return ::fabsf(to_float(x)) == __int_as_float(0x7f800000);
}
template <class T>
TILE_DEVICE bool isfinite(T x) {
  return ::fabsf(to_float(x)) < __int_as_float(0x7f800000);
}

// The neighbour of x on the way to y, in the type's own steps.
TILE_DEVICE float nextafter(float x, float y) { return ::nextafterf(x, y); }
TILE_DEVICE double nextafter(double x, double y) { return ::nextafter(x, y); }
template <class T>
TILE_DEVICE T nextafter(T x, T y) {
  using U = bits_of<T>;
  const float from = to_float(x), to = to_float(y);
  if (from != from || to != to) return cast<T>(__int_as_float(0x7fffffff));
  if (from == to) return y;
  if (from == 0.0f) {  // the smallest number, with the sign of y
    const U sign = bitcast<U>(y) & (cast<bool>(y) ? bitcast<U>(cast<T>(-1.0f)) ^ bitcast<U>(cast<T>(1.0f)) : 0);
    return bitcast<T>(static_cast<U>(sign | 1));
  }
  const bool grows = (to > from) == (from > 0.0f);
  return bitcast<T>(static_cast<U>(bitcast<U>(x) + (grows ? 1 : -1)));
}

}  // namespace tile
