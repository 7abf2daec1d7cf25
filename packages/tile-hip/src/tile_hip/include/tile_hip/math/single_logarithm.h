// Logarithms and roots in float32: the unit's, for all numbers.
#pragma once
#include "tile_hip/math/units.h"
#include "tile_hip/math/wide_logarithm.h"

namespace tile {
namespace single {

// Subnormal numbers are brought to where the unit sees them.
struct visible {
  float x, exponent;
};
TILE_DEVICE visible scaled_up(float x) {
  const bool is_tiny = x < 0x1p-126f;
  return {is_tiny ? x * 0x1p32f : x, is_tiny ? 32.0f : 0.0f};
}

TILE_DEVICE float log2(float x) {
  const visible a = scaled_up(x);
  return unit::log2(a.x) - a.exponent;
}

// log2(x) * factor, for a factor in two parts.
TILE_DEVICE float log_by(float x, float factor, float factor_rest) {
  TILE_EXACT
  const float y = log2(x), product = y * factor;
  const float rest = mad(y, factor_rest, mad(y, factor, -product));
  return size_of(y) < TILE_INFINITY ? product + rest : y;
}
TILE_DEVICE float log(float x) { return log_by(x, 0x1.62e43p-1f, -0x1.05c61p-29f); }
TILE_DEVICE float log10(float x) { return log_by(x, 0x1.344136p-2f, -0x1.ec10cp-27f); }
TILE_DEVICE float log1p(float x) {
  return static_cast<float>(wide::log1p(static_cast<double>(x)));
}

TILE_DEVICE float rsqrt(float x) {
  const bool is_tiny = x < 0x1p-126f;
  const float y = unit::rsqrt(is_tiny ? x * 0x1p24f : x);
  return is_tiny ? y * 0x1p12f : y;
}
TILE_DEVICE float reciprocal(float x) { return unit::reciprocal(x); }

// As the unit gives them: zero for subnormal numbers is minus infinity.
TILE_DEVICE float fast_log2(float x) { return unit::log2(x); }
TILE_DEVICE float fast_log(float x) { return unit::log2(x) * 0.6931471805599453f; }
TILE_DEVICE float fast_log10(float x) { return unit::log2(x) * 0.3010299956639812f; }

}  // namespace single
}  // namespace tile
