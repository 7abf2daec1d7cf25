// Matrix products whose groups along K have scales (sm_120a, sm_121a).
//
// The first operand has a row of scales for each of its rows, the second for each of its columns:
// as many bytes as a step along K has groups, from byte `byte` of a word on. Of four lanes that
// share a row, lanes 2 * `lane` and 2 * `lane` + 1 give the scales of that row and of the one 8
// below; those of a column come from lane `lane`. Other lanes' words count for nothing.
// PTX ISA, "Block scaling for mma.sync".
#pragma once
#include "tile_cuda/mma_float.h"

namespace tile {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 1200
template <class D, class A, class B, class S, class... T>
TILE_DEVICE void mma_scaled_m16n8k32(D* d, const A* a, const B* b, const S* sfa, const S* sfb, T... at) {
  static_assert(never<D>, "tile::mma_scaled_m16n8k32 needs sm_120a or sm_121a");
}
template <class D, class A, class B, class S, class... T>
TILE_DEVICE void mma_scaled_m16n8k64(D* d, const A* a, const B* b, const S* sfa, const S* sfb, T... at) {
  static_assert(never<D>, "tile::mma_scaled_m16n8k64 needs sm_120a or sm_121a");
}
#else
#define TILE_MMA_SCALED(NAME, A, B, S, KIND, TYPES)                                             \
  TILE_DEVICE void NAME(float* d, const A* a, const B* b, const S* sfa, const S* sfb,            \
                        int a_byte, int a_lane, int b_byte, int b_lane) {                        \
    asm volatile("mma.sync.aligned." KIND ".f32." TYPES                                          \
                 " {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3}, {%10}, "      \
                 "{%12, %13}, {%11}, {%14, %15};"                                                \
                 : TILE_SUM4(TILE_F32)                                                           \
                 : TILE_W4(a), TILE_W2(b), TILE_W1(sfa), TILE_W1(sfb),                           \
                   "h"(static_cast<u16>(a_byte)), "h"(static_cast<u16>(a_lane)),                 \
                   "h"(static_cast<u16>(b_byte)), "h"(static_cast<u16>(b_lane)));                \
  }
#define TILE_MMA_SCALED_BYTES(A, B, TYPES)                                                       \
  TILE_MMA_SCALED(mma_scaled_m16n8k32, A, B, e8m0,                                               \
                  "m16n8k32.row.col.kind::mxf8f6f4.block_scale.scale_vec::1X",                   \
                  TYPES ".f32.ue8m0")
TILE_MMA_SCALED_BYTES(e4m3, e4m3, "e4m3.e4m3")
TILE_MMA_SCALED_BYTES(e4m3, e5m2, "e4m3.e5m2")
TILE_MMA_SCALED_BYTES(e5m2, e4m3, "e5m2.e4m3")
TILE_MMA_SCALED_BYTES(e5m2, e5m2, "e5m2.e5m2")
#undef TILE_MMA_SCALED_BYTES
// Two float4_e2m1fn to a byte: their groups are of 32, or of 16.
TILE_MMA_SCALED(mma_scaled_m16n8k64, u8, u8, e8m0,
                "m16n8k64.row.col.kind::mxf4.block_scale.scale_vec::2X", "e2m1.e2m1.f32.ue8m0")
TILE_MMA_SCALED(mma_scaled_m16n8k64, u8, u8, e4m3,
                "m16n8k64.row.col.kind::mxf4nvf4.block_scale.scale_vec::4X",
                "e2m1.e2m1.f32.ue4m3")
#undef TILE_MMA_SCALED
#endif

}  // namespace tile
