// Matrix products of float16, bfloat16, float32 (as tf32) and float64.
#pragma once
#include "tile_cuda/cast.h"

namespace tile {

// Defines one overload whose operands are words: D, A and B of them per lane.
#define TILE_W1(p) "r"(word(p, 0))
#define TILE_W2(p) TILE_W1(p), "r"(word(p, 1))
#define TILE_W4(p) TILE_W2(p), "r"(word(p, 2)), "r"(word(p, 3))
#define TILE_SUM4(C) C(d[0]), C(d[1]), C(d[2]), C(d[3])
#define TILE_SUM8(C) TILE_SUM4(C), C(d[4]), C(d[5]), C(d[6]), C(d[7])
#define TILE_F32(x) "+f"(x)
#define TILE_S32(x) "+r"(x)

// An overload that an architecture lacks: refused when it is used.
#define TILE_NO_MMA(NAME, D, A, B, NEEDS)                                         \
  template <class T = void>                                                       \
  TILE_DEVICE void NAME(D* d, const A* a, const B* b) {                           \
    static_assert(never<T>, "tile::" #NAME " on " #A " needs " NEEDS);            \
  }

// float16 sums: two to a word.
#define TILE_MMA_F16_SUM(NAME, A, B, TEXT, ...)                                   \
  TILE_DEVICE void NAME(half_t* d, const A* a, const B* b) {                      \
    u32 sum[2] = {word(d, 0), word(d, 1)};                                        \
    asm volatile(TEXT : "+r"(sum[0]), "+r"(sum[1]) : __VA_ARGS__);                \
    set_word(d, 0, sum[0]);                                                       \
    set_word(d, 1, sum[1]);                                                       \
  }

// Volta: each of four groups of eight threads multiplies 8x4 by 4x8. A thread holds four neighbours
// of a row of the first factor and of a column of the second; in the forms with a suffix of a row
// or of a column, as it says.
#define TILE_MMA_VOLTA(NAME, ORDERS)                                                          \
  TILE_DEVICE void NAME(float* d, const half_t* a, const half_t* b) {                         \
    asm volatile("mma.sync.aligned.m8n8k4." ORDERS                                            \
                 ".f32.f16.f16.f32 {%0, %1, %2, %3, %4, %5, %6, %7}, "                        \
                 "{%8, %9}, {%10, %11}, {%0, %1, %2, %3, %4, %5, %6, %7};"                    \
                 : TILE_SUM8(TILE_F32)                                                        \
                 : TILE_W2(a), TILE_W2(b));                                                   \
  }                                                                                           \
  TILE_DEVICE void NAME(half_t* d, const half_t* a, const half_t* b) {                        \
    u32 sum[4] = {word(d, 0), word(d, 1), word(d, 2), word(d, 3)};                            \
    asm volatile("mma.sync.aligned.m8n8k4." ORDERS                                            \
                 ".f16.f16.f16.f16 {%0, %1, %2, %3}, {%4, %5}, {%6, %7}, {%0, %1, %2, %3};"   \
                 : "+r"(sum[0]), "+r"(sum[1]), "+r"(sum[2]), "+r"(sum[3])                     \
                 : TILE_W2(a), TILE_W2(b));                                                   \
    TILE_UNROLL                                                                               \
    for (int i = 0; i < 4; ++i) set_word(d, i, sum[i]);                                       \
  }
TILE_MMA_VOLTA(mma_m8n8k4, "row.col")
TILE_MMA_VOLTA(mma_m8n8k4_row_row, "row.row")
TILE_MMA_VOLTA(mma_m8n8k4_col_col, "col.col")
TILE_MMA_VOLTA(mma_m8n8k4_col_row, "col.row")

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
TILE_NO_MMA(mma_m16n8k8, float, half_t, half_t, "sm_75 or newer")
TILE_NO_MMA(mma_m16n8k8, half_t, half_t, half_t, "sm_75 or newer")
#else
TILE_DEVICE void mma_m16n8k8(float* d, const half_t* a, const half_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : TILE_SUM4(TILE_F32)
      : TILE_W2(a), TILE_W1(b));
}
TILE_MMA_F16_SUM(mma_m16n8k8, half_t, half_t,
                 "mma.sync.aligned.m16n8k8.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3}, {%4}, "
                 "{%0, %1};",
                 TILE_W2(a), TILE_W1(b))
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
TILE_NO_MMA(mma_m8n8k4, double, double, double, "sm_80 or newer")
TILE_NO_MMA(mma_m16n8k4, float, float, float, "sm_80 or newer")
TILE_NO_MMA(mma_m16n8k8, float, float, float, "sm_80 or newer")
TILE_NO_MMA(mma_m16n8k8, float, bfloat16_t, bfloat16_t, "sm_80 or newer")
TILE_NO_MMA(mma_m16n8k16, float, bfloat16_t, bfloat16_t, "sm_80 or newer")
TILE_NO_MMA(mma_m16n8k16, float, half_t, half_t, "sm_80 or newer; use mma_m16n8k8")
TILE_NO_MMA(mma_m16n8k16, half_t, half_t, half_t, "sm_80 or newer; use mma_m16n8k8")
#else
TILE_DEVICE void mma_m16n8k16(float* d, const half_t* a, const half_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.f16.f16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : TILE_SUM4(TILE_F32)
      : TILE_W4(a), TILE_W2(b));
}
TILE_MMA_F16_SUM(mma_m16n8k16, half_t, half_t,
                 "mma.sync.aligned.m16n8k16.row.col.f16.f16.f16.f16 {%0, %1}, {%2, %3, %4, %5}, "
                 "{%6, %7}, {%0, %1};",
                 TILE_W4(a), TILE_W2(b))
TILE_DEVICE void mma_m16n8k8(float* d, const bfloat16_t* a, const bfloat16_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : TILE_SUM4(TILE_F32)
      : TILE_W2(a), TILE_W1(b));
}
TILE_DEVICE void mma_m16n8k16(float* d, const bfloat16_t* a, const bfloat16_t* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : TILE_SUM4(TILE_F32)
      : TILE_W4(a), TILE_W2(b));
}

// float32 rounded to the 19 bits of tf32, to nearest and away from zero in the middle.
TILE_DEVICE u32 to_tf32(float x) {
  u32 y;
  asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  return y;
}
TILE_DEVICE void mma_m16n8k4(float* d, const float* a, const float* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k4.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5}, {%6}, "
      "{%0, %1, %2, %3};"
      : TILE_SUM4(TILE_F32)
      : "r"(to_tf32(a[0])), "r"(to_tf32(a[1])), "r"(to_tf32(b[0])));
}
TILE_DEVICE void mma_m16n8k8(float* d, const float* a, const float* b) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, "
      "{%8, %9}, {%0, %1, %2, %3};"
      : TILE_SUM4(TILE_F32)
      : "r"(to_tf32(a[0])), "r"(to_tf32(a[1])), "r"(to_tf32(a[2])), "r"(to_tf32(a[3])),
        "r"(to_tf32(b[0])), "r"(to_tf32(b[1])));
}
TILE_DEVICE void mma_m8n8k4(double* d, const double* a, const double* b) {
  asm volatile(
      "mma.sync.aligned.m8n8k4.row.col.f64.f64.f64.f64 {%0, %1}, {%2}, {%3}, {%0, %1};"
      : "+d"(d[0]), "+d"(d[1])
      : "d"(a[0]), "d"(b[0]));
}
#endif

}  // namespace tile
