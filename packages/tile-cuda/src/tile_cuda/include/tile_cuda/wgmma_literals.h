// Products of warpgroups for compilers that cannot paste constants into assembly: one for each
// number of registers and pair of types, with the types in its text.
#pragma once
#include "tile_cuda/wgmma_steps.h"

namespace tile {

template <class P>
using wgmma_key = typename P::types;

// How the text ends; operands I and J say along which dimension A and B lie.
#define TILE_SS_wide(I, J) ", 1, 1, %" #I ", %" #J
#define TILE_RS_wide(I, J) ", 1, 1, %" #J
#define TILE_SS_narrow(I, J) ", 1, 1"
#define TILE_RS_narrow(I, J) ", 1, 1"
#define TILE_SS_integer(I, J) ""
#define TILE_RS_integer(I, J) ""

#define TILE_WGMMA_LITERAL(FORM, FACTORS, TRUTH, SUMS, STEPS, R, W, LETTER, D, A, B, KIND, TYPES, \
                           I0, I1, I2, ...)                                                       \
  template <>                                                                                     \
  struct wgmma_form_##FORM<R, STEPS, wgmma_types<D, A, B>> {                                      \
    template <class P, class X>                                                                   \
    TILE_DEVICE static void of(W* d, const X* a, const u64* b) {                                  \
      asm volatile(                                                                               \
          TILE_WGMMA_TEXT(TRUTH, TILE_##FACTORS##STEPS(                                           \
                                     R, "wgmma.mma_async.sync.aligned.m64n%" #I0 TYPES,           \
                                     TILE_##FACTORS##_##KIND(I1, I2), __VA_ARGS__))               \
          : TILE_LIST##R(TILE_##SUMS##_##LETTER)                                                  \
          : "n"(P::n), "n"(P::ta), "n"(P::tb), TILE_##FACTORS##_OPERANDS##STEPS(0));              \
    }                                                                                             \
  };
#define TILE_WGMMA_FLOAT(A, B, KIND, TYPES, FORM, STEPS, COUNT)                                \
  TILE_FORM_##FORM(TILE_WGMMA_LITERAL, STEPS, COUNT, float, F, float, A, B, KIND, "k" TYPES,  \
                   TILE_NEXT##COUNT)
#define TILE_WGMMA_WORD(D, A, B, KIND, TYPES, FORM, STEPS, COUNT)                           \
  TILE_FORM_##FORM(TILE_WGMMA_LITERAL, STEPS, COUNT, u32, R, D, A, B, KIND, "k" TYPES,      \
                   TILE_NEXT##COUNT)
#define TILE_WGMMA_FLOATS(...)                                            \
  TILE_WGMMA_FLOAT(half_t, half_t, wide, "16.f32.f16.f16", __VA_ARGS__)   \
  TILE_WGMMA_FLOAT(bfloat16_t, bfloat16_t, wide, "16.f32.bf16.bf16", __VA_ARGS__) \
  TILE_WGMMA_FLOAT(float, float, narrow, "8.f32.tf32.tf32", __VA_ARGS__)  \
  TILE_WGMMA_FLOAT(e4m3, e4m3, narrow, "32.f32.e4m3.e4m3", __VA_ARGS__)   \
  TILE_WGMMA_FLOAT(e4m3, e5m2, narrow, "32.f32.e4m3.e5m2", __VA_ARGS__)   \
  TILE_WGMMA_FLOAT(e5m2, e4m3, narrow, "32.f32.e5m2.e4m3", __VA_ARGS__)   \
  TILE_WGMMA_FLOAT(e5m2, e5m2, narrow, "32.f32.e5m2.e5m2", __VA_ARGS__)
#define TILE_WGMMA_WORDS(...)                                                    \
  TILE_WGMMA_WORD(half_t, half_t, half_t, wide, "16.f16.f16.f16", __VA_ARGS__)   \
  TILE_WGMMA_WORD(half_t, e4m3, e4m3, narrow, "32.f16.e4m3.e4m3", __VA_ARGS__)   \
  TILE_WGMMA_WORD(half_t, e4m3, e5m2, narrow, "32.f16.e4m3.e5m2", __VA_ARGS__)   \
  TILE_WGMMA_WORD(half_t, e5m2, e4m3, narrow, "32.f16.e5m2.e4m3", __VA_ARGS__)   \
  TILE_WGMMA_WORD(half_t, e5m2, e5m2, narrow, "32.f16.e5m2.e5m2", __VA_ARGS__)   \
  TILE_WGMMA_WORD(int, i8, i8, integer, "32.s32.s8.s8", __VA_ARGS__)             \
  TILE_WGMMA_WORD(int, i8, u8, integer, "32.s32.s8.u8", __VA_ARGS__)             \
  TILE_WGMMA_WORD(int, u8, i8, integer, "32.s32.u8.s8", __VA_ARGS__)             \
  TILE_WGMMA_WORD(int, u8, u8, integer, "32.s32.u8.u8", __VA_ARGS__)

}  // namespace tile
