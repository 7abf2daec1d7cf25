// Products of warpgroups whose text says by itself what is multiplied: one for each number of
// registers, whatever the types. Compilers from CUDA 12.6 on paste constants into assembly (the
// constraint "C").
#pragma once
#include "tile_cuda/wgmma_steps.h"

namespace tile {

template <class P>
using wgmma_key = typename P::word;

#define TILE_WGMMA_CALL(FORM, FACTORS, TRUTH, SUMS, STEPS, R, W, LETTER, I0, I1, I2, ...)         \
  template <>                                                                                     \
  struct wgmma_form_##FORM<R, STEPS, W> {                                                         \
    template <class P, class A>                                                                   \
    TILE_DEVICE static void of(W* d, const A* a, const u64* b) {                                  \
      asm volatile(                                                                               \
          TILE_WGMMA_TEXT(TRUTH, TILE_##FACTORS##STEPS(                                           \
                                     R, "wgmma.mma_async.sync.aligned.m64n%" #I0 "%" #I1,         \
                                     "%" #I2, __VA_ARGS__))                                       \
          : TILE_LIST##R(TILE_##SUMS##_##LETTER)                                                  \
          : "C"(P::columns::text), "C"(P::types::text), "C"(P::end::text),                        \
            TILE_##FACTORS##_OPERANDS##STEPS(0));                                                 \
    }                                                                                             \
  };
#define TILE_WGMMA_FLOATS(FORM, STEPS, COUNT) \
  TILE_FORM_##FORM(TILE_WGMMA_CALL, STEPS, COUNT, float, F, TILE_NEXT##COUNT)
#define TILE_WGMMA_WORDS(FORM, STEPS, COUNT) \
  TILE_FORM_##FORM(TILE_WGMMA_CALL, STEPS, COUNT, u32, R, TILE_NEXT##COUNT)

}  // namespace tile
