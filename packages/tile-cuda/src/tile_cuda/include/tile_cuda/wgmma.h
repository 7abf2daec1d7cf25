// Products of a warpgroup: C[64 x N] += A[64 x K] @ B[K x N], under way while threads go on.
//
// Four warps whose first is a multiple of four call these together. Warp w holds rows 16w to
// 16w + 15 of C; element d[4j + 2h + e] of lane t is in row t / 4 + 8h of them and in column
// 8j + t % 4 * 2 + e. K has 32 bytes. B, and A or not, are in shared memory.
#pragma once
#include "tile_cuda/matrix_descriptor.h"
#include "tile_cuda/wgmma_types.h"
#if !defined(TILE_WGMMA_LITERALS) && __CUDACC_VER_MAJOR__ * 100 + __CUDACC_VER_MINOR__ >= 1206
#include "tile_cuda/wgmma_calls.h"
#else
#include "tile_cuda/wgmma_literals.h"
#endif

namespace tile {

// Chunks of 16 bytes change places in rows of SWIZZLE bytes (0, 32, 64, 128). Rows of the
// other dimension come in groups of eight. LEADING and STRIDE are bytes: STRIDE to the next
// group; LEADING to the next SWIZZLE bytes of a row, where its elements are along M or N (along K
// it is not read). Without swizzle a group is 8 rows of 16 bytes: along K, LEADING leads to the
// next 16 bytes and STRIDE to the next group, and the other way round along M or N. The operand
// begins 16 * `units` bytes behind `shared`.
// Source: PTX ISA, "Matrix descriptor format" and "Strides" of wgmma.
template <int SWIZZLE, int LEADING, int STRIDE, int NEXT = 0, int PART = 1 << 16, int FAR = 0,
          class T>
TILE_DEVICE described_matrix<T, NEXT, PART, FAR> wgmma_operand(const T* shared, int units) {
  static_assert(SWIZZLE == 0 || SWIZZLE == 32 || SWIZZLE == 64 || SWIZZLE == 128,
                "tile::wgmma_operand: rows that are swizzled have 0, 32, 64 or 128 bytes");
  static_assert(LEADING % 16 == 0 && STRIDE % 16 == 0 && LEADING < 262144 && STRIDE < 262144,
                "tile::wgmma_operand: offsets are multiples of 16 bytes below 262144");
  constexpr u32 mode = SWIZZLE == 128 ? 1 : SWIZZLE == 64 ? 2 : SWIZZLE == 32 ? 3 : 0;
  return {matrix_descriptor_encode(shared_address(shared)) +
              (matrix_descriptor_encode(LEADING) << 16) + units,
          mode << 30 | matrix_descriptor_encode(STRIDE)};
}

// Registers and shared memory that were written may be read by the products that follow.
TILE_DEVICE void wgmma_fence() { asm volatile("wgmma.fence.sync.aligned;" ::: "memory"); }
// Close the warpgroup's group of products.
TILE_DEVICE void wgmma_commit() { asm volatile("wgmma.commit_group.sync.aligned;" ::: "memory"); }
// Until at most PENDING groups are under way.
template <int PENDING>
TILE_DEVICE void wgmma_wait() {
  asm volatile("wgmma.wait_group.sync.aligned %0;" ::"n"(PENDING) : "memory");
}

// Accumulators are where they are: the compiler neither moves nor copies them across this. Many
// to a statement: each costs the compiler time.
#define TILE_WGMMA_PIN(W, C)                                                \
  template <int N>                                                          \
  TILE_DEVICE void wgmma_pin(W* all) {                                      \
    constexpr int pinned = N / 16 * 16;                                     \
    TILE_UNROLL                                                             \
    for (int i = 0; i < pinned; i += 16) {                                  \
      W* const d = all + i;                                                 \
      asm volatile("" : TILE_LIST16(C));                                    \
    }                                                                       \
    TILE_UNROLL                                                             \
    for (int i = pinned; i < N; ++i) asm volatile("" : C(all[i]));          \
    asm volatile("" ::: "memory");                                          \
  }
TILE_WGMMA_PIN(float, TILE_ADD_F)
TILE_WGMMA_PIN(u32, TILE_ADD_R)
#undef TILE_WGMMA_PIN
template <int N, class T>
TILE_DEVICE void wgmma_pin(T* d) {  // N elements of any type, in whole registers
  wgmma_pin<N * sizeof(T) / 4>(reinterpret_cast<u32*>(d));
}

// Those that a kernel uses; all, if nobody said which: it only takes time.
#ifndef TILE_WGMMA_SHAPES
#include "tile_cuda/wgmma_shapes.h"
#endif
TILE_WGMMA_SHAPES

// d += a @ b, or d = a @ b, over STEPS steps of K; an operand of 16 bits lies along M or N if its T
// is 1, else along K.
#define TILE_WGMMA(NAME)                                                                       \
  template <int N, int TA, int TB, int STEPS = 1, class D, class A, class B>                   \
  TILE_DEVICE void wgmma_s##NAME(D* d, A a, B b) {                                             \
    using P = wgmma_product<N, TA, TB, D, typename A::element, typename B::element>;           \
    u64 as[STEPS], bs[STEPS];                                                                  \
    TILE_UNROLL                                                                                \
    for (int k = 0; k < STEPS; ++k) as[k] = a.at(k), bs[k] = b.at(k);                          \
    wgmma_form_s##NAME<P::registers, STEPS, wgmma_key<P>>::template of<P>(                     \
        reinterpret_cast<typename P::word*>(d), as, bs);                                       \
  }                                                                                            \
  template <int N, int TB, int STEPS = 1, class D, class A, class B>                           \
  TILE_DEVICE void wgmma_r##NAME(D* d, const A* a, B b) {                                      \
    using P = wgmma_product<N, -1, TB, D, A, typename B::element>;                             \
    u64 bs[STEPS];                                                                             \
    TILE_UNROLL                                                                                \
    for (int k = 0; k < STEPS; ++k) bs[k] = b.at(k);                                           \
    wgmma_form_r##NAME<P::registers, STEPS, wgmma_key<P>>::template of<P>(                     \
        reinterpret_cast<typename P::word*>(d), a, bs);                                        \
  }
TILE_WGMMA(s)
TILE_WGMMA(s_set)
#undef TILE_WGMMA

}  // namespace tile
