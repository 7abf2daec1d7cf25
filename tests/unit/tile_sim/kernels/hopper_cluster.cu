#include "tile.h"

// C[m, n] = sum over k of A[m, k] * B[k, n] by clusters of two blocks, which are side by side in x
// and share the tile of B: each copies half of it into both. A block computes 64 x 64 elements;
// the first of a cluster adds up all elements of both, as the other leaves them in its memory.
// Maps with a swizzle of 128 bytes, innermost first: A boxes 64 x 64, B boxes 64 x 32.
TILE_KERNEL(256, 1) TILE_CLUSTER(2, 1, 1) void hopper_cluster(TILE_TENSOR_MAP(A), TILE_TENSOR_MAP(B), tile::gptr<float> C, tile::gptr<float> S, int N, int K) {
  const int thread = threadIdx.x;
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 8192);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(16384, 8192);
  tile::sptr<float> sums = tile::smem<float>(32768, 128);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(33280, 2);
  tile::sptr<tile::u64> empty = tile::smem<tile::u64>(33296, 2);
  const int rank = tile::cluster_rank();
  if (thread == 0) {
    TILE_UNROLL
    for (int i = 0; i < 2; ++i) {
      tile::mbarrier_init(full + i, 1);  // set up full
      tile::mbarrier_init(empty + i, 8);  // set up empty
    }
    tile::fence_mbarrier_init();
  }
  tile::cluster_sync();  // all are there
  if (thread >= 128) {
    if (thread == 128) {
      TILE_NO_UNROLL
      for (int k = 0; k < K >> 6; ++k) {
        const int slot = k & 1;
        tile::mbarrier_wait(empty + slot, (k >> 1 & 1) ^ 1);  // wait for empty
        tile::mbarrier_arrive_expect_tx(full + slot, 16384);  // expect
        tile::tma_load<2>(A_shared + slot * 4096, A, full + slot, k * 64, bx * 64);  // copy A
        tile::tma_load_multicast<2>(B_shared + (slot * 4096 + rank * 2048), B, full + slot, 3, by * 64, k * 64 + rank * 32);  // copy B
      }
    }
  } else {
    tile::frag<float, 32> C_local;
    TILE_UNROLL
    for (int i = 0; i < 32; ++i) {
      C_local[i] = 0.0f;
    }
    TILE_NO_UNROLL
    for (int k = 0; k < K >> 6; ++k) {
      const int slot = k & 1;
      tile::mbarrier_wait(full + slot, k >> 1 & 1);  // wait for full
      tile::wgmma_fence();
      TILE_UNROLL
      for (int kk = 0; kk < 4; ++kk) {
        tile::wgmma_ss<64, 0, 1>(C_local + 0, tile::wgmma_operand<128, 16, 1024>(A_shared + 0, slot * 512 + kk * 2), tile::wgmma_operand<128, 8192, 1024>(B_shared + 0, slot * 512 + kk * 128));  // multiply
      }
      tile::wgmma_commit();
      tile::wgmma_wait<0>();  // wait for products
      if ((thread & 31) == 0) {
        tile::mbarrier_arrive(empty + slot);  // release
        tile::mbarrier_arrive_remote(empty + slot, 1 - rank);  // release there
      }
    }
    const int row = bx * 64 + (thread >> 5) * 16 + (thread >> 2 & 7);
    float sum = 0.0f;
    TILE_UNROLL
    for (int i = 0; i < 32; ++i) {
      sum = sum + C_local[i];
      C[(row + (i >> 1 & 1) * 8) * N + (by * 64 + (i >> 2) * 8 + (thread & 3) * 2 + (i & 1))] = C_local[i];
    }
    sums[thread] = sum;  // leave the sum
  }
  tile::cluster_sync();  // sums are there
  if (rank == 0 && thread == 0) {
    float total = 0.0f;
    TILE_NO_UNROLL
    for (int i = 0; i < 128; ++i) {
      total = total + sums[i] + tile::remote(sums + 0, 1)[i];  // read sums
    }
    tile::atomic_add(S + by, total);
  }
  tile::cluster_sync();  // all are done
}
TILE_EXPORT(hopper_cluster)
