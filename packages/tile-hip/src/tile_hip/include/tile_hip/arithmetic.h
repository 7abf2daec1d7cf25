// Arithmetic beyond C's operators, for all element types.
#pragma once
#include "tile_hip/cast.h"
#include "tile_narrow_operators.h"

namespace tile {

// bfloat16 computes in float32 and rounds once.
#define TILE_BFLOAT16_OPERATOR(OP)                                                             \
  TILE_DEVICE bfloat16_t operator OP(bfloat16_t a, bfloat16_t b) {                             \
    return rounded_bfloat16(static_cast<float>(a) OP static_cast<float>(b));                   \
  }
#define TILE_BFLOAT16_COMPARISON(OP)                                                           \
  TILE_DEVICE bool operator OP(bfloat16_t a, bfloat16_t b) {                                   \
    return static_cast<float>(a) OP static_cast<float>(b);                                     \
  }
TILE_BFLOAT16_OPERATOR(+)
TILE_BFLOAT16_OPERATOR(-)
TILE_BFLOAT16_OPERATOR(*)
TILE_BFLOAT16_OPERATOR(/)
TILE_BFLOAT16_COMPARISON(==)
TILE_BFLOAT16_COMPARISON(!=)
TILE_BFLOAT16_COMPARISON(<)
TILE_BFLOAT16_COMPARISON(<=)
TILE_BFLOAT16_COMPARISON(>)
TILE_BFLOAT16_COMPARISON(>=)
#undef TILE_BFLOAT16_OPERATOR
#undef TILE_BFLOAT16_COMPARISON
TILE_DEVICE bfloat16_t operator-(bfloat16_t a) { return {static_cast<u16>(a.bits ^ 0x8000u)}; }

template <class T>
TILE_DEVICE typename when<is_narrow<T>, T>::type operator-(T a) {
  return cast<T>(-to_float(a));
}

// The smaller and the larger; a number rather than NaN.
template <class T>
TILE_DEVICE T min(T a, T b) {
  if constexpr (same<T, float>) {
    return __builtin_fminf(a, b);
  } else if constexpr (same<T, double>) {
    return __builtin_fmin(a, b);
#if TILE_ON_GPU
  } else if constexpr (same<T, half_t>) {
    return __builtin_fminf16(a, b);
#endif
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_fminf(to_float(a), to_float(b)));
  } else {
    return b < a ? b : a;
  }
}

template <class T>
TILE_DEVICE T max(T a, T b) {
  if constexpr (same<T, float>) {
    return __builtin_fmaxf(a, b);
  } else if constexpr (same<T, double>) {
    return __builtin_fmax(a, b);
#if TILE_ON_GPU
  } else if constexpr (same<T, half_t>) {
    return __builtin_fmaxf16(a, b);
#endif
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_fmaxf(to_float(a), to_float(b)));
  } else {
    return a < b ? b : a;
  }
}

// The smaller and the larger; NaN if either is.
template <class T>
TILE_DEVICE T min_nan(T a, T b) {
  if constexpr (is_float<T>) {
    return a != a || b != b ? cast<T>(TILE_NAN) : min(a, b);
  } else {
    return min(a, b);
  }
}

template <class T>
TILE_DEVICE T max_nan(T a, T b) {
  if constexpr (is_float<T>) {
    return a != a || b != b ? cast<T>(TILE_NAN) : max(a, b);
  } else {
    return max(a, b);
  }
}

// The float itself; the optimizer does not see where it comes from.
template <class T>
TILE_DEVICE T opaque(T x) {
#if TILE_ON_GPU
  if constexpr (same<T, float> || same<T, double> || same<T, half_t>) asm("" : "+v"(x));
#endif
  return x;
}

template <class T>
TILE_DEVICE T abs(T x) {
  if constexpr (same<T, double>) {
    return __builtin_fabs(x);
  } else if constexpr (is_half<T>) {
    return bits_as<T>(static_cast<u16>(bits_as<u16>(x) & 0x7fffu));
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_fabsf(to_float(x)));
  } else if constexpr (is_signed<T>) {
    return static_cast<T>(x < 0 ? -x : x);
  } else {
    return x;
  }
}

// What an integer is divided by where `b` is zero, or the quotient would be no number of the type:
// zero gives the quotient 0 and the remainder a; the lowest number over -1 is itself again.
template <class T>
TILE_DEVICE T divisor_of(T a, T b) {
  constexpr bool may_overflow = is_signed<T> && sizeof(T) >= sizeof(int);
  if constexpr (may_overflow) {
    constexpr T lowest = static_cast<T>(u64(1) << (8 * sizeof(T) - 1));
    return b == T(0) || (b == T(-1) && a == lowest) ? T(1) : b;
  } else {
    return b == T(0) ? T(1) : b;
  }
}
template <class T>
TILE_DEVICE T whole_quotient(T a, T b) {
  return b == T(0) ? T(0) : static_cast<T>(a / divisor_of(a, b));
}
template <class T>
TILE_DEVICE T whole_remainder(T a, T b) {
  return b == T(0) ? a : static_cast<T>(a % divisor_of(a, b));
}

// Quotient rounded down, and the remainder that goes with it.
template <class T>
TILE_DEVICE T floordiv(T a, T b) {
  if constexpr (same<T, double>) {
    return __builtin_floor(a / b);
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_floorf(to_float(a) / to_float(b)));
  } else if constexpr (is_signed<T>) {
    const T quotient = whole_quotient(a, b);
    const bool is_rounded_up = (a < 0) != (b < 0) && b != 0 && quotient * b != a;
    return static_cast<T>(quotient - is_rounded_up);
  } else {
    return whole_quotient(a, b);
  }
}

template <class T>
TILE_DEVICE T floormod(T a, T b) {
  if constexpr (same<T, double>) {
    return a - __builtin_floor(a / b) * b;
  } else if constexpr (is_float<T>) {
    const float x = to_float(a), y = to_float(b);
    return cast<T>(x - __builtin_floorf(x / y) * y);
  } else if constexpr (is_signed<T>) {
    const T rest = whole_remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    return whole_remainder(a, b);
  }
}

// Counting bits, within the width of the type.
template <class T>
TILE_DEVICE int popcount(T x) {
  return __builtin_popcountll(static_cast<u64>(static_cast<bits_of<T>>(x)));
}
TILE_DEVICE int popcount(u32 x) { return __builtin_popcount(x); }
TILE_DEVICE int popcount(int x) { return __builtin_popcount(static_cast<u32>(x)); }

TILE_DEVICE int leading_zeros(u32 x) { return x == 0 ? 32 : __builtin_clz(x); }
TILE_DEVICE int leading_zeros(u64 x) { return x == 0 ? 64 : __builtin_clzll(x); }
TILE_DEVICE int lowest_bit(u32 x) { return x == 0 ? 0 : __builtin_ctz(x) + 1; }
TILE_DEVICE int lowest_bit(u64 x) { return x == 0 ? 0 : __builtin_ctzll(x) + 1; }

template <class T>
TILE_DEVICE int clz(T x) {
  if constexpr (sizeof(T) == 8) {
    return leading_zeros(static_cast<u64>(x));
  } else {
    const int unused = 32 - 8 * static_cast<int>(sizeof(T));
    return leading_zeros(static_cast<u32>(static_cast<bits_of<T>>(x))) - unused;
  }
}

template <class T>
TILE_DEVICE int ffs(T x) {
  if constexpr (sizeof(T) == 8) {
    return lowest_bit(static_cast<u64>(x));
  } else {
    return lowest_bit(static_cast<u32>(static_cast<bits_of<T>>(x)));
  }
}
TILE_DEVICE int popcount(i4 x) { return __builtin_popcount(x.bits & 15u); }
TILE_DEVICE int popcount(u4 x) { return __builtin_popcount(x.bits & 15u); }
TILE_DEVICE int clz(i4 x) { return leading_zeros(x.bits & 15u) - 28; }
TILE_DEVICE int clz(u4 x) { return leading_zeros(x.bits & 15u) - 28; }
TILE_DEVICE int ffs(i4 x) { return lowest_bit(x.bits & 15u); }
TILE_DEVICE int ffs(u4 x) { return lowest_bit(x.bits & 15u); }

}  // namespace tile
