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
    const T quotient = static_cast<T>(a / b);
    return static_cast<T>(quotient - (quotient * b != a && (a < 0) != (b < 0)));
  } else {
    return static_cast<T>(a / b);
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
    const T rest = static_cast<T>(a % b);
    return rest != 0 && (rest < 0) != (b < 0) ? static_cast<T>(rest + b) : rest;
  } else {
    return static_cast<T>(a % b);
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
    return static_cast<T>(a / b);
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
    return static_cast<T>(a % b);
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
