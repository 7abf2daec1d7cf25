#include "tile.h"

// Each block of 128 threads reverses 128 elements through shared memory.
TILE_KERNEL(128, 1) void exchange(tile::gptr<const float> A, tile::gptr<float> B, int n) {
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  tile::sptr<float> s = tile::smem<float>(0, 128);
  s[tid] = 0.0f;  // clear
  if (((bx * 128) + tid) < n) {  // guard
    s[tid] = A[(bx * 128) + tid];  // load
  }
  tile::sync();  // meet
  if (((bx * 128) + tid) < n) {
    B[(bx * 128) + tid] = s[127 - tid];  // use
  }
}
TILE_EXPORT(exchange)
