#include "tile.h"

// C[m, n] = sum over k of A[m, k] * B[n, k] on Blackwell, in four tiles of 128 rows and 64 columns:
// warp 4 copies tiles of 64 along K into a ring of two, one thread of warp 5 multiplies into two sums
// in turn, and warps 0 to 3 read those of one tile while it multiplies the next.
// Maps, innermost first, with a swizzle of 128 bytes: A boxes 64 x 128, B boxes 64 x 64.
// `broken` names a mistake; 0 is none.
#define BUT(N) if (broken != N)
#define ONLY(N) if (broken == N)
TILE_KERNEL(192, 1) void tensor_tiles(TILE_TENSOR_MAP(A), TILE_TENSOR_MAP(B), tile::gptr<float> C, int broken) {
  const int thread = threadIdx.x, warp = thread / 32;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 16384);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(32768, 8192);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(49152, 2);
  tile::sptr<tile::u64> empty = tile::smem<tile::u64>(49168, 2);
  tile::sptr<tile::u64> sums_full = tile::smem<tile::u64>(49184, 2);
  tile::sptr<tile::u64> sums_empty = tile::smem<tile::u64>(49200, 2);
  tile::sptr<tile::u64> place = tile::smem<tile::u64>(49216, 1);
  if (thread == 0) {
    for (int i = 0; i < 2; ++i) {
      tile::mbarrier_init(full + i, 1);
      tile::mbarrier_init(empty + i, 1);
      tile::mbarrier_init(sums_full + i, 1);
      tile::mbarrier_init(sums_empty + i, broken == 6 ? 1 : 4);
    }
    tile::fence_mbarrier_init();
  }
  if (warp == 0) {
    ONLY(1) tile::tcgen05_alloc<144>(place);  // take some
    BUT(1) tile::tcgen05_alloc<128>(place);  // take
    tile::tcgen05_before();
  }
  tile::sync();
  tile::tcgen05_after();
  const int base = tile::tcgen05_base(place);
  if (warp == 4) {
    if (tile::elect()) {
      for (int i = 0; i < 8; ++i) {
        tile::mbarrier_wait(empty + i % 2, (i / 2 & 1) ^ 1);
        tile::mbarrier_arrive_expect_tx(full + i % 2, 24576);  // expect
        tile::tma_load<2>(A_shared + i % 2 * 8192, A, full + i % 2, i % 2 * 64, i / 2 * 128);  // copy A
        tile::tma_load<2>(B_shared + i % 2 * 4096, B, full + i % 2, i % 2 * 64, 0);  // copy B
      }
    }
  } else if (warp == 5) {
    const bool is_other = broken == 16 || broken == 17;
    const bool mine = is_other ? thread % 32 == 0 : tile::elect();
    for (int i = 0; i < 8; ++i) {
      const int t = i / 2, s = t % 2, k = i % 2;
      BUT(2) { if (k == 0) tile::mbarrier_wait(sums_empty + s, (t / 2 & 1) ^ (broken != 15)); }  // wait for sums
      tile::mbarrier_wait(full + i % 2, i / 2 & 1);  // wait for full
      BUT(19) tile::sync_warp();  // lanes that are late would miss the phase
      tile::tcgen05_after();
      if (mine) {
        const auto a = tile::tcgen05_operand<128, 16, 1024, 2>(A_shared + i % 2 * 8192, 0);
        const auto b = tile::tcgen05_operand<128, 16, 1024, 2>(B_shared + i % 2 * 4096, 0);
        if (k == 0 && broken != 13) tile::tcgen05_mma_set<128, 64, 0, 0, 4>(base, s * 64, a, b);  // multiply first
        else tile::tcgen05_mma<128, 64, 0, 0, 4>(base, s * 64, a, b);  // multiply
        BUT(16) tile::tcgen05_commit(empty + i % 2);  // release
        ONLY(7) tile::tcgen05_commit(empty + i % 2);  // release again
        if (k == (broken != 9)) { BUT(8) BUT(17) tile::tcgen05_commit(sums_full + s); }  // tell
      }
      tile::sync_warp();
      if (is_other && thread % 32 == 1) {
        ONLY(16) tile::tcgen05_commit(empty + i % 2);  // release by another lane
        ONLY(17) if (k == 1) tile::tcgen05_commit(sums_full + s);  // tell by another lane
      }
    }
  } else {
    tile::frag<float, 64> sums;
    for (int t = 0; t < (broken == 12 ? 3 : 4); ++t) {
      const int s = t % 2;
      ONLY(4) { tile::sync_warp(); if (thread % 32 == 0) tile::mbarrier_arrive(sums_empty + s); }  // free early
      tile::mbarrier_wait(sums_full + s, (t / 2 & 1) ^ (broken == 14));  // wait for products
      BUT(11) tile::tcgen05_after();
      BUT(10) tile::tcgen05_load<64>(sums, base, s * 64);  // read sums
      ONLY(10) tile::tcgen05_load<64>(sums, base, 64 - s * 64);  // read others
      BUT(3) tile::tcgen05_before();
      tile::sync_warp();
      if (thread % 32 == 0 && broken != 4 && (broken != 5 || warp != 2)) tile::mbarrier_arrive(sums_empty + s);  // free sums
      for (int i = 0; i < 64; ++i) C[(t * 128 + (broken == 18 ? thread ^ 32 : thread)) * 64 + i] = sums[i];
      ONLY(3) tile::tcgen05_before();
    }
  }
  tile::sync();
  if (warp == 0) {
    tile::tcgen05_after();
    tile::tcgen05_free<128>(base);  // free
  }
}
TILE_EXPORT(tensor_tiles)
