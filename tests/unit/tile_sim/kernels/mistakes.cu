#include "tile.h"

// Every kernel here is right; the tests break each of them in one place.

// Pairs of lanes exchange a value.
TILE_KERNEL(32, 1) void pairs(tile::gptr<const int> A, tile::gptr<int> B) {
  const int tid = threadIdx.x;
  tile::sptr<int> s = tile::smem<int>(64, 32);
  s[tid] = A[tid];  // pairs: write
  tile::sync_warp();  // pairs: meet
  B[tid] = s[tid ^ 1];  // pairs: read
}
TILE_EXPORT(pairs)

// A sum in registers.
TILE_KERNEL(32, 1) void sums(tile::gptr<const float> A, tile::gptr<float> B) {
  const int tid = threadIdx.x;
  tile::frag<float, 4> total;
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    total[i] = 0.0f;  // sums: clear
  }
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    total[i] = total[i] + A[(tid * 4) + i];  // sums: add
  }
  tile::store<4>(B + (tid * 4), total + 0);  // sums: store
}
TILE_EXPORT(sums)

// All threads meet, whatever branch they took.
TILE_KERNEL(128, 1) void branches(tile::gptr<int> B) {
  const int tid = threadIdx.x;
  tile::sptr<int> s = tile::smem<int>(0, 128);
  if (tid < 64) {
    s[tid] = 1;
    // branches: inner
  } else {
    s[tid] = 2;
  }
  tile::sync();  // branches: meet
  B[tid] = s[127 - tid];
}
TILE_EXPORT(branches)

// The first 64 threads meet at a barrier of their own.
TILE_KERNEL(128, 1) void halves(tile::gptr<int> B) {
  const int tid = threadIdx.x;
  tile::sptr<int> s = tile::smem<int>(0, 128);
  s[tid] = tid;
  if (tid < 64) {
    tile::bar_sync(1, 64);  // halves: meet
    B[tid] = s[63 - tid];
  }
}
TILE_EXPORT(halves)

// Vectors of four from a place in shared memory.
TILE_KERNEL(32, 1) void vectors(tile::gptr<const float> A, tile::gptr<float> B) {
  const int tid = threadIdx.x;
  tile::sptr<float> s = tile::smem<float>(0, 136);
  tile::frag<float, 4> v;
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    s[(i * 32) + tid] = A[(i * 32) + tid];
  }
  tile::sync();
  tile::load<4>(v + 0, s + (tid * 4));  // vectors: load
  tile::store<4>(B + (tid * 4), v + 0);  // vectors: store
}
TILE_EXPORT(vectors)

// Each block writes an element of its own.
TILE_KERNEL(32, 1) void blocks(tile::gptr<int> B) {
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  if (tid == 0) {
    B[bx] = bx;  // blocks: write
  }
}
TILE_EXPORT(blocks)

// Elements of a row of 16, and one that asserts and prints.
TILE_KERNEL(16, 1) void talks(tile::gptr<const int> A, int limit) {
  const int tid = threadIdx.x;
  tile::assert_that(A[tid] < limit, "an element is too large");  // talks: assert
  if (tid == 3) {
    tile::print("A[3] is %d\n", (int)A[3]);
  }
}
TILE_EXPORT(talks)

// The first warp waits for a flag that the last one sets.
TILE_KERNEL(64, 1) void flags(tile::gptr<int> flag, tile::gptr<int> B) {
  const int tid = threadIdx.x;
  if (tid == 63) {
    flag[0] = 1;  // flags: set
  }
  while (flag[0] == 0) {  // flags: wait
  }
  B[tid] = tid;
}
TILE_EXPORT(flags)
