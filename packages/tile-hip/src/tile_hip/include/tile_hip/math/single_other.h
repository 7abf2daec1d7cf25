// What float32 has beside: the error function by itself, the rest by way of float64.
#pragma once
#include "tile_hip/math/single_exponential.h"
#include "tile_hip/math/wide_hyperbolic.h"
#include "tile_hip/math/wide_power.h"

namespace tile {
namespace single {

#define TILE_BY_WIDE(NAME)                                                  \
  TILE_DEVICE float NAME(float x) {                                         \
    return static_cast<float>(wide::NAME(static_cast<double>(x)));          \
  }
TILE_BY_WIDE(sinh)
TILE_BY_WIDE(cosh)
TILE_BY_WIDE(asinh)
TILE_BY_WIDE(acosh)
TILE_BY_WIDE(atanh)
#undef TILE_BY_WIDE

// erf(x) / x - 1 up to 1, absolute error 5e-9; then (log(1 - erf(t)) + t) / t, 1e-7.
TILE_DEVICE float erf(float x) {
  const float size = size_of(x) > 4.0f ? 4.0f : size_of(x), z = size * size;
  const float near = mad(
      x,
      polynomial(z, 0.12837916612625122f, -0.3761262595653534f, 0.11283594369888306f,
                 -0.02685421146452427f, 0.005189087241888046f, -0.000801686430349946f,
                 7.875874871388078e-05f),
      x);
  const float decay = mad(
      size,
      polynomial(size, -0.12895724177360535f, -0.6339714527130127f, -0.10809191316366196f,
                 0.025308601558208466f, -0.004373922478407621f, 0.0005157455452717841f,
                 -3.6593010008800775e-05f, 1.1660324618965887e-06f),
      -size);
  return size < 1.0f ? near : __builtin_copysignf(1.0f - exp(decay), x);
}

// Numbers of float32 to powers of float32 need no more than float64's own logarithm.
TILE_DEVICE float pow(float x, float y) {
  const double base = size_of(static_cast<double>(x)), exponent = static_cast<double>(y);
  const bool at_end = base == 0.0 || base == wide_infinity || size_of(exponent) == wide_infinity;
  const double size = at_end ? wide::power_at_the_ends(base, exponent)
                             : wide::exp(exponent * wide::log(base));
  return wide::power_of(x, y, static_cast<float>(size));
}
TILE_DEVICE float fmod(float x, float y) {
  return static_cast<float>(wide::fmod(static_cast<double>(x), static_cast<double>(y)));
}
TILE_DEVICE float hypot(float x, float y) {
  const double a = static_cast<double>(x), b = static_cast<double>(y);
  const bool is_infinite = size_of(x) == TILE_INFINITY || size_of(y) == TILE_INFINITY;
  return is_infinite ? TILE_INFINITY : static_cast<float>(__builtin_sqrt(mad(a, a, b * b)));
}

}  // namespace single
}  // namespace tile
