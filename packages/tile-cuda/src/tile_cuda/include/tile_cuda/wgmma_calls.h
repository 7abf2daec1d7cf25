// Instructions of warpgroups whose text says by itself what is multiplied: one for each number of
// registers, whatever the types. Compilers from CUDA 12.6 on paste constants into assembly (the
// constraint "C").
#pragma once
#include "tile_cuda/wgmma_types.h"

namespace tile {

#define TILE_WGMMA_ASM(TRUTH, R, A, B, COLUMNS, TYPES, END, LIST, ...)                        \
  asm volatile("{\n\t.reg .pred p;\n\tsetp.ne.b32 p, " TRUTH ", 0;\n\t"                       \
               "wgmma.mma_async.sync.aligned.m64n%" #COLUMNS "%" #TYPES                       \
               " {" TILE_REGISTERS_##R "}, " A ", %" #B ", p%" #END ";\n\t}"                  \
               : LIST                                                                         \
               : __VA_ARGS__, "l"(b), "C"(P::columns::text), "C"(P::types::text),             \
                 "C"(P::end::text))
#define TILE_WGMMA_BOTH(R, W, ADD, SET, I0, I1, I2, I3, I4, I5, I6, I7)                       \
  template <>                                                                                 \
  struct wgmma_call<R, W> {                                                                   \
    template <class P>                                                                        \
    TILE_DEVICE static void ss(W* d, u64 a, u64 b) {                                          \
      TILE_WGMMA_ASM("1", R, "%" #I0, I1, I2, I3, I4, TILE_LIST##R(ADD), "l"(a));             \
    }                                                                                         \
    template <class P>                                                                        \
    TILE_DEVICE static void ss_set(W* d, u64 a, u64 b) {                                      \
      TILE_WGMMA_ASM("0", R, "%" #I0, I1, I2, I3, I4, TILE_LIST##R(SET), "l"(a));             \
    }                                                                                         \
    template <class P, class A>                                                               \
    TILE_DEVICE static void rs(W* d, const A* a, u64 b) {                                     \
      TILE_WGMMA_ASM("1", R, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, I6, I7,      \
                     TILE_LIST##R(ADD), TILE_WGMMA_A);                                        \
    }                                                                                         \
    template <class P, class A>                                                               \
    TILE_DEVICE static void rs_set(W* d, const A* a, u64 b) {                                 \
      TILE_WGMMA_ASM("0", R, "{%" #I0 ", %" #I1 ", %" #I2 ", %" #I3 "}", I4, I5, I6, I7,      \
                     TILE_LIST##R(SET), TILE_WGMMA_A);                                        \
    }                                                                                         \
  };
#define TILE_WGMMA_ROW(...) TILE_WGMMA_BOTH(__VA_ARGS__)
#define TILE_WGMMA_FLOATS(R) TILE_WGMMA_ROW(R, float, TILE_ADD_F, TILE_SET_F, TILE_NEXT##R)
#define TILE_WGMMA_WORDS(R) TILE_WGMMA_ROW(R, u32, TILE_ADD_R, TILE_SET_R, TILE_NEXT##R)

}  // namespace tile
