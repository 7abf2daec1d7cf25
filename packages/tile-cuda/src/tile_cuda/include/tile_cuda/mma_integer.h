// Matrix products of 8-bit and 4-bit integers, summed in int32; signs may be mixed.
#pragma once
#include "tile_cuda/mma_float.h"

namespace tile {

#define TILE_MMA_K16(A, B, TYPES)                                                              \
  TILE_DEVICE void mma_m16n8k16(int* d, const A* a, const B* b) {                              \
    asm volatile("mma.sync.aligned.m16n8k16.row.col.s32." TYPES                                \
                 ".s32 {%0, %1, %2, %3}, {%4, %5}, {%6}, {%0, %1, %2, %3};"                    \
                 : TILE_SUM4(TILE_S32)                                                         \
                 : TILE_W2(a), TILE_W1(b));                                                    \
  }
#define TILE_MMA_WIDE(NAME, SHAPE, A, B, TYPES)                                                \
  TILE_DEVICE void NAME(int* d, const A* a, const B* b) {                                      \
    asm volatile("mma.sync.aligned." SHAPE ".row.col.s32." TYPES                               \
                 ".s32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"        \
                 : TILE_SUM4(TILE_S32)                                                         \
                 : TILE_W4(a), TILE_W2(b));                                                    \
  }
#define TILE_MMA_SMALL(NAME, SHAPE, A, B, TYPES)                                               \
  TILE_DEVICE void NAME(int* d, const A* a, const B* b) {                                      \
    asm volatile("mma.sync.aligned." SHAPE ".row.col.s32." TYPES                               \
                 ".s32 {%0, %1}, {%2}, {%3}, {%0, %1};"                                        \
                 : "+r"(d[0]), "+r"(d[1])                                                      \
                 : TILE_W1(a), TILE_W1(b));                                                    \
  }
#define TILE_FOR_SIGNS(DEFINE) \
  DEFINE(i8, i8, "s8.s8")      \
  DEFINE(i8, u8, "s8.u8")      \
  DEFINE(u8, i8, "u8.s8")      \
  DEFINE(u8, u8, "u8.u8")

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#define TILE_NO_SMALL(A, B, TYPES)                        \
  TILE_NO_MMA(mma_m8n8k16, int, A, B, "sm_75 or newer")  \
  TILE_NO_MMA(mma_m8n8k32, int, A, B, "sm_75 or newer")
TILE_FOR_SIGNS(TILE_NO_SMALL)
#undef TILE_NO_SMALL
#else
#define TILE_K16(A, B, TYPES) TILE_MMA_SMALL(mma_m8n8k16, "m8n8k16", A, B, TYPES)
TILE_FOR_SIGNS(TILE_K16)
#undef TILE_K16
// 4-bit elements: each byte of the registers holds two, the low half first; its type tells
// the sign.
TILE_MMA_SMALL(mma_m8n8k32, "m8n8k32", i8, i8, "s4.s4")
TILE_MMA_SMALL(mma_m8n8k32, "m8n8k32", i8, u8, "s4.u4")
TILE_MMA_SMALL(mma_m8n8k32, "m8n8k32", u8, i8, "u4.s4")
TILE_MMA_SMALL(mma_m8n8k32, "m8n8k32", u8, u8, "u4.u4")
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
#define TILE_NO_K(A, B, TYPES)                                                   \
  TILE_NO_MMA(mma_m16n8k16, int, A, B, "sm_80 or newer; use mma_m8n8k16")        \
  TILE_NO_MMA(mma_m16n8k32, int, A, B, "sm_80 or newer; use mma_m8n8k16")        \
  TILE_NO_MMA(mma_m16n8k64, int, A, B, "sm_80 or newer; use mma_m8n8k16")
TILE_FOR_SIGNS(TILE_NO_K)
#undef TILE_NO_K
#else
TILE_FOR_SIGNS(TILE_MMA_K16)
#define TILE_K32(A, B, TYPES) TILE_MMA_WIDE(mma_m16n8k32, "m16n8k32", A, B, TYPES)
TILE_FOR_SIGNS(TILE_K32)
#undef TILE_K32
TILE_MMA_WIDE(mma_m16n8k64, "m16n8k64", i8, i8, "s4.s4")
TILE_MMA_WIDE(mma_m16n8k64, "m16n8k64", i8, u8, "s4.u4")
TILE_MMA_WIDE(mma_m16n8k64, "m16n8k64", u8, i8, "u4.s4")
TILE_MMA_WIDE(mma_m16n8k64, "m16n8k64", u8, u8, "u4.u4")
#endif
#undef TILE_FOR_SIGNS

// Four products of bytes onto c: the instruction itself, for __dp4a does not compile under -G.
TILE_DEVICE int dp4a_signed(u32 a, u32 b, int c) {
  int d;
  asm("dp4a.s32.s32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
TILE_DEVICE int dp4a_unsigned(u32 a, u32 b, int c) {
  int d;
  asm("dp4a.u32.u32 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}

// *d += a[0] * b[0] + … + a[3] * b[3]
TILE_DEVICE void dp4a(int* d, const i8* a, const i8* b) {
  *d = dp4a_signed(word(a, 0), word(b, 0), *d);
}
TILE_DEVICE void dp4a(int* d, const u8* a, const u8* b) {
  *d = dp4a_unsigned(word(a, 0), word(b, 0), *d);
}
// The same as values: four bytes to a word.
TILE_DEVICE int dp4a(int a, int b, int c) {
  return dp4a_signed(static_cast<u32>(a), static_cast<u32>(b), c);
}
TILE_DEVICE int dp4a(const i8* a, const i8* b, int c) {
  dp4a(&c, a, b);
  return c;
}
TILE_DEVICE int dp4a(const i8* a, const i8* b, const int* c) { return dp4a(a, b, *c); }

}  // namespace tile
