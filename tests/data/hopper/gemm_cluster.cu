// As gemm.cu, by clusters of two blocks below each other: each loads half of the columns of B for
// both, and a stage is free again when the consumers of both have said so.
// Maps and grid as there; the grid has an even number of rows of blocks.
#include "tile.h"

TILE_KERNEL(384, 1) TILE_CLUSTER(1, 2, 1) void gemm_cluster(
    TILE_TENSOR_MAP(A_map), TILE_TENSOR_MAP(B_map), TILE_TENSOR_MAP(C_map), int M, int N, int K) {
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int thread = threadIdx.x;
  const int rank = tile::cluster_rank();
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 32768);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(65536, 65536);
  tile::sptr<half_t> C_shared = tile::smem<half_t>(0, 32768);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(196608, 4);
  tile::sptr<tile::u64> empty = tile::smem<tile::u64>(196640, 4);
  if (thread == 0) {
    TILE_UNROLL
    for (int i = 0; i < 4; ++i) {
      tile::mbarrier_init(full + i, 1);
      tile::mbarrier_init(empty + i, 16);
    }
    tile::fence_mbarrier_init();
  }
  tile::cluster_sync();
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
        for (int j = 0; j < 2; ++j) {
          tile::tma_load_multicast<2>(B_shared + (stage * 16384 + (rank * 2 + j) * 4096), B_map, full + stage, 3, bx * 256 + (rank * 2 + j) * 64, k * 64);
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
      if (k > 0 && (tid & 31) < 2) {
        tile::mbarrier_arrive_remote(empty + last, tid & 31);
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
  tile::sync_warp();
  tile::cluster_sync();
}
TILE_EXPORT(gemm_cluster)
