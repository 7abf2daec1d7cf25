// C[M, N] = A[M, K] @ B[K, N]: float16 operands, float32 sums, 128 x 128 x 32 tiles, three stages.
//
// PLAIN_LAYOUT keeps the result, but accesses to shared memory collide in its banks.
#include "tile.h"

#ifdef PLAIN_LAYOUT
#define SWIZZLE_A(r, c) (c)
#define SWIZZLE_B(r, c) (c)
#else
#define SWIZZLE_A(r, c) ((c) ^ (((r) >> 1) & 3))
#define SWIZZLE_B(r, c) ((c) ^ ((r) & 7))
#endif

TILE_KERNEL(256, 1) void gemm(tile::gptr<const half_t> A, tile::gptr<const half_t> B,
                              tile::gptr<float> C, int M, int N, int K) {
  const int tid = threadIdx.x;
  const int bm = blockIdx.y * 128;
  const int bn = blockIdx.x * 128;
  const int lane = tid & 31;
  const int wm = ((tid >> 5) & 1) * 64;
  const int wn = (tid >> 6) * 32;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 12288);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(24576, 12288);
  tile::frag<float, 64> C_local;
  tile::frag<half_t, 32> A_local;
  tile::frag<half_t, 16> B_local;
  TILE_UNROLL
  for (int i = 0; i < 64; ++i) {
    C_local[i] = 0.0f;
  }
  const int steps = (K + 31) / 32;
  TILE_UNROLL
  for (int s = 0; s < 2; ++s) {
    TILE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int r = (tid + i * 256) >> 2;
      const int c = tid & 3;
      tile::cp_async<16>(A_shared + (s * 4096 + r * 32 + SWIZZLE_A(r, c) * 8), A + ((bm + r) * K + s * 32 + c * 8), bm + r < M && s * 32 + c * 8 < K);
    }
    TILE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int r = (tid + i * 256) >> 4;
      const int c = tid & 15;
      tile::cp_async<16>(B_shared + (s * 4096 + r * 128 + SWIZZLE_B(r, c) * 8), B + ((s * 32 + r) * N + bn + c * 8), s * 32 + r < K && bn + c * 8 < N);
    }
    tile::cp_async_commit();
  }
  TILE_NO_UNROLL
  for (int ko = 0; ko < steps; ++ko) {
    tile::cp_async_wait<1>();
    tile::sync();
    const int s = (ko + 2) % 3;
    TILE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int r = (tid + i * 256) >> 2;
      const int c = tid & 3;
      tile::cp_async<16>(A_shared + (s * 4096 + r * 32 + SWIZZLE_A(r, c) * 8), A + ((bm + r) * K + (ko + 2) * 32 + c * 8), bm + r < M && (ko + 2) * 32 + c * 8 < K);
    }
    TILE_UNROLL
    for (int i = 0; i < 2; ++i) {
      const int r = (tid + i * 256) >> 4;
      const int c = tid & 15;
      tile::cp_async<16>(B_shared + (s * 4096 + r * 128 + SWIZZLE_B(r, c) * 8), B + (((ko + 2) * 32 + r) * N + bn + c * 8), (ko + 2) * 32 + r < K && bn + c * 8 < N);
    }
    tile::cp_async_commit();
    const int now = ko % 3 * 4096;
    TILE_UNROLL
    for (int kk = 0; kk < 2; ++kk) {
      TILE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int r = wm + i * 16 + (lane & 15);
        tile::ldmatrix_x4(A_local + (i * 8), A_shared + (now + r * 32 + SWIZZLE_A(r, kk * 2 + (lane >> 4)) * 8));
      }
      TILE_UNROLL
      for (int j = 0; j < 2; ++j) {
        const int r = kk * 16 + (lane & 15);
        tile::ldmatrix_x4_trans(B_local + (j * 8), B_shared + (now + r * 128 + SWIZZLE_B(r, (wn >> 3) + j * 2 + (lane >> 4)) * 8));
      }
      TILE_UNROLL
      for (int i = 0; i < 4; ++i) {
        TILE_UNROLL
        for (int j = 0; j < 4; ++j) {
          tile::mma_m16n8k16(C_local + (i * 16 + j * 4), A_local + (i * 8), B_local + (j * 4));
        }
      }
    }
  }
  TILE_UNROLL
  for (int i = 0; i < 16; ++i) {
    const int r = bm + wm + (i >> 2) * 16 + (lane >> 2);
    const int c = bn + wn + (i & 3) * 8 + (lane & 3) * 2;
    TILE_UNROLL
    for (int h = 0; h < 2; ++h) {
      if (r + h * 8 < M && c < N) {
        tile::store<2>(C + ((r + h * 8) * N + c), C_local + (i * 4 + h * 2));
      }
    }
  }
}
TILE_EXPORT(gemm)
