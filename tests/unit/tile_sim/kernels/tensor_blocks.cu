#include "tile.h"

// C[m, n] = sum over k of A[m, k] * B[n, k] on Blackwell by pairs of blocks: 256 x 128, of which each
// block has 128 rows in its tensor memory, and 64 of B's rows in a ring of two tiles of 64 along K.
// Warp 4 copies in both blocks, one thread of warp 0 of the first multiplies, warps 0 to 3 read.
// Maps, innermost first, with a swizzle of 128 bytes: A boxes 64 x 128, B boxes 64 x 64.
// `broken` names a mistake; 0 is none.
#define BUT(N) if (broken != N)
#define ONLY(N) if (broken == N)
TILE_KERNEL(160, 1) TILE_CLUSTER(2, 1, 1) void tensor_blocks(TILE_TENSOR_MAP(A), TILE_TENSOR_MAP(B), tile::gptr<float> C, int K, int broken) {
  const int thread = threadIdx.x, warp = thread / 32;
  const int rank = tile::cluster_rank();
  tile::sptr<half_t> A_shared = tile::smem<half_t>(0, 16384);
  tile::sptr<half_t> B_shared = tile::smem<half_t>(32768, 8192);
  tile::sptr<tile::u64> full = tile::smem<tile::u64>(49152, 2);
  tile::sptr<tile::u64> empty = tile::smem<tile::u64>(49168, 2);
  tile::sptr<tile::u64> done = tile::smem<tile::u64>(49184, 1);
  tile::sptr<tile::u64> ready = tile::smem<tile::u64>(49192, 1);
  tile::sptr<tile::u64> place = tile::smem<tile::u64>(49200, 1);
  if (thread == 0) {
    for (int i = 0; i < 2; ++i) {
      tile::mbarrier_init(full + i, 1);
      tile::mbarrier_init(empty + i, 1);
    }
    tile::mbarrier_init(done, 1);
    tile::mbarrier_init(ready, 4);
    tile::fence_mbarrier_init();
  }
  BUT(1) tile::cluster_sync();  // all have started
  if (warp == 0) {
    BUT(2) { BUT(23) tile::tcgen05_alloc_pair<128>(place); }  // take
    ONLY(2) tile::tcgen05_alloc<128>(place);  // take alone
    ONLY(23) { if (rank == 0) tile::tcgen05_alloc_pair<128>(place); else tile::tcgen05_alloc_pair<64>(place); }  // take as many
    BUT(3) tile::tcgen05_before();
  }
  ONLY(4) tile::sync();
  BUT(4) tile::cluster_sync();  // taken
  BUT(5) tile::tcgen05_after();
  const int base = tile::tcgen05_base(place);
  if (warp == 4) {
    if (tile::elect()) {
      for (int k = 0; k < K >> 6; ++k) {
        if (broken != 6 || rank == 0) tile::mbarrier_wait(empty + k % 2, (k / 2 & 1) ^ 1);  // wait for empty
        BUT(7) { if (rank == 0) tile::mbarrier_arrive_expect_tx(full + k % 2, 49152); }  // expect
        ONLY(7) { if (rank == 0) tile::mbarrier_arrive_expect_tx(full + k % 2, 24576); }  // expect own
        if (broken == 8 && rank == 1) tile::tma_load<2>(A_shared + k % 2 * 8192, A, full + k % 2, k * 64, 128);  // copy A alone
        else tile::tma_load_pair<2>(A_shared + k % 2 * 8192, A, full + k % 2, k * 64, rank * 128);  // copy A
        tile::tma_load_pair<2>(B_shared + (k + (broken == 25 && rank == 1)) % 2 * 4096, B, full + k % 2, k * 64, (broken == 9 ? 0 : rank) * 64);  // copy B
      }
    }
  } else {
    tile::frag<float, 128> sums;
    TILE_UNROLL
    for (int i = 0; i < 128; ++i) sums[i] = 0.0f;
    if (broken != 10 || rank == 0) tile::tcgen05_store<128>(sums, base, 0);  // clear
    if (broken != 11 || rank == 0) tile::tcgen05_before();
    tile::bar_sync(1, 128);  // cleared
    tile::sync_warp();
    if (rank == 1 && thread % 32 == 0 && (broken != 12 || warp != 2)) tile::tcgen05_tell_first(ready);  // tell
    if (warp == 0 && (rank == 0 || broken == 13)) {
      if (rank == 0 && broken != 14 && broken != 12 && broken != 4) tile::mbarrier_wait(ready, 0);  // wait for the other
      if (tile::elect()) {
        for (int k = 0; k < K >> 6; ++k) {
          if (broken != 15 && rank == 0) tile::mbarrier_wait(full + k % 2, k / 2 & 1);  // wait for full
          BUT(16) tile::tcgen05_after();
          const auto a = tile::tcgen05_operand<128, 16, 1024, 2>(A_shared + k % 2 * 8192, 0);
          const auto b = tile::tcgen05_operand<128, 16, 1024, 2>(B_shared + k % 2 * 4096, 0);
          BUT(17) tile::tcgen05_mma_pair<128, 0, 0, 4>(base, 0, a, b);  // multiply
          ONLY(17) tile::tcgen05_mma<128, 64, 0, 0, 4>(base, 0, a, b);  // multiply alone
          BUT(18) tile::tcgen05_commit_pair(empty + k % 2);  // release
          ONLY(18) tile::tcgen05_commit(empty + k % 2);  // release own
        }
        BUT(19) tile::tcgen05_commit_pair(done);  // all are told
        ONLY(19) tile::tcgen05_commit(done);
      }
    }
    if (broken != 20 || rank == 0) tile::mbarrier_wait(done, 0);  // wait for all
    BUT(21) tile::tcgen05_after();
    tile::tcgen05_load<128>(sums, base, 0);  // read sums
    tile::tcgen05_before();
    TILE_UNROLL
    for (int i = 0; i < 128; ++i) C[(rank * 128 + thread) * 128 + i] = sums[i];
  }
  BUT(22) tile::cluster_sync();  // all are done
  ONLY(22) tile::sync();
  if (warp == 0) {
    tile::tcgen05_after();
    BUT(24) tile::tcgen05_free_pair<128>(base);  // free
    ONLY(24) tile::tcgen05_free<128>(base);  // free alone
  }
}
TILE_EXPORT(tensor_blocks)
