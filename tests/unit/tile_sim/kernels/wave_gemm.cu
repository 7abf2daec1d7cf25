#include "tile.h"

// C = A @ B^T on AMD's matrix cores: tiles of 128 x 128 x 32, four waves of 64 x 64, two buffers
// that are filled by copies which the waves count. A copy's lanes lie side by side in shared memory,
// so rows are swizzled where they are read from: 16-byte chunk p of row r holds chunk
// p ^ (r / 2 % 4), without which rows two apart would be in the same banks.
TILE_KERNEL(256, 2) void wave_gemm(tile::gptr<const half_t> A, tile::gptr<const half_t> B,
                                   tile::gptr<float> C, int M, int N, int K) {
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  const int by = blockIdx.y;
  const int lane = tid & 63;
  const int wave = tile::uniform(tid >> 6);
  const int copied = lane >> 4;
  const int offset = (lane & 3) * 2;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 8192);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(16384, 8192);
  tile::frag<half_t, 16> A_local;
  tile::frag<half_t, 16> B_local;
  tile::frag<float, 64> C_local;
  TILE_UNROLL
  for (int i = 0; i < 64; ++i) {
    C_local[i] = 0.0f;  // clear
  }
  TILE_NO_UNROLL
  for (int ko = -1; ko < (K + 31) / 32; ++ko) {
    if (ko + 1 < (K + 31) / 32) {
      TILE_UNROLL
      for (int i = 0; i < 8; ++i) {
        const int row = ((wave * 8) + i) * 4 + copied;
        const int column = (ko + 1) * 32 + (((lane >> 2) & 3) ^ ((row >> 1) & 3)) * 8 + offset;
        const int place = ((ko + 1) & 1) * 4096 + ((wave * 8) + i) * 128;
        const bool a_exists = by * 128 + row < M && column < K;
        const bool b_exists = bx * 128 + row < N && column < K;
        tile::lds_load<4>(A_shared + place, A, (by * 128 + row) * K + column, a_exists);  // copy A
        tile::lds_load<4>(B_shared + place, B, (bx * 128 + row) * K + column, b_exists);  // copy B
      }
    }
    if (ko < 0) {
      continue;
    }
    if (ko + 1 < (K + 31) / 32) {
      tile::lds_wait<16>();  // wait
    } else {
      tile::lds_wait<0>();  // wait at the end
    }
    tile::sync();  // data is there
    TILE_UNROLL
    for (int step = 0; step < 2; ++step) {
      TILE_UNROLL
      for (int i = 0; i < 2; ++i) {
        const int a_row = (wave & 1) * 64 + i * 32 + (lane & 31);
        const int b_row = (wave >> 1) * 64 + i * 32 + (lane & 31);
        const int a_chunk = (step * 2 + (lane >> 5)) ^ ((a_row >> 1) & 3);
        const int b_chunk = (step * 2 + (lane >> 5)) ^ ((b_row >> 1) & 3);
        tile::load<8>(A_local + (i * 8), A_shared + ((ko & 1) * 4096 + a_row * 32 + a_chunk * 8));  // load A
        tile::load<8>(B_local + (i * 8), B_shared + ((ko & 1) * 4096 + b_row * 32 + b_chunk * 8));  // load B
      }
      TILE_UNROLL
      for (int i = 0; i < 2; ++i) {
        TILE_UNROLL
        for (int j = 0; j < 2; ++j) {
          tile::mfma_32x32x8<2>(C_local + (i * 32 + j * 16), A_local + (i * 8), B_local + (j * 8));  // multiply
        }
      }
    }
    tile::sync();  // data was read
  }
  TILE_UNROLL
  for (int i = 0; i < 2; ++i) {
    TILE_UNROLL
    for (int j = 0; j < 2; ++j) {
      TILE_UNROLL
      for (int run = 0; run < 4; ++run) {
        const int row = by * 128 + (wave & 1) * 64 + i * 32 + (lane & 31);
        const int column = bx * 128 + (wave >> 1) * 64 + j * 32 + run * 8 + (lane >> 5) * 4;
        if (row < M && column < N) {
          tile::store<4>(C + (row * N + column), C_local + (i * 32 + j * 16 + run * 4));  // store
        }
      }
    }
  }
}
TILE_EXPORT(wave_gemm)

// Each wave copies 64 numbers, or zeros behind the last of n, and its lanes read those of others.
TILE_KERNEL(128, 1) void wave_copies(tile::gptr<const int> A, tile::gptr<int> B, int n) {
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  const int wave = tile::uniform(tid >> 6);
  tile::sptr<int> s = tile::smem<int>(64, 128);
  tile::lds_load<4>(s + (wave * 64), A, bx * 128 + tid, bx * 128 + tid < n);  // copies: copy
  tile::lds_wait<0>();  // copies: wait
  B[bx * 128 + tid] = s[tid ^ 63];  // copies: read
}
TILE_EXPORT(wave_copies)
