// Functions of angles in float32: the reduction in float64, which costs the same here.
#pragma once
#include "tile_hip/math/units.h"
#include "tile_hip/math/wide_angles.h"
#include "tile_hip/math/wide_arcs.h"

namespace tile {
namespace single {

struct angle {
  double r;
  int quarters;
};
// One float64 holds the rest; up to 2^28 it is off by less than shows.
TILE_DEVICE angle reduced(float x) {
  TILE_EXACT
  const double at = static_cast<double>(x);
  if (size_of(x) < 0x1p28f) {
    const double n = __builtin_rint(at * 0.6366197723675814);
    return {mad(n, -half_pi_rest, mad(n, -half_pi, at)), static_cast<int>(n)};
  }
  const wide::angle a = wide::reduced(at);
  return {a.r.high, a.quarters};
}

// sin(r) to 2.5e-8 r and cos(r) to 2.5e-9, |r| <= pi/4.
TILE_DEVICE float sine_near_zero(float r) {
  const float z = r * r;
  return mad(r * z,
             polynomial(z, -0.166666641831398f, 0.008332747966051102f, -0.00019587890710681677f),
             r);
}
TILE_DEVICE float cosine_near_zero(float r) {
  const float z = r * r;
  const float rest = polynomial(z, 0.0416666641831398f, -0.001388830249197781f,
                                2.454794230288826e-05f);
  return mad(z * z, rest, mad(z, -0.5f, 1.0f));
}
TILE_DEVICE float sine_in_quarter(const angle& a, int more) {
  const int quarter = a.quarters + more;
  const float r = static_cast<float>(a.r);
  const float value = quarter & 1 ? cosine_near_zero(r) : sine_near_zero(r);
  return quarter & 2 ? -value : value;
}
TILE_DEVICE float sin(float x) { return keep_zero(x, sine_in_quarter(reduced(x), 0)); }
TILE_DEVICE float cos(float x) { return sine_in_quarter(reduced(x), 1); }
TILE_DEVICE float tan(float x) {
  const angle a = reduced(x);
  const double s = wide::sine_near_zero({a.r, 0.0}), c = wide::cosine_near_zero({a.r, 0.0});
  return keep_zero(x, static_cast<float>(a.quarters & 1 ? -c / s : s / c));
}

TILE_DEVICE float asin(float x) { return static_cast<float>(wide::asin(static_cast<double>(x))); }
TILE_DEVICE float acos(float x) { return static_cast<float>(wide::acos(static_cast<double>(x))); }
TILE_DEVICE float atan(float x) { return static_cast<float>(wide::atan(static_cast<double>(x))); }
TILE_DEVICE float atan2(float y, float x) {
  return static_cast<float>(wide::atan2(static_cast<double>(y), static_cast<double>(x)));
}

// The unit counts in whole turns: from -1/2 to 1/2, so that small angles stay what they are.
TILE_DEVICE float turns(float x) {
  TILE_EXACT
  const float t = x * 0.15915494309189535f;
  return t - __builtin_rintf(t);
}
TILE_DEVICE float fast_sin(float x) { return unit::sine(turns(x)); }
TILE_DEVICE float fast_cos(float x) { return unit::cosine(turns(x)); }
TILE_DEVICE float fast_tan(float x) {
  const float t = turns(x);
  return unit::sine(t) * unit::reciprocal(unit::cosine(t));
}

}  // namespace single
}  // namespace tile
