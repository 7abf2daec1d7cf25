#include "tile.h"

// C[m, n] = sum over k of (A[m, k] * P[m, k / 32]) * (B[n, k] * Q[n, k / 32]) on Blackwell: 128 x 128
// sums in tensor memory, two rounds of 128 along K. Scales of a round are 512 bytes: those of row r
// begin at r % 32 * 16 + r / 32 * 4. Rows of 128 bytes are swizzled.
// `broken` names a mistake; 0 is none.
#define BUT(N) if (broken != N)
#define ONLY(N) if (broken == N)
TILE_KERNEL(128, 1) void tensor_scaled(tile::gptr<const tile::e4m3> A, tile::gptr<const tile::e4m3> B, tile::gptr<const tile::e8m0> P, tile::gptr<const tile::e8m0> Q, tile::gptr<float> C, int broken) {
  const int thread = threadIdx.x;
  tile::sptr<tile::e4m3> a = tile::smem<tile::e4m3>(0, 16384);
  tile::sptr<tile::e4m3> b = tile::smem<tile::e4m3>(16384, 16384);
  tile::sptr<tile::e8m0> p = tile::smem<tile::e8m0>(32768, 512);
  tile::sptr<tile::e8m0> q = tile::smem<tile::e8m0>(33280, 512);
  tile::sptr<tile::u64> done = tile::smem<tile::u64>(33792, 1);
  tile::sptr<tile::u64> place = tile::smem<tile::u64>(33800, 1);
  if (thread == 0) {
    tile::mbarrier_init(done, 1);
    tile::fence_mbarrier_init();
  }
  if (thread < 32) tile::tcgen05_alloc<256>(place);
  tile::tcgen05_before();
  tile::sync();
  tile::tcgen05_after();
  const int base = tile::tcgen05_base(place);
  for (int k = 0; k < 2; ++k) {
    for (int i = 0; i < 128; ++i) {
      const int to = thread * 128 + (i / 16 ^ thread % 8) * 16 + i % 16;
      a[to] = A[thread * 256 + k * 128 + i];
      b[to] = B[thread * 256 + k * 128 + i];
    }
    for (int g = 0; g < 4; ++g) {
      int to = thread % 32 * 16 + thread / 32 * 4 + g;
      ONLY(1) to = thread * 4 + g;
      p[to] = P[thread * 8 + k * 4 + g];  // fill
      q[to] = Q[thread * 8 + k * 4 + g];
    }
    BUT(2) tile::fence_proxy_async();
    tile::sync();
    ONLY(3) {
      if (thread / 32 == 1 && tile::elect()) tile::tcgen05_scales(base, 132, q);  // copy elsewhere
    }
    if (thread / 32 == 0 && tile::elect()) {
      tile::tcgen05_after();
      BUT(4) tile::tcgen05_scales(base, 128, p);  // copy A
      BUT(3) { BUT(5) tile::tcgen05_scales(base, 132, q); }  // copy B
      ONLY(6) tile::tcgen05_scales(base, 254, q);  // copy beside
      ONLY(7) tile::tcgen05_scales(base, 124, p);  // copy to sums
      const auto left = tile::tcgen05_operand<128, 16, 1024, 2>(a, 0);
      const auto right = tile::tcgen05_operand<128, 16, 1024, 2>(b, 0);
      const int first = broken == 8 ? 1 : 0;
      if (k == 0) tile::tcgen05_mma_scaled_set<128, 128, 0, 0, 4>(base, 0, left, right, 128, 132, 0);  // set
      ONLY(9) { if (k == 1) tile::tcgen05_mma_scaled<128, 128, 0, 0, 4>(base, 0, left, right, 132, 128, 0); }
      BUT(9) { if (k == 1) tile::tcgen05_mma_scaled<128, 128, 0, 0, 3>(base, 0, left, right, 128, 132, first); }  // add
      BUT(9) { if (k == 1) tile::tcgen05_mma_scaled<128, 128, 0, 0, 1>(base, 0, tile::tcgen05_operand<128, 16, 1024>(a, 6), tile::tcgen05_operand<128, 16, 1024>(b, 6), 128, 132, 3); }
      BUT(10) tile::tcgen05_commit(done);
      ONLY(11) tile::tcgen05_scales(base, 128, q);  // copy late
    }
    ONLY(12) p[thread * 4] = P[0];  // fill again
    BUT(10) tile::mbarrier_wait(done, k);
    tile::tcgen05_after();
  }
  tile::frag<float, 128> sums;
  tile::tcgen05_load<128>(sums, base, 0);  // read sums
  tile::tcgen05_before();
  for (int i = 0; i < 128; ++i) C[thread * 128 + i] = sums[i];
  tile::sync();
  if (thread < 32) {
    tile::tcgen05_after();
    tile::tcgen05_free<256>(base);  // free
  }
}
TILE_EXPORT(tensor_scaled)
