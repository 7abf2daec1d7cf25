#include "tile.h"

// C[m, n] = sum over k of A[m, k] * B[n, k] on Blackwell: a tile of 128 x 64 in tensor memory, tiles
// of 64 along K in a ring of two. Warp 4 copies, one thread of warp 0 multiplies, warps 0 to 3 read.
// Maps, innermost first, with a swizzle of 128 bytes: A boxes 64 x 128, B boxes 64 x 64.
// `broken` names a mistake; 0 is none.
#define BUT(N) if (broken != N)
#define ONLY(N) if (broken == N)
TILE_KERNEL(160, 1) void tensor_gemm(TILE_TENSOR_MAP(A), TILE_TENSOR_MAP(B), tile::gptr<float> C, int K, int broken) {
  const int thread = threadIdx.x;
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 16384);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(32768, 8192);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(49152, 2);
  tile::sptr<tile::u64> empty = tile::smem<tile::u64>(49168, 2);
  tile::sptr<tile::u64> done = tile::smem<tile::u64>(49184, 1);
  tile::sptr<tile::u64> place = tile::smem<tile::u64>(49192, 1);
  if (thread == 0) {
    for (int i = 0; i < 2; ++i) {
      tile::mbarrier_init(full + i, 1);
      tile::mbarrier_init(empty + i, 1);
    }
    tile::mbarrier_init(done, 1);
    tile::fence_mbarrier_init();
  }
  if (thread < 32) {
    BUT(1) { BUT(2) { BUT(3) tile::tcgen05_alloc<64>(place); } }  // take
    ONLY(1) tile::tcgen05_alloc<32>(place);  // take too few
    ONLY(2) { if (thread == 0) tile::tcgen05_alloc<64>(place); }  // take in one lane
    ONLY(3) { tile::tcgen05_alloc<64>(place); tile::tcgen05_alloc<64>(place); }  // take twice
    BUT(4) tile::tcgen05_before();
  }
  tile::sync();  // taken
  BUT(5) tile::tcgen05_after();
  const int base = tile::tcgen05_base(place);
  const int warp = thread / 32;
  if (warp == 4) {
    if (tile::elect()) {
      for (int k = 0; k < K >> 6; ++k) {
        BUT(6) tile::mbarrier_wait(empty + k % 2, (k / 2 & 1) ^ 1);  // wait for empty
        BUT(26) tile::mbarrier_arrive_expect_tx(full + k % 2, 24576);  // expect
        ONLY(26) tile::mbarrier_arrive_expect_tx(full + k % 2, 16384);  // expect too few
        tile::tma_load<2>(A_shared + k % 2 * 8192, A, full + k % 2, k * 64, 0);  // copy A
        tile::tma_load<2>(B_shared + k % 2 * 4096, B, full + k % 2, k * 64, 0);  // copy B
      }
    }
  } else {
    tile::frag<float, 64> sums;
    TILE_UNROLL
    for (int i = 0; i < 64; ++i) sums[i] = 0.0f;
    BUT(7) tile::tcgen05_store<64>(sums, base, 0);  // clear
    BUT(8) tile::tcgen05_before();
    BUT(9) tile::bar_sync(1, 128);  // cleared
    if (warp == 0 && (tile::elect() || broken == 25)) {
      for (int k = 0; k < K >> 6; ++k) {
        BUT(10) tile::mbarrier_wait(full + k % 2, k / 2 & 1);  // wait for full
        BUT(11) tile::tcgen05_after();
        const auto a = tile::tcgen05_operand<128, 16, 1024, 2>(A_shared + k % 2 * 8192, 0);
        const auto b = tile::tcgen05_operand<128, 16, 1024, 2>(B_shared + k % 2 * 4096, 0);
        ONLY(12) tile::tcgen05_mma<128, 64, 0, 0, 4>(base, 32, a, b);  // multiply out of place
        BUT(13) tile::tcgen05_mma<128, 64, 0, 0, 4>(base, 0, a, b);  // multiply
        ONLY(24) tile::tcgen05_mma<128, 32, 0, 0, 4>(base, 0, a, b);  // multiply half
        BUT(14) tile::tcgen05_commit(empty + k % 2);  // release
        ONLY(13) tile::tcgen05_mma<128, 64, 0, 0, 4>(base, 0, a, b);  // multiply late
      }
      BUT(15) tile::tcgen05_commit(done);
    }
    BUT(16) tile::mbarrier_wait(done, broken == 27);  // wait for all
    BUT(17) tile::tcgen05_after();
    BUT(18) tile::tcgen05_load<64>(sums, base, 0);  // read sums
    ONLY(18) tile::tcgen05_load<64>(sums, base, 32);  // read too far
    tile::tcgen05_before();
    TILE_UNROLL
    for (int i = 0; i < 64; ++i) C[thread * 64 + i] = sums[i];
  }
  BUT(19) tile::sync();  // all are done
  if (warp == 0) {
    BUT(5) tile::tcgen05_after();
    BUT(20) { BUT(21) { BUT(23) tile::tcgen05_free<64>(base); } }  // free
    ONLY(21) tile::tcgen05_free<32>(base);  // free too few
    ONLY(22) tile::tcgen05_free<64>(base);  // free again
  }
  if (warp == 1) {
    ONLY(23) tile::tcgen05_free<64>(base);  // free elsewhere
  }
}
TILE_EXPORT(tensor_gemm)
