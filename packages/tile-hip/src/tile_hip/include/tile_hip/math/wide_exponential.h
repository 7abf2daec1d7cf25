// exp, exp2, exp10, expm1, sigmoid in float64: |r| <= ln(2)/2, a polynomial, a power of two.
#pragma once
#include "tile_hip/math/common.h"

namespace tile {
namespace wide {

// (exp(r) - 1 - r) / r^2 on |r| <= 0.35; absolute error 2e-18.
TILE_DEVICE double exp_rest(double r) {
  return polynomial(r, 0.5, 0.1666666666666667, 0.04166666666666667, 0.008333333333325544,
                    0.0013888888888883327, 0.00019841269876864356, 2.4801587327007187e-05,
                    2.755725283351691e-06, 2.75572718102198e-07, 2.5106274733573296e-08,
                    2.0915442297780116e-09);
}

// Arguments limited to where results are neither 0 nor infinite whatever the rest; NaN stays.
TILE_DEVICE double limited(double x, double low, double high) {
  return x > high ? high : x < low ? low : x;
}

// 2^n * e^(r + rest), where `rest` is what r as a float64 lacks.
TILE_DEVICE double scaled_exp(double n, double r, double rest) {
  const double e = 1.0 + (r + mad(r * r, exp_rest(r), rest));
  return times_power(e, static_cast<int>(n));
}

// e^(x + rest), |rest| < 2^-40.
TILE_DEVICE double exp_of_sum(double x, double rest) {
  x = limited(x, -750.0, 711.0);
  if (x != x) return x;
  const double n = __builtin_rint(x * log2_e);
  const split r = ordered_sum(mad(n, -ln_2, x), mad(n, -ln_2_rest, rest));
  return scaled_exp(n, r.high, r.low);
}
TILE_DEVICE double exp(double x) { return exp_of_sum(x, 0.0); }

TILE_DEVICE double exp2(double x) {
  x = limited(x, -1080.0, 1025.0);
  if (x != x) return x;
  const double n = __builtin_rint(x);
  const split r = exact_product(x - n, ln_2);
  return scaled_exp(n, r.high, mad(x - n, ln_2_rest, r.low));
}

TILE_DEVICE double exp10(double x) {
  x = limited(x, -330.0, 310.0);
  if (x != x) return x;
  const double n = __builtin_rint(x * log2_10);
  const double left = mad(n, -log10_2_rest, mad(n, -log10_2, x));
  const split r = exact_product(left, ln_10);
  return scaled_exp(n, r.high, mad(left, ln_10_rest, r.low));
}

// e^x - 1 without cancellation near 0.
TILE_DEVICE double expm1(double x) {
  const double at = limited(x, -60.0, 710.0);
  if (x != x) return x;
  const double n = __builtin_rint(at * log2_e);
  const double r = mad(n, -ln_2_rest, mad(n, -ln_2, at));
  const double m = mad(r * r, exp_rest(r), r);
  const int half = static_cast<int>(n) - 1;  // 2^1024 is no number
  const double scale = times_power(1.0, half);
  return keep_zero(x, 2.0 * mad(scale, m, scale - 0.5));
}

TILE_DEVICE double sigmoid(double x) {
  const double small = exp(-size_of(x));
  return (x < 0.0 ? small : 1.0) / (1.0 + small);
}

}  // namespace wide
}  // namespace tile
