// pow, fmod, hypot and roots in float64.
#pragma once
#include "tile_hip/math/wide_exponential.h"
#include "tile_hip/math/wide_logarithm.h"

namespace tile {
namespace wide {

TILE_DEVICE split product_of(const split& a, const split& b) {
  const split p = exact_product(a.high, b.high);
  return ordered_sum(p.high, p.low + mad(a.high, b.low, a.low * b.high));
}

// The logarithm of positive finite x to some 2^-65 of itself.
TILE_DEVICE split precise_log(double x) {
  TILE_EXACT
  const scaled a = taken_apart(x);
  const double f = a.mantissa - 1.0;
  const split below = ordered_sum(2.0, f);
  const double s = f / below.high;
  const double rest = mad(-s, below.low, mad(-s, below.high, f)) / below.high;
  const split t{s, rest};
  const split z = product_of(t, t);
  // 2 * atanh(s) = 2s + s * z * (2/3 + z * (2/5 + …))
  const double tail = z.high * polynomial(z.high, 0.4, 0.28571428571429375, 0.22222222221649282,
                                          0.18181818336888542, 0.15384594802855814,
                                          0.13334813369132756, 0.11706004249827273,
                                          0.11725603264469439);
  const split third = ordered_sum(0.6666666666666666, tail);
  const split factor{third.high, third.low + 3.700743415417188e-17};
  const split cubic = product_of(t, product_of(z, factor));
  const split twice = ordered_sum(2.0 * s, cubic.high);
  const double twice_rest = twice.low + (cubic.low + 2.0 * rest);
  const split whole = exact_product(a.exponent, ln_2);
  const split sum = exact_sum(whole.high, twice.high);
  return ordered_sum(sum.high,
                     sum.low + (twice_rest + mad(a.exponent, ln_2_rest, whole.low)));
}

// What is left of |x|^y to say: the sign, and where no number is the result.
template <class F>
TILE_DEVICE F power_of(F x, F y, F size) {
  const F infinity = static_cast<F>(wide_infinity), half = y * F(0.5);
  const bool is_whole = size_of(y) >= F(0x1p53) || static_cast<F>(static_cast<i64>(y)) == y;
  const bool is_odd = is_whole && size_of(y) < F(0x1p53) &&
                      static_cast<F>(static_cast<i64>(half)) != half;
  F result = is_negative(x) && is_odd ? -size : size;
  if (x < F(0) && !is_whole && x > -infinity) result = static_cast<F>(__builtin_nan(""));
  if (x != x || y != y) result = x + y;
  const bool is_one = x == F(1) || y == F(0) || (x == F(-1) && size_of(y) == infinity);
  return is_one ? F(1) : result;
}

// |x|^y where either is zero or infinite: which side of 1 the base is on decides.
TILE_DEVICE double power_at_the_ends(double base, double y) {
  const bool grows = (base > 1.0) == (y > 0.0);
  return grows ? wide_infinity : 0.0;
}

TILE_DEVICE double pow(double x, double y) {
  const double base = size_of(x);
  const bool at_end = base == 0.0 || base == wide_infinity || size_of(y) >= 0x1p80;
  double size;
  if (at_end) {
    size = power_at_the_ends(base, y);
  } else {
    const split ln = precise_log(base);
    const split p = exact_product(ln.high, y);
    size = exp_of_sum(p.high, mad(ln.low, y, p.low));
    if (size_of(p.high) > 800.0) size = p.high > 0.0 ? wide_infinity : 0.0;
  }
  return power_of(x, y, size);
}

TILE_DEVICE int exponent_of(double x) {
  const u64 bits = bits_as<u64>(x);
  const int zeros = leading_zeros(bits);
  return zeros > 11 ? 12 - zeros : static_cast<int>(bits >> 52);
}

// x - trunc(x / y) * y exactly, with the sign of x: up to 50 bits of the quotient at a time.
TILE_DEVICE double fmod(double x, double y) {
  double a = size_of(x);
  const double b = size_of(y);
  if (!(a < wide_infinity) || !(b > 0.0)) return __builtin_nan("");
  if (b != b) return b;
  if (b == wide_infinity) return x;
  while (a >= b) {
    const int apart = exponent_of(a) - exponent_of(b);
    const double unit = apart > 50 ? times_power(b, apart - 50) : b;
    double rest = mad(-__builtin_trunc(a / unit), unit, a);
    if (rest < 0.0) rest += unit;  // the quotient was rounded up
    a = rest;
  }
  return __builtin_copysign(a, x);
}

TILE_DEVICE double hypot(double x, double y) {
  const double a = size_of(x), b = size_of(y), larger = a > b ? a : b;
  if (a == wide_infinity || b == wide_infinity) return wide_infinity;
  const double scale = larger > 0x1p500 ? 0x1p-600 : larger < 0x1p-500 ? 0x1p600 : 1.0;
  const double back = larger > 0x1p500 ? 0x1p600 : larger < 0x1p-500 ? 0x1p-600 : 1.0;
  const double p = a * scale, q = b * scale;
  const split square = exact_product(p, p), other = exact_product(q, q);
  const split sum = exact_sum(square.high, other.high);
  const double root = __builtin_sqrt(sum.high);
  if (root == 0.0 || root != root) return root;
  const double rest = mad(-root, root, sum.high) + (sum.low + (square.low + other.low));
  return mad(rest, 0.5 / root, root) * back;
}

TILE_DEVICE double rsqrt(double x) { return 1.0 / __builtin_sqrt(x); }
TILE_DEVICE double reciprocal(double x) { return 1.0 / x; }

}  // namespace wide
}  // namespace tile
