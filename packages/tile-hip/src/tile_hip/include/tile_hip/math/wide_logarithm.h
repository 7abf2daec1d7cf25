// log, log2, log10, log1p in float64: mantissa in [sqrt(1/2), sqrt(2)), a polynomial, the exponent.
#pragma once
#include "tile_hip/math/common.h"

namespace tile {
namespace wide {

// x = mantissa * 2^exponent
struct scaled {
  double mantissa, exponent;
};

// Of positive finite x.
TILE_DEVICE scaled taken_apart(double x) {
  const bool is_tiny = x < 0x1p-1022;
  const u64 bits = bits_as<u64>(is_tiny ? x * 0x1p54 : x);
  const i64 exponent = static_cast<i64>(bits - 0x3fe6a09e667f3bcdull) >> 52;
  const double mantissa = bits_as<double>(bits - (static_cast<u64>(exponent) << 52));
  return {mantissa, static_cast<double>(static_cast<int>(exponent)) - (is_tiny ? 54.0 : 0.0)};
}

// Of log(1 + f): with s = f / (2 + f), log(1 + f) = f - half + s * (half + rest(s^2)).
TILE_DEVICE double log_rest(double z) {
  return z * polynomial(z, 0.6666666666666666, 0.4000000000000089, 0.28571428570795937,
                        0.22222222393451754, 0.18181795454619548, 0.15386249783145214,
                        0.13268503447792312, 0.13089443736270215);
}

// log(1 + f) = f - half + rest
struct log_terms {
  double f, half, rest;
};
TILE_DEVICE log_terms terms_of_log(double f) {
  const double s = f / (2.0 + f), half = 0.5 * f * f;
  return {f, half, s * (half + log_rest(s * s))};
}

// What a logarithm is of zero, negative numbers, infinity and NaN.
TILE_DEVICE double special_log(double x, double result) {
  const double outside = x == 0.0 ? -wide_infinity : x > 0.0 ? x : __builtin_nan("");
  return x > 0.0 && x < wide_infinity ? result : x != x ? x : outside;
}

// ln(2) with 32 zeros behind: products with exponents are exact.
constexpr double ln_2_short = 0x1.62e42feep-1, ln_2_short_rest = 0x1.a39ef35793c76p-33;

// log(1 + f + lost) + exponent * ln(2)
TILE_DEVICE double log_of(double f, double lost, double exponent) {
  const log_terms t = terms_of_log(f);
  const double small = t.rest + mad(exponent, ln_2_short_rest, lost);
  return mad(exponent, ln_2_short, t.f - (t.half - small));
}

TILE_DEVICE double log(double x) {
  const scaled a = taken_apart(x);
  return special_log(x, log_of(a.mantissa - 1.0, 0.0, a.exponent));
}

TILE_DEVICE double log1p(double x) {
  const bool is_near = x > -0.29 && x < 0.41;
  const double u = 1.0 + x;
  const scaled a = taken_apart(u);
  const double lost = (u > x ? 1.0 - (u - x) : x - (u - 1.0)) / u;
  const double result = is_near ? log_of(x, 0.0, 0.0) : log_of(a.mantissa - 1.0, lost, a.exponent);
  return keep_zero(x, special_log(u, result));
}

// log(1 + f) as a sum.
TILE_DEVICE split log_in_parts(double f) {
  TILE_EXACT
  const log_terms t = terms_of_log(f);
  const double high = t.f - t.half;
  return {high, ((t.f - high) - t.half) + t.rest};
}

// base * log(1 + f) + whole * unit, where base is a sum and `whole * unit` exact, or nearly so.
TILE_DEVICE double log_to_base(const split& ln, double base, double base_rest, double whole,
                               double whole_rest) {
  const split product = exact_product(ln.high, base);
  const double low = mad(ln.high, base_rest, mad(ln.low, base, product.low));
  const split sum = exact_sum(whole, product.high);
  return sum.high + (sum.low + (low + whole_rest));
}

TILE_DEVICE double log2(double x) {
  const scaled a = taken_apart(x);
  const split ln = log_in_parts(a.mantissa - 1.0);
  return special_log(x, log_to_base(ln, log2_e, log2_e_rest, a.exponent, 0.0));
}

TILE_DEVICE double log10(double x) {
  const scaled a = taken_apart(x);
  const split ln = log_in_parts(a.mantissa - 1.0);
  const split whole = exact_product(a.exponent, log10_2);
  const double rest = mad(a.exponent, log10_2_rest, whole.low);
  return special_log(x, log_to_base(ln, log10_e, log10_e_rest, whole.high, rest));
}

}  // namespace wide
}  // namespace tile
