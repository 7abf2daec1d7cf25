// Instructions of warpgroups for compilers that cannot paste constants into assembly: one for each
// number of registers and pair of types, with the types in its text.
#pragma once
#include "tile_cuda/wgmma_types.h"

namespace tile {

// The instructions with R accumulator registers and the words of TYPES.
template <int R, class TYPES>
struct wgmma_literal;

template <int R, class W>
struct wgmma_call {
  template <class P>
  TILE_DEVICE static void ss(W* d, u64 a, u64 b) {
    wgmma_literal<R, typename P::types>::template ss<P>(d, a, b);
  }
  template <class P>
  TILE_DEVICE static void ss_set(W* d, u64 a, u64 b) {
    wgmma_literal<R, typename P::types>::template ss_set<P>(d, a, b);
  }
  template <class P, class A>
  TILE_DEVICE static void rs(W* d, const A* a, u64 b) {
    wgmma_literal<R, typename P::types>::template rs<P>(d, a, b);
  }
  template <class P, class A>
  TILE_DEVICE static void rs_set(W* d, const A* a, u64 b) {
    wgmma_literal<R, typename P::types>::template rs_set<P>(d, a, b);
  }
};

// How the text ends; operands I and J say along which dimension A and B lie.
#define TILE_SS_wide(I, J) ", 1, 1, %" #I ", %" #J
#define TILE_RS_wide(J) ", 1, 1, %" #J
#define TILE_SS_narrow(I, J) ", 1, 1"
#define TILE_RS_narrow(J) ", 1, 1"
#define TILE_SS_integer(I, J) ""
#define TILE_RS_integer(J) ""
#define TILE_WGMMA_TEXT(TRUTH, R, A, B, COLUMNS, TYPES, END)                                    \
  "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " TRUTH ", 0;\n\t"                                     \
  "wgmma.mma_async.sync.aligned.m64n%" #COLUMNS TYPES                                           \
  " {" TILE_REGISTERS_##R "}, " A ", %" #B ", p" END ";\n\t}"
#define TILE_SS_TEXT(TRUTH, R, KIND, TYPES, I0, I1, I2, I3, I4)                                 \
  TILE_WGMMA_TEXT(TRUTH, R, "%" #I0, I1, I2, TYPES, TILE_SS_##KIND(I3, I4))
#define TILE_RS_TEXT(TRUTH, R, KIND, TYPES, I0, I1, I2, I3, I4, I5, I6)                         \
  TILE_WGMMA_TEXT(TRUTH, R, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, TYPES,          \
                  TILE_RS_##KIND(I6))
#define TILE_WGMMA_LITERAL(D, A, B, KIND, TYPES, R, W, ADD, SET, I0, I1, I2, I3, I4, I5, I6, I7) \
  template <>                                                                                   \
  struct wgmma_literal<R, wgmma_types<D, A, B>> {                                               \
    template <class P>                                                                          \
    TILE_DEVICE static void ss(W* d, u64 a, u64 b) {                                            \
      asm volatile(TILE_SS_TEXT("1", R, KIND, TYPES, I0, I1, I2, I3, I4)                        \
                   : TILE_LIST##R(ADD)                                                          \
                   : "l"(a), "l"(b), "n"(P::n), "n"(P::ta), "n"(P::tb));                        \
    }                                                                                           \
    template <class P>                                                                          \
    TILE_DEVICE static void ss_set(W* d, u64 a, u64 b) {                                        \
      asm volatile(TILE_SS_TEXT("0", R, KIND, TYPES, I0, I1, I2, I3, I4)                        \
                   : TILE_LIST##R(SET)                                                          \
                   : "l"(a), "l"(b), "n"(P::n), "n"(P::ta), "n"(P::tb));                        \
    }                                                                                           \
    template <class P, class X>                                                                 \
    TILE_DEVICE static void rs(W* d, const X* a, u64 b) {                                       \
      asm volatile(TILE_RS_TEXT("1", R, KIND, TYPES, I0, I1, I2, I3, I4, I5, I6)                \
                   : TILE_LIST##R(ADD)                                                          \
                   : TILE_WGMMA_A, "l"(b), "n"(P::n), "n"(P::tb));                              \
    }                                                                                           \
    template <class P, class X>                                                                 \
    TILE_DEVICE static void rs_set(W* d, const X* a, u64 b) {                                   \
      asm volatile(TILE_RS_TEXT("0", R, KIND, TYPES, I0, I1, I2, I3, I4, I5, I6)                \
                   : TILE_LIST##R(SET)                                                          \
                   : TILE_WGMMA_A, "l"(b), "n"(P::n), "n"(P::tb));                              \
    }                                                                                           \
  };
#define TILE_WGMMA_ROW(...) TILE_WGMMA_LITERAL(__VA_ARGS__)
#define TILE_WGMMA_FLOAT(A, B, KIND, TYPES, R) \
  TILE_WGMMA_ROW(float, A, B, KIND, TYPES, R, float, TILE_ADD_F, TILE_SET_F, TILE_NEXT##R)
#define TILE_WGMMA_WORD(D, A, B, KIND, TYPES, R) \
  TILE_WGMMA_ROW(D, A, B, KIND, TYPES, R, u32, TILE_ADD_R, TILE_SET_R, TILE_NEXT##R)
#define TILE_WGMMA_FLOATS(R)                                            \
  TILE_WGMMA_FLOAT(half_t, half_t, wide, "k16.f32.f16.f16", R)          \
  TILE_WGMMA_FLOAT(bfloat16_t, bfloat16_t, wide, "k16.f32.bf16.bf16", R) \
  TILE_WGMMA_FLOAT(float, float, narrow, "k8.f32.tf32.tf32", R)         \
  TILE_WGMMA_FLOAT(e4m3, e4m3, narrow, "k32.f32.e4m3.e4m3", R)          \
  TILE_WGMMA_FLOAT(e4m3, e5m2, narrow, "k32.f32.e4m3.e5m2", R)          \
  TILE_WGMMA_FLOAT(e5m2, e4m3, narrow, "k32.f32.e5m2.e4m3", R)          \
  TILE_WGMMA_FLOAT(e5m2, e5m2, narrow, "k32.f32.e5m2.e5m2", R)
#define TILE_WGMMA_WORDS(R)                                              \
  TILE_WGMMA_WORD(half_t, half_t, half_t, wide, "k16.f16.f16.f16", R)    \
  TILE_WGMMA_WORD(half_t, e4m3, e4m3, narrow, "k32.f16.e4m3.e4m3", R)    \
  TILE_WGMMA_WORD(half_t, e4m3, e5m2, narrow, "k32.f16.e4m3.e5m2", R)    \
  TILE_WGMMA_WORD(half_t, e5m2, e4m3, narrow, "k32.f16.e5m2.e4m3", R)    \
  TILE_WGMMA_WORD(half_t, e5m2, e5m2, narrow, "k32.f16.e5m2.e5m2", R)    \
  TILE_WGMMA_WORD(int, i8, i8, integer, "k32.s32.s8.s8", R)              \
  TILE_WGMMA_WORD(int, i8, u8, integer, "k32.s32.s8.u8", R)              \
  TILE_WGMMA_WORD(int, u8, i8, integer, "k32.s32.u8.s8", R)              \
  TILE_WGMMA_WORD(int, u8, u8, integer, "k32.s32.u8.u8", R)

}  // namespace tile
