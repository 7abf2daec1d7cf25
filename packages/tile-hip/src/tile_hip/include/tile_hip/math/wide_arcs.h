// asin, acos, atan, atan2 in float64.
#pragma once
#include "tile_hip/math/common.h"

namespace tile {
namespace wide {

// (asin(s) / s - 1) / z in z = s^2, |s| <= 1/2; absolute error 3e-17.
TILE_DEVICE double asin_rest(double z) {
  return polynomial(z, 0.16666666666666669, 0.07499999999998425, 0.04464285714637338,
                    0.030381944137085216, 0.022372173002005596, 0.017352391265909227,
                    0.013971235301124542, 0.011478952690257354, 0.010324318288744307,
                    0.005450878187719783, 0.017419357964886792, -0.014881409392820887,
                    0.02877844261259485);
}

// asin|x| is p, or pi/2 - 2p beyond 1/2; `lost` is what the root in p lacks.
struct arc {
  bool is_big;
  double s, p, lost;
};
TILE_DEVICE arc arc_of(double x) {
  TILE_EXACT
  const double size = size_of(x);
  const bool is_big = size > 0.5;
  const double z = is_big ? (1.0 - size) * 0.5 : size * size;
  const double s = is_big ? __builtin_sqrt(z) : size;
  const double lost = is_big && s > 0.0 ? mad(-s, s, z) * 0.5 / s : 0.0;
  return {is_big, s, s * z * asin_rest(z), lost};
}

TILE_DEVICE double asin(double x) {
  const arc a = arc_of(x);
  const double far = half_pi - (2.0 * a.s + (2.0 * (a.p + a.lost) - half_pi_rest));
  return __builtin_copysign(a.is_big ? far : a.s + a.p, x);
}
TILE_DEVICE double acos(double x) {
  const arc a = arc_of(x);
  const double twice = 2.0 * (a.s + (a.p + a.lost));
  const double far = x < 0.0 ? 2.0 * half_pi - (twice - 2.0 * half_pi_rest) : twice;
  const double low = half_pi_rest - __builtin_copysign(a.p, x);
  return a.is_big ? far : half_pi - (x - low);
}

// The angle of (b, a) for a, b >= 0: with 0, pi/4 or pi/2 taken away it is small.
TILE_DEVICE split first_quadrant(double a, double b) {
  TILE_EXACT
  constexpr double edge = 0.4142135623730951;  // tan(pi/8)
  const bool is_flat = a <= edge * b, is_steep = !is_flat && edge * a > b;
  const double above = is_flat ? a : is_steep ? -b : a - b;
  const double below = is_flat ? b : is_steep ? a : a + b;
  const double t = above / below, z = t * t;
  const double p = polynomial(z, -0.3333333333333333, 0.19999999999995438, -0.1428571428464918,
                              0.1111111101386139, -0.09090904521500148, 0.07692181876696624,
                              -0.06664492955081326, 0.05857988430657219, -0.05084610777582156,
                              0.03920744532054476, -0.019147263763236052);
  const double base = is_flat ? 0.0 : is_steep ? half_pi : 0.5 * half_pi;
  const double base_rest = is_flat ? 0.0 : is_steep ? half_pi_rest : 0.5 * half_pi_rest;
  const split sum = exact_sum(base, t);
  return {sum.high, sum.low + mad(t * z, p, base_rest)};
}

TILE_DEVICE double atan(double x) {
  const split a = first_quadrant(size_of(x), 1.0);
  const double result = size_of(x) == wide_infinity ? half_pi : a.high + a.low;
  return __builtin_copysign(keep_zero(x, result), x);
}

TILE_DEVICE double atan2(double y, double x) {
  if (x != x || y != y) return x + y;
  double a = size_of(y), b = size_of(x);
  if (a == wide_infinity || b == wide_infinity) {
    a = a == wide_infinity ? 1.0 : 0.0;
    b = b == wide_infinity ? 1.0 : 0.0;
  }
  const double larger = a > b ? a : b;
  const double scale = larger > 0x1p1000 ? 0x1p-64 : larger < 0x1p-900 ? 0x1p128 : 1.0;
  const split q = b == 0.0 && a == 0.0 ? split{0.0, 0.0} : first_quadrant(a * scale, b * scale);
  const double behind = 2.0 * half_pi - (q.high - (2.0 * half_pi_rest - q.low));
  return __builtin_copysign(is_negative(x) ? behind : q.high + q.low, y);
}

}  // namespace wide
}  // namespace tile
