// Matrix products of 8-bit floats, on tensor cores that have them (sm_89).
#pragma once
#include "tile_cuda/mma_float.h"

namespace tile {

#define TILE_FOR_FLOAT8(DEFINE)     \
  DEFINE(e4m3, e4m3, "e4m3.e4m3")   \
  DEFINE(e4m3, e5m2, "e4m3.e5m2")   \
  DEFINE(e5m2, e4m3, "e5m2.e4m3")   \
  DEFINE(e5m2, e5m2, "e5m2.e5m2")

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 890
#define TILE_NO_FLOAT8(A, B, TYPES)                          \
  TILE_NO_MMA(mma_m16n8k16, float, A, B, "sm_89 or newer")   \
  TILE_NO_MMA(mma_m16n8k16, half_t, A, B, "sm_89 or newer")  \
  TILE_NO_MMA(mma_m16n8k32, float, A, B, "sm_89 or newer")   \
  TILE_NO_MMA(mma_m16n8k32, half_t, A, B, "sm_89 or newer")
TILE_FOR_FLOAT8(TILE_NO_FLOAT8)
#undef TILE_NO_FLOAT8
#else
#define TILE_MMA_FLOAT8(A, B, TYPES)                                                           \
  TILE_DEVICE void mma_m16n8k16(float* d, const A* a, const B* b) {                            \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.f32." TYPES                                \
                 ".f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                    \
                 : TILE_SUM4(TILE_F32)                                                         \
                 : TILE_W2(a), TILE_W1(b));                                                    \
  }                                                                                            \
  TILE_DEVICE void mma_m16n8k32(float* d, const A* a, const B* b) {                            \
    asm volatile("mma.sync.aligned.m16n8k32.row.col.f32." TYPES                                \
                 ".f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
                 : TILE_SUM4(TILE_F32)                                                         \
                 : TILE_W4(a), TILE_W2(b));                                                    \
  }                                                                                            \
  TILE_MMA_F16_SUM(mma_m16n8k16, A, B,                                                         \
                   "mma.sync.aligned.m16n8k16.row.col.f16." TYPES                              \
                   ".f16 {%0, %1}, {%2, %3}, {%4}, {%0, %1};",                                 \
                   TILE_W2(a), TILE_W1(b))                                                     \
  TILE_MMA_F16_SUM(mma_m16n8k32, A, B,                                                         \
                   "mma.sync.aligned.m16n8k32.row.col.f16." TYPES                              \
                   ".f16 {%0, %1}, {%2, %3, %4, %5}, {%6, %7}, {%0, %1};",                     \
                   TILE_W4(a), TILE_W2(b))
TILE_FOR_FLOAT8(TILE_MMA_FLOAT8)
#undef TILE_MMA_FLOAT8
#endif
#undef TILE_FOR_FLOAT8

}  // namespace tile
