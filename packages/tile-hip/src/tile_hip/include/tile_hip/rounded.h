// IEEE operations with a given rounding: nearest even, toward zero, up, down.
//
// A result is found to the nearest number, together with something that has the sign of what was
// lost; then it moves by one step where the direction asks for it. float32 goes by way of float64,
// where nothing under- or overflows. In float64 the sign of the loss is unknown where the loss
// itself underflows, below 2^-960 or so.
#pragma once
#include "tile_hip/math/common.h"

namespace tile {

enum class rounding { rn, rz, ru, rd };

// A result, and something with the sign of what it lacks.
struct nearest {
  double value, loss;
};

// Each operation, of up to three numbers. `terms` are what is added, if anything is: only their
// signs and whether they are zeros count. `can_overflow` leaves out results that are infinite
// where their operands are no infinities: those of a division by zero.
struct operation {
  static constexpr bool is_sum = false, can_overflow = false;
};
struct addition : operation {
  static constexpr bool is_sum = true, can_overflow = true;
  static TILE_DEVICE nearest of(double a, double b, double) {
    const split s = exact_sum(a, b);
    return {s.high, s.low};
  }
  static TILE_DEVICE split terms(double a, double b, double) { return {a, b}; }
};
struct subtraction : operation {
  static constexpr bool is_sum = true, can_overflow = true;
  static TILE_DEVICE nearest of(double a, double b, double) { return addition::of(a, -b, 0.0); }
  static TILE_DEVICE split terms(double a, double b, double) { return {a, -b}; }
};
struct multiplication : operation {
  static constexpr bool can_overflow = true;
  static TILE_DEVICE nearest of(double a, double b, double) {
    const split p = exact_product(a, b);
    return {p.high, p.low};
  }
};
struct division : operation {
  static TILE_DEVICE nearest of(double a, double b, double) {
    const double q = a / b, rest = mad(-q, b, a);
    return {q, is_negative(b) ? -rest : rest};
  }
};
struct inverse : operation {
  static TILE_DEVICE nearest of(double a, double, double) { return division::of(1.0, a, 0.0); }
};
struct root : operation {
  static TILE_DEVICE nearest of(double a, double, double) {
    const double s = __builtin_sqrt(a);
    return {s, mad(-s, s, a)};
  }
};
struct inverse_root : operation {
  static TILE_DEVICE double loss(double a, double y) {  // 1 - a * y * y
    TILE_EXACT
    const split square = exact_product(y, y);
    return mad(-square.high, a, 1.0) - square.low * a;
  }
  static TILE_DEVICE nearest of(double a, double, double) {
    const double y = 1.0 / __builtin_sqrt(a), better = mad(y * 0.5, loss(a, y), y);
    const double best = better == better ? better : y;
    return {best, loss(a, best)};
  }
};
struct multiply_add : operation {
  static constexpr bool is_sum = true, can_overflow = true;
  static TILE_DEVICE nearest of(double a, double b, double c) {
    TILE_EXACT
    const double result = mad(a, b, c);
    const split product = exact_product(a, b), middle = exact_sum(c, product.low);
    const split top = exact_sum(product.high, middle.high);
    return {result, ((top.high - result) + top.low) + middle.low};
  }
  static TILE_DEVICE split terms(double a, double b, double c) {
    const double size = a == 0.0 || b == 0.0 ? 0.0 : 1.0;
    return {is_negative(a) != is_negative(b) ? -size : size, c};
  }
};

// The next number above, or below.
template <class F>
TILE_DEVICE F stepped(F x, bool up) {
  using U = bits_of<F>;
  constexpr U sign = U(1) << (8 * sizeof(F) - 1);
  if (x == F(0)) return bits_as<F>(static_cast<U>(up ? 1 : sign | 1));
  const bool grows = is_negative(x) != up;
  return bits_as<F>(static_cast<U>(bits_as<U>(x) + (grows ? 1 : -1)));
}

template <rounding MODE, class F>
TILE_DEVICE F directed(F near, F loss) {
  if constexpr (MODE == rounding::rn) return near;
  const bool is_up = MODE == rounding::ru || (MODE == rounding::rz && is_negative(near));
  const bool is_off = is_up ? loss > F(0) : loss < F(0);
  return is_off ? stepped(near, is_up) : near;
}

TILE_DEVICE bool is_number(double x) { return size_of(x) < wide_infinity; }

// A float64 that rounds on to float32 as the exact value would, in any direction: if something was
// lost, the neighbour on its side or the number itself, whichever is odd.
TILE_DEVICE double made_odd(const nearest& r) {
  const bool is_even = (bits_as<u64>(r.value) & 1) == 0;
  const bool moves = is_even && (r.loss > 0.0 || r.loss < 0.0) && is_number(r.value);
  return moves ? stepped(r.value, r.loss > 0.0) : r.value;
}
template <rounding MODE>
TILE_DEVICE float narrowed_to_float(double x) {
  TILE_EXACT
  const float near = static_cast<float>(x);
  const double loss = x - static_cast<double>(near);
  return directed<MODE>(near, loss > 0.0 ? 1.0f : loss < 0.0 ? -1.0f : 0.0f);
}

// Finite numbers whose result is infinite lost what is beyond the largest number.
TILE_DEVICE double loss_at_infinity(const nearest& r) {
  if (size_of(r.value) < wide_infinity) return r.loss;
  return r.value > 0.0 ? -1.0 : 1.0;
}

// An exact zero that is the sum of opposite numbers is negative when rounding down.
TILE_DEVICE bool turns_negative(const nearest& r, const split& terms) {
  const bool both_positive = terms.high == 0.0 && terms.low == 0.0 && !is_negative(terms.high) &&
                             !is_negative(terms.low);
  return r.value == 0.0 && !is_negative(r.value) && !both_positive;
}

template <class O, rounding MODE, class T>
TILE_DEVICE T rounded(T a, T b = T(), T c = T()) {
  if constexpr (!same<T, double> && !same<T, float>) {
    return cast<T>(rounded<O, MODE>(to_float(a), to_float(b), to_float(c)));
  } else {
    const double x = a, y = b, z = c;
    nearest r = O::of(x, y, z);
    T result;
    if constexpr (same<T, double>) {
      const bool are_numbers = is_number(x) && is_number(y) && is_number(z);
      if (O::can_overflow && are_numbers) r.loss = loss_at_infinity(r);
      result = directed<MODE>(r.value, r.loss);
    } else {
      result = narrowed_to_float<MODE>(made_odd(r));
    }
    if constexpr (O::is_sum && MODE == rounding::rd) {
      if (result == T(0) && turns_negative(r, O::terms(x, y, z))) return -T(0);
    }
    return result;
  }
}

#define TILE_ROUNDED(MODE)                                                                        \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_add_##MODE(T a, T b) { return rounded<addition, rounding::MODE>(a, b); }     \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_sub_##MODE(T a, T b) { return rounded<subtraction, rounding::MODE>(a, b); }  \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_mul_##MODE(T a, T b) {                                                       \
    return rounded<multiplication, rounding::MODE>(a, b);                                         \
  }                                                                                               \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_fdiv_##MODE(T a, T b) { return rounded<division, rounding::MODE>(a, b); }    \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_fmaf_##MODE(T a, T b, T c) {                                                 \
    return rounded<multiply_add, rounding::MODE>(a, b, c);                                        \
  }                                                                                               \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_frcp_##MODE(T a) { return rounded<inverse, rounding::MODE>(a); }             \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_fsqrt_##MODE(T a) { return rounded<root, rounding::MODE>(a); }               \
  template <class T>                                                                              \
  TILE_DEVICE T ieee_frsqrt_##MODE(T a) { return rounded<inverse_root, rounding::MODE>(a); }
TILE_ROUNDED(rn)
TILE_ROUNDED(rz)
TILE_ROUNDED(ru)
TILE_ROUNDED(rd)
#undef TILE_ROUNDED

// a / b in float32, for many a to one b: the reciprocal is made once. `most` is not beyond it, and
// `more` what it lacks, never zero and of the same sign, so that infinities and zeros come out as
// in a division. The sum is off by less than the quotients of two float32 numbers keep from the
// middle between two such numbers, and exact where it is one: it rounds as the quotient does.
TILE_DEVICE float quotient(float a, float b) {
  const double x = a, divisor = b, near = 1.0 / divisor;
  const bool is_beyond = mad(-divisor, near, 1.0) < 0.0;
  const double most = bits_as<double>(bits_as<u64>(near) - static_cast<u64>(is_beyond));
  const double lack = size_of(mad(-divisor, most, 1.0) * most);
  const double more = lack > 1e-300 ? lack : 1e-300;
  return static_cast<float>(mad(x, most, x * __builtin_copysign(more, most)));
}

}  // namespace tile
