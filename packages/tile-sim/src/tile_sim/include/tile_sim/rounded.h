// IEEE operations with a given rounding: nearest even, toward zero, up, down.
#pragma once
#include "tile_sim/arithmetic.h"

namespace tile {

enum class rounding { rn, rz, ru, rd };

template <class T>
TILE_HOST T rounded(tsim_rounded_operation operation, rounding mode, T a, T b = T(), T c = T()) {
  if constexpr (same<T, double>) {
    return tsim_rounded(operation, a, b, c, (int)mode, 1);
  } else {
    return cast<T>((float)tsim_rounded(operation, to_float(a), to_float(b), to_float(c), (int)mode,
                                       0));
  }
}

#define TSIM_ROUNDED(MODE)                                                                       \
  template <class T>                                                                             \
  TILE_HOST T ieee_add_##MODE(T a, T b) { return rounded(TSIM_ROUND_ADD, rounding::MODE, a, b); } \
  template <class T>                                                                             \
  TILE_HOST T ieee_sub_##MODE(T a, T b) { return rounded(TSIM_ROUND_SUB, rounding::MODE, a, b); } \
  template <class T>                                                                             \
  TILE_HOST T ieee_mul_##MODE(T a, T b) { return rounded(TSIM_ROUND_MUL, rounding::MODE, a, b); } \
  template <class T>                                                                             \
  TILE_HOST T ieee_fdiv_##MODE(T a, T b) { return rounded(TSIM_ROUND_DIV, rounding::MODE, a, b); } \
  template <class T>                                                                             \
  TILE_HOST T ieee_fmaf_##MODE(T a, T b, T c) {                                                  \
    return rounded(TSIM_ROUND_FMA, rounding::MODE, a, b, c);                                     \
  }                                                                                              \
  template <class T>                                                                             \
  TILE_HOST T ieee_frcp_##MODE(T a) { return rounded(TSIM_ROUND_RCP, rounding::MODE, a); }       \
  template <class T>                                                                             \
  TILE_HOST T ieee_fsqrt_##MODE(T a) { return rounded(TSIM_ROUND_SQRT, rounding::MODE, a); }     \
  template <class T>                                                                             \
  TILE_HOST T ieee_frsqrt_##MODE(T a) { return rounded(TSIM_ROUND_RSQRT, rounding::MODE, a); }
TSIM_ROUNDED(rn)
TSIM_ROUNDED(rz)
TSIM_ROUNDED(ru)
TSIM_ROUNDED(rd)
#undef TSIM_ROUNDED

// a / b in float32, made for many a to one b on other machines.
TILE_HOST float quotient(float a, float b) { return a / b; }

}  // namespace tile
