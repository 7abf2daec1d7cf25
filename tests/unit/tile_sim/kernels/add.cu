// C = A + B, one element per thread; the last block hangs over the end.
#include "tile.h"

TILE_KERNEL(128, 1) void add(tile::gptr<const float> A, tile::gptr<const float> B, tile::gptr<float> C, int N) {
  const int tid = threadIdx.x;
  const int bx = blockIdx.x;
  const int i = bx * 128 + tid;
  if (i < N) {
    C[i] = A[i] + B[i];
  }
}
TILE_EXPORT(add)
