#include "tile.h"

// C[m, n] = sum over k of W[m, k] * X[k, n], 64 x 64 by one warpgroup: W is multiplied from
// registers, X from shared memory that threads write, in steps of 16 with two slots.
TILE_KERNEL(128, 1) void hopper_weights(tile::gptr<const half_t> W, tile::gptr<const half_t> X, tile::gptr<float> C, int K) {
  const int tid = threadIdx.x;
  tile::sptr<half_t> X_shared = tile::smem<half_t>(0, 2048);
  tile::frag<float, 32> C_local;
  tile::frag<half_t, 8> W_local;
  tile::frag<half_t, 8> X_local;
  TILE_UNROLL
  for (int i = 0; i < 32; ++i) {
    C_local[i] = 0.0f;
  }
  const int row = (tid >> 5) * 16 + (tid >> 2 & 7);
  TILE_NO_UNROLL
  for (int k = 0; k < K; k += 16) {
    const int slot = k >> 4 & 1;
    tile::load<8>(X_local + 0, X + ((k + (tid >> 3)) * 64 + (tid & 7) * 8));
    tile::store<8>(X_shared + (slot * 1024 + (tid >> 3) * 64 + (((tid & 7) ^ (tid >> 3 & 7)) * 8)), X_local + 0);  // write X
    tile::fence_proxy_async();  // fence of memory
    tile::sync();  // X is there
    TILE_UNROLL
    for (int j = 0; j < 4; ++j) {
      tile::load<2>(W_local + j * 2, W + ((row + (j & 1) * 8) * K + k + (j >> 1) * 8 + (tid & 3) * 2));  // load W
    }
    tile::wgmma_fence();  // fence of registers
    tile::wgmma_rs<64, 1>(C_local + 0, W_local + 0, tile::wgmma_operand<128, 2048, 1024>(X_shared + 0, slot * 128));  // multiply
    tile::wgmma_commit();
    tile::wgmma_wait<0>();  // wait
  }
  TILE_UNROLL
  for (int i = 0; i < 32; ++i) {
    C[(row + (i >> 1 & 1) * 8) * 64 + (i >> 2) * 8 + (tid & 3) * 2 + (i & 1)] = C_local[i];  // read sums
  }
}
TILE_EXPORT(hopper_weights)
