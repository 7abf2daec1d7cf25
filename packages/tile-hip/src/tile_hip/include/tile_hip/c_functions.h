// The functions of C that the user's own functions call, where no library of AMD has them.
#pragma once
#include "tile_hip/math.h"

#if TILE_BARE

#define TILE_C_FUNCTION(NAME, OURS)                                              \
  TILE_DEVICE float NAME##f(float x) { return tile::OURS(x); }                   \
  TILE_DEVICE float NAME(float x) { return tile::OURS(x); }                      \
  TILE_DEVICE double NAME(double x) { return tile::OURS(x); }
#define TILE_C_FUNCTION_OF_TWO(NAME, OURS)                                       \
  TILE_DEVICE float NAME##f(float x, float y) { return tile::OURS(x, y); }       \
  TILE_DEVICE float NAME(float x, float y) { return tile::OURS(x, y); }          \
  TILE_DEVICE double NAME(double x, double y) { return tile::OURS(x, y); }
#define TILE_SAME(DEFINE, NAME) DEFINE(NAME, NAME)
TILE_SAME(TILE_C_FUNCTION, exp)
TILE_SAME(TILE_C_FUNCTION, exp2)
TILE_SAME(TILE_C_FUNCTION, exp10)
TILE_SAME(TILE_C_FUNCTION, expm1)
TILE_SAME(TILE_C_FUNCTION, log)
TILE_SAME(TILE_C_FUNCTION, log2)
TILE_SAME(TILE_C_FUNCTION, log10)
TILE_SAME(TILE_C_FUNCTION, log1p)
TILE_SAME(TILE_C_FUNCTION, sqrt)
TILE_SAME(TILE_C_FUNCTION, rsqrt)
TILE_SAME(TILE_C_FUNCTION, sin)
TILE_SAME(TILE_C_FUNCTION, cos)
TILE_SAME(TILE_C_FUNCTION, tan)
TILE_SAME(TILE_C_FUNCTION, asin)
TILE_SAME(TILE_C_FUNCTION, acos)
TILE_SAME(TILE_C_FUNCTION, atan)
TILE_SAME(TILE_C_FUNCTION, sinh)
TILE_SAME(TILE_C_FUNCTION, cosh)
TILE_SAME(TILE_C_FUNCTION, tanh)
TILE_SAME(TILE_C_FUNCTION, asinh)
TILE_SAME(TILE_C_FUNCTION, acosh)
TILE_SAME(TILE_C_FUNCTION, atanh)
TILE_SAME(TILE_C_FUNCTION, erf)
TILE_SAME(TILE_C_FUNCTION, floor)
TILE_SAME(TILE_C_FUNCTION, ceil)
TILE_SAME(TILE_C_FUNCTION, trunc)
TILE_SAME(TILE_C_FUNCTION, nearbyint)
TILE_C_FUNCTION(rint, nearbyint)
TILE_C_FUNCTION(fabs, abs)
TILE_SAME(TILE_C_FUNCTION_OF_TWO, pow)
TILE_SAME(TILE_C_FUNCTION_OF_TWO, fmod)
TILE_SAME(TILE_C_FUNCTION_OF_TWO, hypot)
TILE_SAME(TILE_C_FUNCTION_OF_TWO, copysign)
TILE_SAME(TILE_C_FUNCTION_OF_TWO, atan2)
TILE_SAME(TILE_C_FUNCTION_OF_TWO, nextafter)
TILE_C_FUNCTION_OF_TWO(fmin, min)
TILE_C_FUNCTION_OF_TWO(fmax, max)
#undef TILE_SAME
#undef TILE_C_FUNCTION
#undef TILE_C_FUNCTION_OF_TWO

// Halves go away from zero, as C has it.
TILE_DEVICE float roundf(float x) { return tile::trunc(x + tile::copysign(0x1.fffffep-2f, x)); }
TILE_DEVICE double round(double x) {
  return tile::trunc(x + tile::copysign(0x1.fffffffffffffp-2, x));
}
TILE_DEVICE float fmaf(float x, float y, float z) { return tile::fma(x, y, z); }
TILE_DEVICE double fma(double x, double y, double z) { return tile::fma(x, y, z); }
TILE_DEVICE float ldexpf(float x, int n) { return tile::ldexp(x, n); }
TILE_DEVICE double ldexp(double x, int n) { return tile::ldexp(x, n); }

template <class T>
TILE_DEVICE T abs(T x) { return tile::abs(x); }
template <class T>
TILE_DEVICE bool isnan(T x) { return tile::isnan(x); }
template <class T>
TILE_DEVICE bool isinf(T x) { return tile::isinf(x); }
template <class T>
TILE_DEVICE bool isfinite(T x) { return tile::isfinite(x); }
template <class T>
TILE_DEVICE T min(T a, T b) { return tile::min(a, b); }
template <class T>
TILE_DEVICE T max(T a, T b) { return tile::max(a, b); }

TILE_DEVICE void* memcpy(void* to, const void* from, size_t bytes) {
  return __builtin_memcpy(to, from, bytes);
}
TILE_DEVICE void* memset(void* to, int value, size_t bytes) {
  return __builtin_memset(to, value, bytes);
}
TILE_DEVICE void __syncthreads() { tile::sync(); }

template <class... T>
TILE_DEVICE int printf(const char*, const T&...) {
  static_assert(tile::never<T...>,
                "printf needs hiprtc or hipcc: clang alone has none for AMD GPUs");
  return 0;
}

#endif
