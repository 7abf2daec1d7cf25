// The units for special functions: about 1 ulp; subnormal arguments and results count as zero.
// Source: AMD, "CDNA3 Instruction Set Architecture", 12.7 "VOP1 Instructions".
#pragma once
#include "tile_hip/math/common.h"

namespace tile {
namespace unit {

#if TILE_ON_GPU
#if __has_builtin(__builtin_amdgcn_exp2f) && __has_builtin(__builtin_amdgcn_logf)
TILE_DEVICE float exp2(float x) { return __builtin_amdgcn_exp2f(x); }
TILE_DEVICE float log2(float x) { return __builtin_amdgcn_logf(x); }
#else  // before LLVM 17 these are the instructions
TILE_DEVICE float exp2(float x) { return __builtin_exp2f(x); }
TILE_DEVICE float log2(float x) { return __builtin_log2f(x); }
#endif
TILE_DEVICE float reciprocal(float x) { return __builtin_amdgcn_rcpf(x); }
TILE_DEVICE float rsqrt(float x) { return __builtin_amdgcn_rsqf(x); }
// Of x whole turns; |x| <= 256.
TILE_DEVICE float sine(float turns) { return __builtin_amdgcn_sinf(turns); }
TILE_DEVICE float cosine(float turns) { return __builtin_amdgcn_cosf(turns); }
// The middle one of three numbers.
TILE_DEVICE float middle(float a, float b, float c) { return __builtin_amdgcn_fmed3f(a, b, c); }
#else
// Models of them come with the tests.
float exp2(float x);
float log2(float x);
float reciprocal(float x);
float rsqrt(float x);
float sine(float turns);
float cosine(float turns);
float middle(float a, float b, float c);
#endif

}  // namespace unit
}  // namespace tile
