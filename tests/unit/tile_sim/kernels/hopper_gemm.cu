#include "tile.h"

// C[m, n] = sum over k of A[m, k] * B[k, n] on Hopper: tiles of 128 x 64 x 64 in a ring of three.
// Warps 8 to 11 copy, warps 0 to 3 and 4 to 7 multiply 64 rows each and store them as boxes.
// Maps, innermost first, with a swizzle of 128 bytes: A boxes 64 x 128, B and C boxes 64 x 64.
TILE_KERNEL(384, 1) void hopper_gemm(TILE_TENSOR_MAP(A), TILE_TENSOR_MAP(B), TILE_TENSOR_MAP(C), int K) {
  const int thread = threadIdx.x;
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 24576);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(49152, 12288);
  tile::sptr<half_t> C_shared = tile::smem<half_t>(73728, 8192);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(90112, 3);
  tile::sptr<tile::u64> empty = tile::smem<tile::u64>(90136, 3);
  if (thread == 0) {
    TILE_UNROLL
    for (int i = 0; i < 3; ++i) {
      tile::mbarrier_init(full + i, 1);  // set up full
      tile::mbarrier_init(empty + i, 8);  // set up empty
    }
    tile::fence_mbarrier_init();  // fence of barriers
  }
  tile::sync();  // barriers are there
  if (thread >= 256) {
    tile::registers_decrease<40>();  // few registers
    if (thread < 288 && tile::elect()) {
      int stage = 0;
      int phase = 1;  // first parity of empty
      TILE_NO_UNROLL
      for (int k = 0; k < K >> 6; ++k) {
        tile::mbarrier_wait(empty + stage, phase);  // wait for empty
        tile::mbarrier_arrive_expect_tx(full + stage, 24576);  // expect
        tile::tma_load<2>(A_shared + stage * 8192, A, full + stage, k * 64, by * 128);  // copy A
        tile::tma_load<2>(B_shared + stage * 4096, B, full + stage, bx * 64, k * 64);  // copy B
        stage = stage + 1;
        if (stage == 3) {
          stage = 0;
          phase = phase ^ 1;
        }
      }
    }
  } else {
    tile::registers_increase<232>();  // many registers
    const int group = thread >> 7;
    const int tid = thread & 127;
    tile::frag<float, 32> C_local;
    TILE_UNROLL
    for (int i = 0; i < 32; ++i) {
      C_local[i] = 0.0f;  // clear
    }
    tile::wgmma_pin<32>(C_local + 0);
    int stage = 0;
    int phase = 0;  // first parity of full
    int last = 0;
    TILE_NO_UNROLL
    for (int k = 0; k < K >> 6; ++k) {
      tile::mbarrier_wait(full + stage, phase);  // wait for full
      tile::wgmma_fence();  // fence of registers
      TILE_UNROLL
      for (int kk = 0; kk < 4; ++kk) {
        tile::wgmma_ss<64, 0, 1>(C_local + 0, tile::wgmma_operand<128, 16, 1024>(A_shared + 0, stage * 1024 + group * 512 + kk * 2), tile::wgmma_operand<128, 8192, 1024>(B_shared + 0, stage * 512 + kk * 128));  // multiply
      }
      tile::wgmma_commit();  // group
      tile::wgmma_wait<1>();  // wait for the last
      if (k > 0 && (tid & 31) == 0) {  // from the second tile on
        tile::mbarrier_arrive(empty + last);  // release
      }
      last = stage;
      stage = stage + 1;
      if (stage == 3) {
        stage = 0;
        phase = phase ^ 1;
      }
    }
    tile::wgmma_wait<0>();  // wait for all
    TILE_UNROLL
    for (int j = 0; j < 4; ++j) {
      tile::frag<half_t, 8> C_half;
      TILE_UNROLL
      for (int i = 0; i < 8; ++i) {
        C_half[i] = tile::cast<half_t>(C_local[j * 8 + i]);  // read sums
      }
      tile::stmatrix_x4(C_shared + (group * 4096 + (tid >> 5) * 1024 + (tid & 15) * 64 + (((j * 2 + (tid >> 4 & 1)) ^ (tid & 7)) * 8)), C_half + 0);  // stage
    }
    tile::fence_proxy_async();  // fence of memory
    tile::bar_sync(2 + group, 128);  // staged
    if (tid == 0) {
      tile::tma_store<2>(C, C_shared + group * 4096, bx * 64, by * 128 + group * 64);  // store
      tile::tma_store_commit();  // store group
      tile::tma_store_wait_read<0>();  // wait for the store
    }
  }
}
TILE_EXPORT(hopper_gemm)
