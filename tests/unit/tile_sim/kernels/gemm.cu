#include "tile.h"

// C[m, n] = sum over k of A[m, k] * B[n, k]; tiles of 32 x 16 x 64, two stages, two warps.
TILE_KERNEL(64, 1) void gemm(tile::gptr<const half_t> A, tile::gptr<const half_t> B, tile::gptr<float> C, int N, int K) {
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 4096);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(8192, 2048);
  tile::frag<float, 8> C_local;
  tile::frag<half_t, 8> A_local;
  tile::frag<half_t, 8> B_local;
  const int warp = tid >> 5;
  const int lane = tid & 31;
  TILE_UNROLL
  for (int i = 0; i < 8; ++i) {
    C_local[i] = 0.0f;  // clear
  }
  TILE_NO_UNROLL
  for (int k = -1; k < (K >> 6); ++k) {
    if (k + 1 < (K >> 6)) {
      TILE_UNROLL
      for (int i = 0; i < 4; ++i) {
        const int row = (i * 8) + (tid >> 3);
        const int chunk = (tid & 7) ^ (row & 7);  // swizzle written
        tile::cp_async<16>(A_shared + ((((k + 1) & 1) * 2048) + (row * 64) + (chunk * 8)), A + ((((by * 32) + row) * K) + ((k + 1) * 64) + ((tid & 7) * 8)), true);  // copy A
      }
      TILE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int row = (i * 8) + (tid >> 3);
        const int chunk = (tid & 7) ^ (row & 7);  // swizzle written
        tile::cp_async<16>(B_shared + ((((k + 1) & 1) * 1024) + (row * 64) + (chunk * 8)), B + ((((bx * 16) + row) * K) + ((k + 1) * 64) + ((tid & 7) * 8)), true);  // copy B
      }
    }
    tile::cp_async_commit();
    if (k >= 0) {
      tile::cp_async_wait<1>();  // wait
      tile::sync();  // data is there
      TILE_UNROLL
      for (int kk = 0; kk < 4; ++kk) {
        const int a_row = (warp * 16) + (lane & 15);
        const int a_chunk = ((kk * 2) + (lane >> 4)) ^ (a_row & 7);  // swizzle read
        tile::ldmatrix_x4(A_local + 0, A_shared + (((k & 1) * 2048) + (a_row * 64) + (a_chunk * 8)));  // load A
        const int b_row = ((lane >> 4) * 8) + (lane & 7);
        const int b_chunk = ((kk * 2) + ((lane >> 3) & 1)) ^ (b_row & 7);  // swizzle read
        tile::ldmatrix_x4(B_local + 0, B_shared + (((k & 1) * 1024) + (b_row * 64) + (b_chunk * 8)));  // load B
        tile::mma_m16n8k16(C_local + 0, A_local + 0, B_local + 0);  // multiply
        tile::mma_m16n8k16(C_local + 4, A_local + 0, B_local + 4);
      }
      tile::sync();  // data was read
    }
  }
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const int row = (by * 32) + (warp * 16) + ((i & 1) * 8) + (lane >> 2);
    const int col = (bx * 16) + ((i >> 1) * 8) + ((lane & 3) * 2);
    tile::store<2>(C + ((row * N) + col), C_local + (((i >> 1) * 4) + ((i & 1) * 2)));  // store
  }
}
TILE_EXPORT(gemm)
