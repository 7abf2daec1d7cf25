// The hyperbolic functions and their inverses, and the error function, in float64.
#pragma once
#include "tile_hip/math/wide_exponential.h"
#include "tile_hip/math/wide_logarithm.h"

namespace tile {
namespace wide {

// e^x / 2 where e^x may be infinite.
TILE_DEVICE double half_exp(double x) {
  const double root = exp(0.5 * x);
  return x > 709.0 ? 0.5 * root * root : 0.5 * exp(x);
}

TILE_DEVICE double sinh(double x) {
  const double size = size_of(x), t = expm1(size > 22.0 ? 22.0 : size);
  const double near = 0.5 * (t + t / (t + 1.0));
  return keep_zero(x, __builtin_copysign(size > 22.0 ? half_exp(size) : near, x));
}
TILE_DEVICE double cosh(double x) {
  const double size = size_of(x), e = exp(size > 22.0 ? 22.0 : size);
  return size > 22.0 ? half_exp(size) : 0.5 * e + 0.5 / e;
}
TILE_DEVICE double tanh(double x) {
  const double size = size_of(x);
  const bool is_far = size >= 1.0;
  const double t = expm1(is_far ? 2.0 * size : -2.0 * size);
  const double far = 1.0 - 2.0 / (t + 2.0), near = -t / (t + 2.0);
  return keep_zero(x, __builtin_copysign(is_far ? far : near, x));
}

TILE_DEVICE double asinh(double x) {
  const double size = size_of(x), square = size * size, root = __builtin_sqrt(square + 1.0);
  const double near = log1p(size + square / (1.0 + root));
  const double middle = log(2.0 * size + 1.0 / (root + size));
  const double far = log(size) + ln_2;
  return keep_zero(x, __builtin_copysign(size > 0x1p28 ? far : size > 2.0 ? middle : near, x));
}
TILE_DEVICE double acosh(double x) {
  const double over = x - 1.0;
  const double near = log1p(over + __builtin_sqrt(2.0 * over + over * over));
  const double middle = log(2.0 * x - 1.0 / (x + __builtin_sqrt(mad(x, x, -1.0))));
  if (x < 1.0) return __builtin_nan("");
  return x > 0x1p28 ? log(x) + ln_2 : x > 2.0 ? middle : near;
}
TILE_DEVICE double atanh(double x) {
  const double size = size_of(x), twice = size + size;
  const double t = size < 0.5 ? twice + twice * size / (1.0 - size) : twice / (1.0 - size);
  return keep_zero(x, __builtin_copysign(0.5 * log1p(t), x));
}

// Up to 1 a polynomial in x^2; then 1 - exp(-x^2) * g(u), u = (x - 2) / (x + 2), absolute error of
// g 6e-18; rounds to 1 from 6 on.
TILE_DEVICE double erf(double x) {
  const double size = size_of(x), z = size * size;
  const double p = polynomial(z, 0.1283791670955126, -0.37612638903183754, 0.1128379167095512,
                              -0.02686617064512984, 0.0052239776254232985, -0.000854832702193483,
                              0.00012055332902888736, -1.4925647567519332e-05,
                              1.6462045441468418e-06, -1.6364642158167616e-07,
                              1.4792401209404812e-08, -1.2164560057283446e-09,
                              8.709045129053093e-11, -4.2309458242953175e-12);
  if (size < 1.0) return mad(x, p, x);
  const double at = size > 6.05 ? 6.05 : size, u = (at - 2.0) / (at + 2.0);
  const double g = polynomial(u, 0.25539567631050575, -0.4271858474139585, 0.2416581942424657,
                              -0.07897858101570525, 0.003732892404414368, 0.006997461736899007,
                              -0.00084714325378438, -0.0009819769381819328,
                              4.355560449089879e-05, 0.00017435941038520847,
                              2.7526985484587988e-05, -2.756144666057972e-05,
                              -1.3997452859491048e-05, 1.3011492862102065e-06,
                              4.01222722702913e-06, 1.2842308635816327e-06,
                              -1.1453342529156649e-06);
  return __builtin_copysign(mad(-exp(-at * at), g, 1.0), x);
}

}  // namespace wide
}  // namespace tile
