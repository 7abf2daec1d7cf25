// 8x8 matrices of 16-bit elements between shared memory and the registers of a warp.
#pragma once
#include "tile_cuda/bits.h"

namespace tile {

// Matrix m of N: lane 8m + r gives the address of row r, of 16 bytes; each lane receives word
// lane % 4 of row lane / 4 (or, transposed, of column lane / 4) in its register m.
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 750
#define TILE_LDMATRIX(N, SUFFIX, MODIFIERS, WORDS, ...)                            \
  template <class T, class U>                                                      \
  TILE_DEVICE void ldmatrix_x##N##SUFFIX(T* registers, const U* row) {             \
    static_assert(never<T, U>, "tile::ldmatrix needs sm_75 or newer");             \
  }
#else
#define TILE_LDMATRIX(N, SUFFIX, MODIFIERS, WORDS, ...)                            \
  template <class T, class U>                                                      \
  TILE_DEVICE void ldmatrix_x##N##SUFFIX(T* registers, const U* row) {             \
    u32 w[4];                                                                      \
    asm volatile("ldmatrix.sync.aligned.m8n8.x" #N MODIFIERS " " WORDS             \
                 : __VA_ARGS__                                                     \
                 : "r"(shared_address(row))                                        \
                 : "memory");                                                      \
    TILE_UNROLL                                                                    \
    for (int i = 0; i < N; ++i) set_word(registers, i, w[i]);                      \
  }
#endif
#define TILE_LDMATRIX_BOTH(N, WORDS, ...)                             \
  TILE_LDMATRIX(N, , ".shared.b16", WORDS, __VA_ARGS__)               \
  TILE_LDMATRIX(N, _trans, ".trans.shared.b16", WORDS, __VA_ARGS__)
TILE_LDMATRIX_BOTH(1, "{%0}, [%1];", "=r"(w[0]))
TILE_LDMATRIX_BOTH(2, "{%0, %1}, [%2];", "=r"(w[0]), "=r"(w[1]))
TILE_LDMATRIX_BOTH(4, "{%0, %1, %2, %3}, [%4];", "=r"(w[0]), "=r"(w[1]), "=r"(w[2]), "=r"(w[3]))
#undef TILE_LDMATRIX_BOTH
#undef TILE_LDMATRIX

// The way back, (row, registers); before sm_90 each lane stores its words itself.
template <int N, bool TRANSPOSED, class T, class U>
TILE_DEVICE void stmatrix(T* row, const U* registers) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  const u32 to = shared_address(row);
#define TILE_STMATRIX(COUNT, WORDS, ...)                                                     \
  if constexpr (N == COUNT && TRANSPOSED) {                                                  \
    asm volatile("stmatrix.sync.aligned.m8n8.x" #COUNT ".trans.shared.b16 [%0], " WORDS ";" \
                 ::"r"(to), __VA_ARGS__ : "memory");                                         \
  } else if constexpr (N == COUNT) {                                                         \
    asm volatile("stmatrix.sync.aligned.m8n8.x" #COUNT ".shared.b16 [%0], " WORDS ";"       \
                 ::"r"(to), __VA_ARGS__ : "memory");                                         \
  }
  TILE_STMATRIX(1, "{%1}", "r"(word(registers, 0)))
  TILE_STMATRIX(2, "{%1, %2}", "r"(word(registers, 0)), "r"(word(registers, 1)))
  TILE_STMATRIX(4, "{%1, %2, %3, %4}", "r"(word(registers, 0)), "r"(word(registers, 1)),
                "r"(word(registers, 2)), "r"(word(registers, 3)))
#undef TILE_STMATRIX
#else
  const int lane = static_cast<int>(threadIdx.x + blockDim.x * (threadIdx.y + blockDim.y * threadIdx.z)) & 31;
  TILE_UNROLL
  for (int m = 0; m < N; ++m) {
    const u32 w = word(registers, m);
    TILE_UNROLL
    for (int h = 0; h < 2; ++h) {
      const int r = TRANSPOSED ? lane % 4 * 2 + h : lane / 4;
      const int c = TRANSPOSED ? lane / 4 : lane % 4 * 2 + h;
      const u64 base = __shfl_sync(0xffffffffu, reinterpret_cast<u64>(row), 8 * m + r);
      reinterpret_cast<u16*>(base)[c] = static_cast<u16>(w >> (16 * h));
    }
  }
#endif
}

template <class T, class U>
TILE_DEVICE void stmatrix_x1(T* row, const U* registers) { stmatrix<1, false>(row, registers); }
template <class T, class U>
TILE_DEVICE void stmatrix_x2(T* row, const U* registers) { stmatrix<2, false>(row, registers); }
template <class T, class U>
TILE_DEVICE void stmatrix_x4(T* row, const U* registers) { stmatrix<4, false>(row, registers); }
template <class T, class U>
TILE_DEVICE void stmatrix_x1_trans(T* row, const U* registers) { stmatrix<1, true>(row, registers); }
template <class T, class U>
TILE_DEVICE void stmatrix_x2_trans(T* row, const U* registers) { stmatrix<2, true>(row, registers); }
template <class T, class U>
TILE_DEVICE void stmatrix_x4_trans(T* row, const U* registers) { stmatrix<4, true>(row, registers); }

}  // namespace tile
