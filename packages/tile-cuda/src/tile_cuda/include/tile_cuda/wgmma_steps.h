// Products of warpgroups over several steps of K, of 32 bytes each, as one text of assembly: all
// sums are operands of each statement, and compilers take time for every operand.
//
// Behind the sums come three constants, which the text may name, and then for each step the
// descriptor of B and that of A, or A's four registers.
#pragma once
#include "tile_cuda/wgmma_types.h"

// One instruction: its words before the registers are START, those behind the factors END.
#define TILE_WGMMA_STEP(R, A, B, START, END) \
  START " {" TILE_REGISTERS_##R "}, " A ", %" #B ", p" END ";\n\t"
#define TILE_WGMMA_TEXT(TRUTH, STEPS) \
  "{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " TRUTH ", 0;\n\t" STEPS "}"
// From the second step on there are sums to add to.
#define TILE_WGMMA_ON "setp.ne.b32 p, 1, 0;\n\t"

#define TILE_SS1(R, START, END, B, A, ...) TILE_WGMMA_STEP(R, "%" #A, B, START, END)
#define TILE_SS2(R, START, END, B, A, ...) \
  TILE_SS1(R, START, END, B, A, ) TILE_WGMMA_ON TILE_SS1(R, START, END, __VA_ARGS__)
#define TILE_SS4(R, START, END, B0, A0, B1, A1, ...) \
  TILE_SS2(R, START, END, B0, A0, B1, A1, ) TILE_SS2(R, START, END, __VA_ARGS__)
#define TILE_SS8(R, START, END, B0, A0, B1, A1, B2, A2, B3, A3, ...) \
  TILE_SS4(R, START, END, B0, A0, B1, A1, B2, A2, B3, A3, ) TILE_SS4(R, START, END, __VA_ARGS__)
#define TILE_RS1(R, START, END, B, A, C, D, E, ...) \
  TILE_WGMMA_STEP(R, "{%" #A ", %" #C ", %" #D ", %" #E "}", B, START, END)
#define TILE_RS2(R, START, END, B, A, C, D, E, ...) \
  TILE_RS1(R, START, END, B, A, C, D, E, ) TILE_WGMMA_ON TILE_RS1(R, START, END, __VA_ARGS__)
#define TILE_RS4(R, START, END, B0, A0, C0, D0, E0, B1, A1, C1, D1, E1, ...) \
  TILE_RS2(R, START, END, B0, A0, C0, D0, E0, B1, A1, C1, D1, E1, )          \
  TILE_RS2(R, START, END, __VA_ARGS__)
#define TILE_RS8(R, START, END, B0, A0, C0, D0, E0, B1, A1, C1, D1, E1, B2, A2, C2, D2, E2, B3,   \
                 A3, C3, D3, E3, ...)                                                             \
  TILE_RS4(R, START, END, B0, A0, C0, D0, E0, B1, A1, C1, D1, E1, B2, A2, C2, D2, E2, B3, A3, C3, \
           D3, E3, ) TILE_RS4(R, START, END, __VA_ARGS__)

// The operands of steps from K on.
#define TILE_SS_OPERANDS1(K) "l"(b[K]), "l"(a[K])
#define TILE_SS_OPERANDS2(K) TILE_SS_OPERANDS1(K), TILE_SS_OPERANDS1(K + 1)
#define TILE_SS_OPERANDS4(K) TILE_SS_OPERANDS2(K), TILE_SS_OPERANDS2(K + 2)
#define TILE_SS_OPERANDS8(K) TILE_SS_OPERANDS4(K), TILE_SS_OPERANDS4(K + 4)
#define TILE_RS_OPERANDS1(K)                                                                  \
  "l"(b[K]), "r"(word(a, 4 * (K))), "r"(word(a, 4 * (K) + 1)), "r"(word(a, 4 * (K) + 2)),     \
      "r"(word(a, 4 * (K) + 3))
#define TILE_RS_OPERANDS2(K) TILE_RS_OPERANDS1(K), TILE_RS_OPERANDS1(K + 1)
#define TILE_RS_OPERANDS4(K) TILE_RS_OPERANDS2(K), TILE_RS_OPERANDS2(K + 2)
#define TILE_RS_OPERANDS8(K) TILE_RS_OPERANDS4(K), TILE_RS_OPERANDS4(K + 4)

// What DO is told of a form: its factors, whether there are sums before, and how these are given.
#define TILE_FORM_ss(DO, ...) DO(ss, SS, "1", ADD, __VA_ARGS__)
#define TILE_FORM_ss_set(DO, ...) DO(ss_set, SS, "0", SET, __VA_ARGS__)
#define TILE_FORM_rs(DO, ...) DO(rs, RS, "1", ADD, __VA_ARGS__)
#define TILE_FORM_rs_set(DO, ...) DO(rs_set, RS, "0", SET, __VA_ARGS__)

#define TILE_ADD_F(x) "+f"(x)
#define TILE_SET_F(x) "=f"(x)
#define TILE_ADD_R(x) "+r"(x)
#define TILE_SET_R(x) "=r"(x)

namespace tile {

// A product of STEPS steps with R accumulator registers, in each form: a statement for each step,
// where there is none for all of them. KEY is what statements of a compiler differ in beside.
#define TILE_WGMMA_FORM(FORM, NEXT, WORDS)                                            \
  template <int R, int STEPS, class KEY>                                              \
  struct wgmma_form_##FORM {                                                          \
    template <class P, class A>                                                       \
    TILE_DEVICE static void of(typename P::word* d, const A* a, const u64* b) {       \
      wgmma_form_##FORM<R, 1, KEY>::template of<P>(d, a, b);                          \
      TILE_UNROLL                                                                     \
      for (int k = 1; k < STEPS; ++k)                                                 \
        wgmma_form_##NEXT<R, 1, KEY>::template of<P>(d, a + k * (WORDS), b + k);      \
    }                                                                                 \
  };                                                                                  \
  template <int R, class KEY>                                                         \
  struct wgmma_form_##FORM<R, 1, KEY>;
TILE_WGMMA_FORM(ss, ss, 1)
TILE_WGMMA_FORM(ss_set, ss, 1)
TILE_WGMMA_FORM(rs, rs, static_cast<int>(16 / sizeof(A)))
TILE_WGMMA_FORM(rs_set, rs, static_cast<int>(16 / sizeof(A)))
#undef TILE_WGMMA_FORM

}  // namespace tile
