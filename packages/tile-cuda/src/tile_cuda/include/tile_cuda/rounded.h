// IEEE operations with a given rounding: nearest even, toward zero, up, down.
#pragma once
#include "tile_cuda/cast.h"

namespace tile {

// Roots of reciprocals by way of float64: correct for float32 but in rarest cases.
TILE_DEVICE double double_rsqrt(float x) { return 1.0 / ::sqrt(static_cast<double>(x)); }

#define TILE_ROUNDED(NAME, PARAMETERS, ARGUMENTS, FLOATS, F32, F64)             \
  TILE_DEVICE float NAME PARAMETERS(float) { return F32 ARGUMENTS; }            \
  TILE_DEVICE double NAME PARAMETERS(double) { return F64 ARGUMENTS; }          \
  template <class T>                                                            \
  TILE_DEVICE T NAME PARAMETERS(T) {                                            \
    return cast<T>(F32 FLOATS);                                                 \
  }
#define TILE_ONE(T) (T a)
#define TILE_TWO(T) (T a, T b)
#define TILE_THREE(T) (T a, T b, T c)
#define TILE_FLOAT1 (to_float(a))
#define TILE_FLOAT2 (to_float(a), to_float(b))
#define TILE_FLOAT3 (to_float(a), to_float(b), to_float(c))
#define TILE_MODES(MODE)                                                                        \
  TILE_ROUNDED(ieee_add_##MODE, TILE_TWO, (a, b), TILE_FLOAT2, __fadd_##MODE, __dadd_##MODE)    \
  TILE_ROUNDED(ieee_sub_##MODE, TILE_TWO, (a, b), TILE_FLOAT2, __fsub_##MODE, __dsub_##MODE)    \
  TILE_ROUNDED(ieee_mul_##MODE, TILE_TWO, (a, b), TILE_FLOAT2, __fmul_##MODE, __dmul_##MODE)    \
  TILE_ROUNDED(ieee_fdiv_##MODE, TILE_TWO, (a, b), TILE_FLOAT2, __fdiv_##MODE, __ddiv_##MODE)   \
  TILE_ROUNDED(ieee_fmaf_##MODE, TILE_THREE, (a, b, c), TILE_FLOAT3, __fmaf_##MODE, __fma_##MODE) \
  TILE_ROUNDED(ieee_frcp_##MODE, TILE_ONE, (a), TILE_FLOAT1, __frcp_##MODE, __drcp_##MODE)      \
  TILE_ROUNDED(ieee_fsqrt_##MODE, TILE_ONE, (a), TILE_FLOAT1, __fsqrt_##MODE, __dsqrt_##MODE)   \
  TILE_DEVICE float ieee_frsqrt_##MODE(float a) { return __double2float_##MODE(double_rsqrt(a)); } \
  TILE_DEVICE double ieee_frsqrt_##MODE(double a) { return __drcp_##MODE(__dsqrt_rn(a)); }      \
  template <class T>                                                                            \
  TILE_DEVICE T ieee_frsqrt_##MODE(T a) {                                                       \
    return cast<T>(ieee_frsqrt_##MODE(to_float(a)));                                            \
  }
TILE_MODES(rn)
TILE_MODES(rz)
TILE_MODES(ru)
TILE_MODES(rd)
#undef TILE_MODES
#undef TILE_ROUNDED
#undef TILE_ONE
#undef TILE_TWO
#undef TILE_THREE
#undef TILE_FLOAT1
#undef TILE_FLOAT2
#undef TILE_FLOAT3

// a / b in float32, for many a to one b: the reciprocal is made once. `more` is what `most` lacks of
// it, never zero and of the same sign, so that infinities and zeros come out as in a division. The
// sum is off by less than the quotients of two float32 numbers keep from the middle between two
// such numbers, and exact where it is one: it rounds as the quotient does.
TILE_DEVICE float quotient(float a, float b) {
  const double most = __drcp_rz(b);
  const double more = ::fmax(::fabs(__fma_rn(-static_cast<double>(b), most, 1.0) * most), 1e-300);
  const double x = a;
  return static_cast<float>(__fma_rn(x, most, x * ::copysign(more, most)));
}

}  // namespace tile
