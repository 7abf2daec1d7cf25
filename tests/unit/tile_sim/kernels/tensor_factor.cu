#include "tile.h"

// C[m, n] = sum over k of A[m, k] * B[n, k] on Blackwell: 128 x 32 sums in 32 columns of tensor
// memory, and as many of A, two rounds of 64 along K one after the other. B is in shared memory, in
// rows of 128 bytes that are swizzled.
// `broken` names a mistake; 0 is none.
#define BUT(N) if (broken != N)
#define ONLY(N) if (broken == N)
TILE_KERNEL(128, 1) void tensor_factor(tile::gptr<const half_t> A, tile::gptr<const half_t> B, tile::gptr<float> C, int broken) {
  const int thread = threadIdx.x;
  tile::sptr<half_t> B_shared = tile::smem<half_t>(0, 2048);
  tile::sptr<tile::u64> done = tile::smem<tile::u64>(4096, 1);
  tile::sptr<tile::u64> place = tile::smem<tile::u64>(4104, 1);
  if (thread == 0) {
    tile::mbarrier_init(done, 1);
    tile::fence_mbarrier_init();
  }
  if (thread < 32) tile::tcgen05_alloc<64>(place);
  tile::tcgen05_before();
  tile::sync();
  tile::tcgen05_after();
  const int base = tile::tcgen05_base(place);
  tile::frag<half_t, 64> a;
  for (int k = 0; k < 2; ++k) {
    TILE_UNROLL
    for (int i = 0; i < 64; ++i) a[i] = A[thread * 128 + k * 64 + i];
    for (int i = 0; i < 16; ++i) {
      const int row = thread / 4, chunk = thread % 4 * 2 + i / 8;
      B_shared[row * 64 + (chunk ^ row % 8) * 8 + i % 8] = B[row * 128 + k * 64 + chunk * 8 + i % 8];  // fill
    }
    BUT(1) tile::fence_proxy_async();
    BUT(2) { BUT(3) tile::tcgen05_store<32>(a, base, 32); }  // keep
    ONLY(3) tile::tcgen05_store<24>(a, base, 32);  // keep too few
    ONLY(4) tile::tcgen05_store<32>(a, base, 48);  // keep beside
    BUT(5) tile::tcgen05_before();
    BUT(6) tile::sync();  // kept
    if (thread / 32 == 0 && tile::elect()) {
      BUT(7) tile::tcgen05_after();
      const auto b = tile::tcgen05_operand<128, 16, 1024, 2>(B_shared, 0);
      if (k == 0) tile::tcgen05_mma_ts_set<32, 0, 4>(base, 0, 32, b);  // set
      if (k == 1) {
        BUT(8) tile::tcgen05_mma_ts<32, 0, 4>(base, 0, 32, b);  // multiply
        ONLY(8) tile::tcgen05_mma_ts<32, 0, 4>(base, 0, 0, b);  // multiply sums
      }
      tile::tcgen05_commit(done);
    }
    ONLY(10) { if (k == 1) tile::tcgen05_store<32>(a, base, 32); }  // keep again
    BUT(9) tile::mbarrier_wait(done, k);  // wait
    tile::tcgen05_after();
  }
  tile::frag<float, 32> sums;
  tile::tcgen05_load<32>(sums, base, 0);  // read sums
  tile::tcgen05_before();
  TILE_UNROLL
  for (int i = 0; i < 32; ++i) C[thread * 32 + i] = sums[i];
  tile::sync();
  if (thread < 32) {
    tile::tcgen05_after();
    tile::tcgen05_free<64>(base);
  }
}
TILE_EXPORT(tensor_factor)
