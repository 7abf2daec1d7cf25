// sin, cos, tan in float64, and the reduction of angles of any size.
#pragma once
#include "tile_hip/math/common.h"

namespace tile {
namespace wide {

// x = quarters * pi/2 + r, |r| <= pi/4; only the last bits of `quarters` count.
struct angle {
  split r;
  int quarters;
};

TILE_DEVICE u64 upper_product(u64 a, u64 b) {
  const u64 a0 = a & 0xffffffffu, a1 = a >> 32, b0 = b & 0xffffffffu, b1 = b >> 32;
  const u64 middle = a1 * b0 + (a0 * b0 >> 32), other = a0 * b1 + (middle & 0xffffffffu);
  return a1 * b1 + (middle >> 32) + (other >> 32);
}

// The bits of 2/pi behind the point, 64 at a time.
TILE_DEVICE u64 two_over_pi(int word) {
#if TILE_ON_GPU
  static constexpr __constant__ u64 words[] = {
#else
  static constexpr u64 words[] = {
#endif
      0xa2f9836e4e441529, 0xfc2757d1f534ddc0, 0xdb6295993c439041, 0xfe5163abdebbc561,
      0xb7246e3a424dd2e0, 0x06492eea09d1921c, 0xfe1deb1cb129a73e, 0xe88235f52ebb4484,
      0xe99c7026b45f7e41, 0x3991d639835339f4, 0x9c845f8bbdf9283b, 0x1ff897ffde05980f,
      0xef2f118b5a0a6d1f, 0x6d367ecf27cb09b7, 0x4f463f669e5fea2d, 0x7527bac7ebe5f17b,
      0x3d0739f78a5292ea, 0x6bfb5fb11f8d5d08, 0x56033046fc7b6bab, 0xf0cfbc209af4361d};
  return words[word];
}

// 64 bits of 2/pi from bit `start` on; zeros stand before it.
TILE_DEVICE u64 bits_of_two_over_pi(int start) {
  if (start <= -64) return 0;
  if (start < 0) return two_over_pi(0) >> -start;
  const int word = start >> 6, shift = start & 63;
  const u64 first = two_over_pi(word) << shift;
  return shift == 0 ? first : first | two_over_pi(word + 1) >> (64 - shift);
}

// Angles from 2^20 on: the product with 2/pi modulo 4 needs but some of its bits (Payne, Hanek).
TILE_DEVICE angle reduced_large(double x) {
  TILE_EXACT
  const u64 bits = bits_as<u64>(x);
  const int exponent = static_cast<int>(bits >> 52 & 0x7ff) - 1075;
  const u64 m = (bits & 0xfffffffffffffull) | 0x10000000000000ull;
  const int start = exponent - 2;
  const u64 w0 = bits_of_two_over_pi(start), w1 = bits_of_two_over_pi(start + 64);
  const u64 w2 = bits_of_two_over_pi(start + 128);
  const u64 p0 = m * w2, c0 = upper_product(m, w2);
  const u64 p1 = m * w1 + c0, c1 = upper_product(m, w1) + (p1 < c0);
  const u64 p2 = m * w0 + c1;
  u64 f = p2 << 2 | p1 >> 62, g = p1 << 2 | p0 >> 62;
  const bool goes_back = f >> 63 != 0;
  const int quarters = static_cast<int>(p2 >> 62) + goes_back;
  if (goes_back) {
    f = ~f + (g == 0);
    g = 0 - g;
  }
  const int zeros = leading_zeros(f);  // no number is so close to a multiple that f is 0
  const u64 head = zeros == 0 ? f : f << zeros | g >> (64 - zeros), tail = g << zeros;
  const double high = times_power(static_cast<double>(head >> 11), -53 - zeros);
  const u64 below = (head & 2047) << 53 | tail >> 11;
  const double low = times_power(static_cast<double>(below), -117 - zeros);
  const split product = exact_product(high, half_pi);
  const split r = ordered_sum(product.high, product.low + mad(high, half_pi_rest, low * half_pi));
  const bool flips = goes_back != is_negative(x);
  return {{flips ? -r.high : r.high, flips ? -r.low : r.low},
          is_negative(x) ? -quarters : quarters};
}

TILE_DEVICE angle reduced_moderate(double x) {
  TILE_EXACT
  const double n = __builtin_rint(x * 0.6366197723675814);
  const split first = exact_product(n, half_pi), second = exact_product(n, half_pi_rest);
  const split a = exact_sum(x - first.high, -first.low);
  const split b = exact_sum(a.high, -second.high);
  const double low = b.low + (a.low - mad(n, -1.4973849048591833e-33, second.low));
  return {ordered_sum(b.high, low), static_cast<int>(n)};
}

TILE_DEVICE angle reduced(double x) {
  if (size_of(x) < 0x1p20) return reduced_moderate(x);
  if (!(size_of(x) < wide_infinity)) return {{__builtin_nan(""), 0.0}, 0};
  return reduced_large(x);
}

TILE_DEVICE double sine_near_zero(const split& r) {
  const double z = r.high * r.high;
  const double s = polynomial(z, -0.16666666666666666, 0.008333333333333331,
                              -0.00019841269841265017, 2.755731921930192e-06,
                              -2.5052106219521895e-08, 1.6058529572267877e-10,
                              -7.586576588171071e-13);
  return r.high + mad(r.high * z, s, mad(-0.5 * z, r.low, r.low));
}
TILE_DEVICE double cosine_near_zero(const split& r) {
  TILE_EXACT
  const double z = r.high * r.high, half = 0.5 * z, head = 1.0 - half;
  const double c = polynomial(z, 0.041666666666666664, -0.0013888888888887382,
                              2.480158729874307e-05, -2.7557317260008837e-07,
                              2.087614382799289e-09, -1.1382456778047061e-11);
  return head + (((1.0 - head) - half) + mad(z * z, c, -r.high * r.low));
}

TILE_DEVICE double sine_in_quarter(const angle& a, int more) {
  const int quarter = a.quarters + more;
  const double value = quarter & 1 ? cosine_near_zero(a.r) : sine_near_zero(a.r);
  return quarter & 2 ? -value : value;
}
TILE_DEVICE double sin(double x) { return keep_zero(x, sine_in_quarter(reduced(x), 0)); }
TILE_DEVICE double cos(double x) { return sine_in_quarter(reduced(x), 1); }
TILE_DEVICE double tan(double x) {
  const angle a = reduced(x);
  const double s = sine_near_zero(a.r), c = cosine_near_zero(a.r);
  return keep_zero(x, a.quarters & 1 ? -c / s : s / c);
}

}  // namespace wide
}  // namespace tile
