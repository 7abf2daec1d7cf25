// Matrix products of a wave: d += a @ b, by PACK instructions along k.
//
// Let D = 32 or 16 be the rows of an instruction, G = 64 / D, L = K / G. Lane l holds row l % D of
// a and column l % D of b, both for k = PACK * L * (l / D) + e, e from 0 on; instruction p takes L
// of them from p * L on. Its operands are given the other way round, so that it makes the
// transposed product: lane l holds row l % D of d, in register r column 8 * (r / 4) +
// 4 * (l / 32) + r % 4 where D = 32, column 4 * (l / 16) + r where D = 16. Of float64, register r
// is column 4 * r + l / 16. Element e of a is in register AS * e, of b in BS * e, and register r of
// d is in DS * r: between them lie those of other products.
//
// What an architecture has is told here: compilers take names that they then cannot select.
// Source: AMD, "CDNA3 Instruction Set Architecture", chapter 7.
#pragma once
#include "tile_hip/bits.h"

namespace tile {

// Compilers move no instruction across: what reads ahead of products stays ahead of them.
TILE_DEVICE void keep_order() {
#if TILE_ON_GPU
  __builtin_amdgcn_sched_barrier(0);
#endif
}

// Every STRIDE-th of some registers as one value, and back.
template <class V, int STRIDE, class T>
TILE_DEVICE V picked(const T* registers) {
  if constexpr (STRIDE == 1) {
    return gathered<V>(registers);
  } else {
    T side_by_side[sizeof(V) / sizeof(T)];
    TILE_UNROLL
    for (unsigned i = 0; i < sizeof(V) / sizeof(T); ++i) side_by_side[i] = registers[i * STRIDE];
    return gathered<V>(side_by_side);
  }
}
template <int STRIDE, class T, class V>
TILE_DEVICE void put_back(T* registers, const V& value) {
  if constexpr (STRIDE == 1) {
    scatter(registers, value);
  } else {
    T side_by_side[sizeof(V) / sizeof(T)];
    scatter(side_by_side, value);
    TILE_UNROLL
    for (unsigned i = 0; i < sizeof(V) / sizeof(T); ++i) registers[i * STRIDE] = side_by_side[i];
  }
}

// `F` is what one instruction takes of a lane's factors, `N` registers what it sums in.
#define TILE_MFMA(NAME, SUM, N, A, B, F, BUILTIN)                                        \
  template <int PACK, int DS = 1, int AS = 1, int BS = 1>                                \
  TILE_DEVICE void NAME(SUM* d, const A* a, const B* b) {                                \
    constexpr int each = sizeof(F) / sizeof(A);                                          \
    auto sums = picked<vector<SUM, N>, DS>(d);                                           \
    TILE_UNROLL                                                                          \
    for (int p = 0; p < PACK; ++p) {                                                     \
      sums = BUILTIN(picked<F, BS>(b + p * each * BS), picked<F, AS>(a + p * each * AS), sums, \
                     0, 0, 0);                                                           \
    }                                                                                    \
    put_back<DS>(d, sums);                                                               \
  }
// Element types for which an architecture has no instruction of this shape.
#define TILE_NO_MFMA(NAME, NEEDS)                                                        \
  template <int PACK, int DS = 1, int AS = 1, int BS = 1, class S, class A, class B>     \
  TILE_DEVICE void NAME(S*, const A*, const B*) {                                        \
    static_assert(never<S, A, B>, "tile::" #NAME " of these element types needs " NEEDS); \
  }

typedef _Float16 half4 __attribute__((ext_vector_type(4)));
typedef _Float16 half8 __attribute__((ext_vector_type(8)));
typedef short short4 __attribute__((ext_vector_type(4)));
typedef int int4 __attribute__((ext_vector_type(4)));
typedef float float2 __attribute__((ext_vector_type(2)));

TILE_MFMA(mfma_32x32x8, float, 16, half_t, half_t, half4, __builtin_amdgcn_mfma_f32_32x32x8f16)
TILE_MFMA(mfma_16x16x16, float, 4, half_t, half_t, half4, __builtin_amdgcn_mfma_f32_16x16x16f16)
TILE_MFMA(mfma_32x32x8, float, 16, bfloat16_t, bfloat16_t, short4,
          __builtin_amdgcn_mfma_f32_32x32x8bf16_1k)
TILE_MFMA(mfma_16x16x16, float, 4, bfloat16_t, bfloat16_t, short4,
          __builtin_amdgcn_mfma_f32_16x16x16bf16_1k)
TILE_MFMA(mfma_32x32x2, float, 16, float, float, float, __builtin_amdgcn_mfma_f32_32x32x2f32)
TILE_MFMA(mfma_16x16x4, float, 4, float, float, float, __builtin_amdgcn_mfma_f32_16x16x4f32)
TILE_MFMA(mfma_16x16x4, double, 4, double, double, double, __builtin_amdgcn_mfma_f64_16x16x4f64)

#if defined(__gfx90a__)
TILE_MFMA(mfma_32x32x8, int, 16, i8, i8, int, __builtin_amdgcn_mfma_i32_32x32x8i8)
TILE_MFMA(mfma_16x16x16, int, 4, i8, i8, int, __builtin_amdgcn_mfma_i32_16x16x16i8)
TILE_NO_MFMA(mfma_32x32x8, "gfx942; bytes, signed ones, are summed in int32")
TILE_NO_MFMA(mfma_16x16x16, "gfx942; bytes, signed ones, are summed in int32")
#else
TILE_MFMA(mfma_32x32x16, int, 16, i8, i8, long, __builtin_amdgcn_mfma_i32_32x32x16_i8)
TILE_MFMA(mfma_16x16x32, int, 4, i8, i8, long, __builtin_amdgcn_mfma_i32_16x16x32_i8)
TILE_NO_MFMA(mfma_32x32x8, "gfx90a; here it is mfma_32x32x16 that takes bytes")
TILE_NO_MFMA(mfma_16x16x16, "gfx90a; here it is mfma_16x16x32 that takes bytes")
#endif

#if defined(__gfx942__) || defined(__gfx950__)
#if defined(__gfx942__)
using mfma_fp8 = e4m3_fnuz;
using mfma_bf8 = e5m2_fnuz;
#else
using mfma_fp8 = e4m3;
using mfma_bf8 = e5m2;
#endif
#define TILE_MFMA_FLOAT8(A, B, SUFFIX)                                                          \
  TILE_MFMA(mfma_32x32x16, float, 16, A, B, long, __builtin_amdgcn_mfma_f32_32x32x16_##SUFFIX)   \
  TILE_MFMA(mfma_16x16x32, float, 4, A, B, long, __builtin_amdgcn_mfma_f32_16x16x32_##SUFFIX)
TILE_MFMA_FLOAT8(mfma_fp8, mfma_fp8, fp8_fp8)
TILE_MFMA_FLOAT8(mfma_fp8, mfma_bf8, bf8_fp8)
TILE_MFMA_FLOAT8(mfma_bf8, mfma_fp8, fp8_bf8)
TILE_MFMA_FLOAT8(mfma_bf8, mfma_bf8, bf8_bf8)
#undef TILE_MFMA_FLOAT8
#endif

// float32 factors of which 10 bits behind the point count.
#if defined(__gfx942__)
TILE_MFMA(mfma_32x32x4, float, 16, float, float, float2, __builtin_amdgcn_mfma_f32_32x32x4_xf32)
TILE_MFMA(mfma_16x16x8, float, 4, float, float, float2, __builtin_amdgcn_mfma_f32_16x16x8_xf32)
#endif

#if defined(__gfx950__)
typedef __bf16 bfloat8 __attribute__((ext_vector_type(8)));
TILE_MFMA(mfma_32x32x16, float, 16, half_t, half_t, half8, __builtin_amdgcn_mfma_f32_32x32x16_f16)
TILE_MFMA(mfma_16x16x32, float, 4, half_t, half_t, half8, __builtin_amdgcn_mfma_f32_16x16x32_f16)
TILE_MFMA(mfma_32x32x16, float, 16, bfloat16_t, bfloat16_t, bfloat8,
          __builtin_amdgcn_mfma_f32_32x32x16_bf16)
TILE_MFMA(mfma_16x16x32, float, 4, bfloat16_t, bfloat16_t, bfloat8,
          __builtin_amdgcn_mfma_f32_16x16x32_bf16)
TILE_MFMA(mfma_32x32x32, int, 16, i8, i8, int4, __builtin_amdgcn_mfma_i32_32x32x32_i8)
TILE_MFMA(mfma_16x16x64, int, 4, i8, i8, int4, __builtin_amdgcn_mfma_i32_16x16x64_i8)
#endif

TILE_NO_MFMA(mfma_32x32x2, "an AMD GPU that is not known here; it takes float32")
TILE_NO_MFMA(mfma_16x16x4, "an AMD GPU that is not known here; it takes float32 and float64")
TILE_NO_MFMA(mfma_32x32x4, "gfx942, and float32")
TILE_NO_MFMA(mfma_16x16x8, "gfx942, and float32")
TILE_NO_MFMA(mfma_32x32x16, "gfx942 (bytes, float8 fnuz) or gfx950 (also of 16 bits, float8)")
TILE_NO_MFMA(mfma_16x16x32, "gfx942 (bytes, float8 fnuz) or gfx950 (also of 16 bits, float8)")
TILE_NO_MFMA(mfma_32x32x32, "gfx950, and signed bytes")
TILE_NO_MFMA(mfma_16x16x64, "gfx950, and signed bytes")
#undef TILE_MFMA
#undef TILE_NO_MFMA

}  // namespace tile
