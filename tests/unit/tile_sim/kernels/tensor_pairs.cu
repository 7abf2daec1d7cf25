#include "tile.h"

// C[m, n] = sum over k of (A[m, k] * P[m, k / 16]) * (B[n, k] * Q[n, k / 16]) on Blackwell, of pairs of
// 4-bit floats: 128 x 128 sums in tensor memory, 128 along K, which are 64 bytes and two steps. Scales
// of four groups are 512 bytes: those of row r begin at r % 32 * 16 + r / 32 * 4.
// `broken` names a mistake; 0 is none, nor is 2: words of scales may follow each other in one place.
#define BUT(N) if (broken != N)
#define ONLY(N) if (broken == N)
TILE_KERNEL(128, 1) void tensor_pairs(tile::gptr<const tile::u8> A, tile::gptr<const tile::u8> B, tile::gptr<const tile::e4m3> P, tile::gptr<const tile::e4m3> Q, tile::gptr<float> C, int broken) {
  const int thread = threadIdx.x;
  tile::sptr<tile::u8> a = tile::smem<tile::u8>(0, 8192);
  tile::sptr<tile::u8> b = tile::smem<tile::u8>(8192, 8192);
  tile::sptr<tile::e4m3> p = tile::smem<tile::e4m3>(16384, 1024);
  tile::sptr<tile::e4m3> q = tile::smem<tile::e4m3>(17408, 1024);
  tile::sptr<tile::u64> done = tile::smem<tile::u64>(18432, 1);
  tile::sptr<tile::u64> place = tile::smem<tile::u64>(18440, 1);
  if (thread == 0) {
    tile::mbarrier_init(done, 1);
    tile::fence_mbarrier_init();
  }
  if (thread < 32) tile::tcgen05_alloc<256>(place);
  tile::tcgen05_before();
  tile::sync();
  tile::tcgen05_after();
  const int base = tile::tcgen05_base(place);
  for (int i = 0; i < 64; ++i) {
    const int to = thread * 64 + (i / 16 ^ thread / 2 % 4) * 16 + i % 16;
    a[to] = A[thread * 64 + i];
    b[to] = B[thread * 64 + i];
  }
  for (int g = 0; g < 8; ++g) {
    const int to = g / 4 * 512 + thread % 32 * 16 + thread / 32 * 4 + g % 4;
    p[to] = P[thread * 8 + g];
    q[to] = Q[thread * 8 + g];
  }
  BUT(1) tile::fence_proxy_async();
  tile::sync();
  if (thread / 32 == 0 && tile::elect()) {
    tile::tcgen05_after();
    for (int k = 0; k < 2; ++k) {
      const int own = broken == 2 ? 0 : 8 * k;
      int of_a = 128 + own, of_b = 132 + own;
      ONLY(3) of_a = of_b;
      tile::tcgen05_scales(base, 128 + own, p + 512 * k);  // copy A
      if (broken != 4 || k == 0) tile::tcgen05_scales(base, 132 + own, q + 512 * (broken == 5 ? 0 : k));  // copy B
      const auto left = tile::tcgen05_operand<64, 16, 512>(a, 2 * k);
      const auto right = tile::tcgen05_operand<64, 16, 512>(b, 2 * k);
      int first = 0;
      ONLY(6) first = 2;
      if (k == 0) tile::tcgen05_mma_scaled_set<128, 128, 0, 0, 1, 4>(base, 0, left, right, of_a, of_b, first);  // set
      ONLY(7) { if (k == 1) tile::tcgen05_mma_scaled<128, 128, 0, 0, 1, 2>(base, 0, left, right, of_a, of_b, 0); }
      BUT(7) { if (k == 1) tile::tcgen05_mma_scaled<128, 128, 0, 0, 1, 4>(base, 0, left, right, of_a, of_b, first); }  // add
    }
    ONLY(9) tile::tcgen05_mma_scaled<128, 64, 0, 0, 1, 4>(base, 0, tile::tcgen05_operand<64, 16, 512>(a, 0), tile::tcgen05_operand<64, 16, 512>(b, 0), 128, 132, 0);  // add half
    tile::tcgen05_commit(done);
  }
  tile::mbarrier_wait(done, 0);
  tile::tcgen05_after();
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
TILE_EXPORT(tensor_pairs)
