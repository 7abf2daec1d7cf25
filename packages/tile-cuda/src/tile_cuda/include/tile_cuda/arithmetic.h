// Arithmetic beyond C's operators, for all element types.
#pragma once
#include "tile_cuda/cast.h"
#include "tile_narrow_operators.h"

namespace tile {

template <class T>
TILE_DEVICE typename when<is_narrow<T>, T>::type operator-(T a) {
  return cast<T>(-to_float(a));
}

// The smaller and the larger; a number rather than NaN.
template <class T>
TILE_DEVICE T min(T a, T b) {
  if constexpr (is_half<T>) {
    return __hmin(a, b);
  } else if constexpr (is_narrow<T>) {
    return cast<T>(::fminf(to_float(a), to_float(b)));
  } else if constexpr (same<T, float>) {
    return ::fminf(a, b);
  } else if constexpr (same<T, double>) {
    return ::fmin(a, b);
  } else {
    return b < a ? b : a;
  }
}

template <class T>
TILE_DEVICE T max(T a, T b) {
  if constexpr (is_half<T>) {
    return __hmax(a, b);
  } else if constexpr (is_narrow<T>) {
    return cast<T>(::fmaxf(to_float(a), to_float(b)));
  } else if constexpr (same<T, float>) {
    return ::fmaxf(a, b);
  } else if constexpr (same<T, double>) {
    return ::fmax(a, b);
  } else {
    return a < b ? b : a;
  }
}

// The smaller and the larger; NaN if either is.
template <class T>
TILE_DEVICE T min_nan(T a, T b) {
  if constexpr (is_float<T>) {
    return a != a || b != b ? cast<T>(__int_as_float(0x7fffffff)) : min(a, b);
  } else {
    return min(a, b);
  }
}

template <class T>
TILE_DEVICE T max_nan(T a, T b) {
  if constexpr (is_float<T>) {
    return a != a || b != b ? cast<T>(__int_as_float(0x7fffffff)) : max(a, b);
  } else {
    return max(a, b);
  }
}

// The float itself; the optimizer does not see where it comes from.
template <class T>
TILE_DEVICE T opaque(T x) {
  if constexpr (same<T, float>) {
    asm("" : "+f"(x));
  } else if constexpr (same<T, double>) {
    asm("" : "+d"(x));
  }
  return x;
}

template <class T>
TILE_DEVICE T abs(T x) {
  if constexpr (is_half<T>) {
    return __habs(x);
  } else if constexpr (is_narrow<T>) {
    return cast<T>(::fabsf(to_float(x)));
  } else if constexpr (same<T, float>) {
    return ::fabsf(x);
  } else if constexpr (same<T, double>) {
    return ::fabs(x);
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
  if constexpr (is_half<T> || is_narrow<T>) {
    return cast<T>(::floorf(to_float(a) / to_float(b)));
  } else if constexpr (same<T, float>) {
    return ::floorf(a / b);
  } else if constexpr (same<T, double>) {
    return ::floor(a / b);
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
  if constexpr (is_half<T> || is_narrow<T>) {
    const float x = to_float(a), y = to_float(b);
    return cast<T>(x - ::floorf(x / y) * y);
  } else if constexpr (same<T, float>) {
    return a - ::floorf(a / b) * b;
  } else if constexpr (same<T, double>) {
    return a - ::floor(a / b) * b;
  } else if constexpr (is_signed<T>) {
    const T rest = whole_remainder(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    return whole_remainder(a, b);
  }
}

// Quotient rounded toward zero, and the remainder that goes with it.
template <class T>
TILE_DEVICE T truncdiv(T a, T b) {
  if constexpr (is_half<T> || is_narrow<T>) {
    return cast<T>(::truncf(to_float(a) / to_float(b)));
  } else if constexpr (same<T, float>) {
    return ::truncf(a / b);
  } else if constexpr (same<T, double>) {
    return ::trunc(a / b);
  } else {
    return whole_quotient(a, b);
  }
}

template <class T>
TILE_DEVICE T truncmod(T a, T b) {
  if constexpr (is_half<T> || is_narrow<T>) {
    return cast<T>(::fmodf(to_float(a), to_float(b)));
  } else if constexpr (same<T, float>) {
    return ::fmodf(a, b);
  } else if constexpr (same<T, double>) {
    return ::fmod(a, b);
  } else {
    return whole_remainder(a, b);
  }
}

// Counting bits, within the width of the type.
template <class T>
TILE_DEVICE int popcount(T x) {
  if constexpr (sizeof(T) == 8) {
    return __popcll(static_cast<u64>(x));
  } else {
    return __popc(static_cast<bits_of<T>>(x));
  }
}

template <class T>
TILE_DEVICE int clz(T x) {
  if constexpr (sizeof(T) == 8) {
    return __clzll(static_cast<i64>(x));
  } else {
    return __clz(static_cast<int>(static_cast<bits_of<T>>(x))) - (32 - 8 * sizeof(T));
  }
}

template <class T>
TILE_DEVICE int ffs(T x) {
  if constexpr (sizeof(T) == 8) {
    return __ffsll(static_cast<i64>(x));
  } else {
    return __ffs(static_cast<int>(static_cast<bits_of<T>>(x)));
  }
}
TILE_DEVICE int popcount(i4 x) { return __popc(x.bits & 15); }
TILE_DEVICE int popcount(u4 x) { return __popc(x.bits & 15); }
TILE_DEVICE int clz(i4 x) { return __clz(x.bits & 15) - 28; }
TILE_DEVICE int clz(u4 x) { return __clz(x.bits & 15) - 28; }
TILE_DEVICE int ffs(i4 x) { return __ffs(x.bits & 15); }
TILE_DEVICE int ffs(u4 x) { return __ffs(x.bits & 15); }

}  // namespace tile
