// exp and its kin in float32: a power of two by the unit, the argument carried in two parts.
#pragma once
#include "tile_hip/math/units.h"
#include "tile_hip/math/wide_exponential.h"

namespace tile {
namespace single {

// One instruction; results below the normal numbers become zero.
TILE_DEVICE float exp2(float x) { return unit::exp2(x); }

// Limited to where results are neither 0 nor infinite whatever the rest; not for NaN.
TILE_DEVICE float limited(float x, float low, float high) { return unit::middle(x, low, high); }

// 2^(x * factor) for a factor in two parts, |x * factor| <= 160.
TILE_DEVICE float power(float x, float factor, float factor_rest) {
  TILE_EXACT
  const float product = x * factor, n = __builtin_rintf(product);
  const float rest = mad(x, factor_rest, mad(x, factor, -product));
  return times_power(unit::exp2((product - n) + rest), static_cast<int>(n));
}
TILE_DEVICE float exp(float x) {
  const float y = power(limited(x, -105.0f, 89.0f), 0x1.715476p+0f, 0x1.4ae0cp-26f);
  return x != x ? x : y;
}
TILE_DEVICE float exp10(float x) {
  const float y = power(limited(x, -46.0f, 39.0f), 0x1.a934fp+1f, 0x1.2f346ep-24f);
  return x != x ? x : y;
}
TILE_DEVICE float expm1(float x) {
  return static_cast<float>(wide::expm1(static_cast<double>(x)));
}

// x / y where neither is near the ends of what float32 holds; 1 ulp.
TILE_DEVICE float quotient(float x, float y) {
  const float inverse = unit::reciprocal(y), q = x * inverse;
  return mad(mad(-y, q, x), inverse, q);
}

TILE_DEVICE float sigmoid(float x) {
  const float small = exp(-size_of(x));
  const float one = x < 0.0f ? small : 1.0f;
  const float inverse = unit::reciprocal(1.0f + small), q = one * inverse;
  return mad(mad(-(1.0f + small), q, one), inverse, q);
}

// Near 0 a polynomial; absolute error 7e-8 of tanh(x) / x.
TILE_DEVICE float tanh(float x) {
  const float size = size_of(x), z = size * size;
  const float near = mad(x * z,
                         polynomial(z, -0.333333283662796f, 0.13332599401474f,
                                    -0.05382600799202919f, 0.02088334783911705f,
                                    -0.005937062669545412f),
                         x);
  const float at = size > 9.02f ? 9.02f : size;
  const float far = 1.0f - 2.0f * unit::reciprocal(exp(at + at) + 1.0f);
  return size < 0.625f ? keep_zero(x, near) : __builtin_copysignf(far, x);
}

// Absolute error of the argument counts: for |x| of a few units 2^-21 of the result.
TILE_DEVICE float fast_exp(float x) { return unit::exp2(x * 1.4426950408889634f); }
TILE_DEVICE float fast_exp10(float x) { return unit::exp2(x * 3.321928094887362f); }

}  // namespace single
}  // namespace tile
