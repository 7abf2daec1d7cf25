// What mathematical functions share: polynomials, sums and products whose error is known.
//
// Where errors are computed, products must not be fused with sums behind our back: functions
// that do so begin with TILE_EXACT.
#pragma once
#include "tile_hip/arithmetic.h"

#ifdef __clang__
#define TILE_EXACT _Pragma("clang fp contract(off)")
#else
#define TILE_EXACT
#endif

namespace tile {

TILE_DEVICE float mad(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TILE_DEVICE double mad(double a, double b, double c) { return __builtin_fma(a, b, c); }

// first + x * (second + x * (…))
template <class F>
TILE_DEVICE F polynomial(F, F last) {
  return last;
}
template <class F, class... Rest>
TILE_DEVICE F polynomial(F x, F first, Rest... rest) {
  return mad(x, polynomial(x, rest...), first);
}

// A number as the sum of two: `low` is what `high` lacks.
struct split {
  double high, low;
};

TILE_DEVICE split exact_sum(double a, double b) {
  TILE_EXACT
  const double sum = a + b, shadow = sum - a;
  return {sum, (a - (sum - shadow)) + (b - shadow)};
}
// The same where |a| >= |b|.
TILE_DEVICE split ordered_sum(double a, double b) {
  TILE_EXACT
  const double sum = a + b;
  return {sum, b - (sum - a)};
}
TILE_DEVICE split exact_product(double a, double b) {
  TILE_EXACT
  const double product = a * b;
  return {product, mad(a, b, -product)};
}

// x * 2^n
#if TILE_ON_GPU
TILE_DEVICE float times_power(float x, int n) { return __builtin_amdgcn_ldexpf(x, n); }
TILE_DEVICE double times_power(double x, int n) { return __builtin_amdgcn_ldexp(x, n); }
#else
TILE_DEVICE float times_power(float x, int n) { return __builtin_ldexpf(x, n); }
TILE_DEVICE double times_power(double x, int n) { return __builtin_ldexp(x, n); }
#endif

// x where it is a zero, else `result`: odd functions keep its sign.
template <class F>
TILE_DEVICE F keep_zero(F x, F result) {
  return x == F(0) ? x : result;
}
TILE_DEVICE bool is_negative(double x) { return bits_as<i64>(x) < 0; }
TILE_DEVICE bool is_negative(float x) { return bits_as<i32>(x) < 0; }
TILE_DEVICE double size_of(double x) { return __builtin_fabs(x); }
TILE_DEVICE float size_of(float x) { return __builtin_fabsf(x); }

constexpr double wide_infinity = __builtin_inf();
constexpr double half_pi = 1.5707963267948966, half_pi_rest = 6.123233995736766e-17;
constexpr double ln_2 = 0.6931471805599453, ln_2_rest = 2.3190468138462996e-17;
constexpr double log2_e = 1.4426950408889634, log2_e_rest = 2.0355273740931033e-17;
constexpr double log10_e = 0.4342944819032518, log10_e_rest = 1.098319650216765e-17;
constexpr double log2_10 = 3.321928094887362;
constexpr double ln_10 = 2.302585092994046, ln_10_rest = -2.1707562233822494e-16;
constexpr double log10_2 = 0.3010299956639812, log10_2_rest = -2.8037281277851704e-18;

}  // namespace tile
