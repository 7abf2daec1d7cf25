// C[M, N] = A[M, K] @ B[K, N] of float16: what a compiler should print for one producer and two
// consumers. A block computes 128 x 256 elements in steps of 64. Warps 8 to 11 copy tiles into a
// ring of four stages; warps 0 to 3 and 4 to 7 multiply 64 rows each.
// Maps, innermost first, all with 128-byte swizzle: A_map of A, boxes 64 x 128; B_map of B,
// boxes 64 x 64; C_map of C, boxes 64 x 64. Grid (N / 256, M / 128), 384 threads.
#include "tile.h"

TILE_KERNEL(384, 1) void gemm(
    TILE_TENSOR_MAP(A_map), TILE_TENSOR_MAP(B_map), TILE_TENSOR_MAP(C_map), int M, int N, int K) {
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int thread = threadIdx.x;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 32768);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(65536, 65536);
  tile::sptr<half_t> C_shared = tile::smem<half_t>(0, 32768);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(196608, 4);
  tile::sptr<tile::u64> empty = tile::smem<tile::u64>(196640, 4);
  if (thread == 0) {
    TILE_UNROLL
    for (int i = 0; i < 4; ++i) {
      tile::mbarrier_init(full + i, 1);
      tile::mbarrier_init(empty + i, 8);
    }
    tile::fence_mbarrier_init();
  }
  tile::sync();
  if (thread >= 256) {
    const int tid = thread - 256;
    tile::registers_decrease<40>();
    if (tid < 32 && tile::elect()) {
      int stage = 0;
      int phase = 1;
      TILE_NO_UNROLL
      for (int k = 0; k < K >> 6; ++k) {
        tile::mbarrier_wait(empty + stage, phase);
        tile::mbarrier_arrive_expect_tx(full + stage, 49152);
        tile::tma_load<2>(A_shared + stage * 8192, A_map, full + stage, k * 64, by * 128);
        TILE_UNROLL
        for (int j = 0; j < 4; ++j) {
          tile::tma_load<2>(B_shared + (stage * 16384 + j * 4096), B_map, full + stage, bx * 256 + j * 64, k * 64);
        }
        stage = stage + 1;
        if (stage == 4) {
          stage = 0;
          phase = phase ^ 1;
        }
      }
    }
  } else {
    const int tid = thread;
    tile::registers_increase<232>();
    tile::frag<float, 128> C_local;
    TILE_UNROLL
    for (int i = 0; i < 128; ++i) {
      C_local[i] = 0.0f;
    }
    tile::wgmma_pin<128>(C_local);
    const int group = tile::shfl_idx(tid >> 7, 0);
    int stage = 0;
    int phase = 0;
    int last = 0;
    TILE_NO_UNROLL
    for (int k = 0; k < K >> 6; ++k) {
      tile::mbarrier_wait(full + stage, phase);
      tile::wgmma_pin<128>(C_local);
      tile::wgmma_fence();
      TILE_UNROLL
      for (int j = 0; j < 4; ++j) {
        tile::wgmma_ss<256, 0, 1>(C_local, tile::wgmma_operand<128, 16, 1024>(A_shared, stage * 1024 + group * 512 + j * 2), tile::wgmma_operand<128, 8192, 1024>(B_shared, stage * 2048 + j * 128));
      }
      tile::wgmma_commit();
      tile::wgmma_wait<1>();
      if (k > 0 && (tid & 31) == 0) {
        tile::mbarrier_arrive(empty + last);
      }
      last = stage;
      stage = stage + 1;
      if (stage == 4) {
        stage = 0;
        phase = phase ^ 1;
      }
    }
    tile::wgmma_wait<0>();
    tile::wgmma_pin<128>(C_local);
    tile::bar_sync(1, 256);
    TILE_UNROLL
    for (int j = 0; j < 16; ++j) {
      tile::frag<half_t, 8> C_half;
      TILE_UNROLL
      for (int i = 0; i < 8; ++i) {
        C_half[i] = tile::cast<half_t>(C_local[j * 8 + i]);
      }
      tile::stmatrix_x4(C_shared + (group * 16384 + (j >> 2) * 4096 + (tid >> 5 & 3) * 1024 + (tid & 15) * 64 + ((j & 3) * 2 + (tid >> 4 & 1) ^ tid & 7) * 8), C_half);
    }
    tile::fence_proxy_async();
    tile::bar_sync(2 + group, 128);
    if ((tid & 127) < 32 && tile::elect()) {
      TILE_UNROLL
      for (int j = 0; j < 4; ++j) {
        tile::tma_store<2>(C_map, C_shared + (group * 16384 + j * 4096), bx * 256 + j * 64, by * 128 + group * 64);
      }
      tile::tma_store_commit();
      tile::tma_store_wait_read<0>();
    }
  }
}
TILE_EXPORT(gemm)
