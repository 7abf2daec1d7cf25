// Barriers in shared memory that count arrivals of threads and bytes of asynchronous copies.
//
// Phases complete one after the other: when as many threads have arrived as `mbarrier_init` said,
// and all announced bytes are there. Who waits names the parity of a phase, 0 for the first.
#pragma once
#include "tile_sim/pointers.h"

namespace tile {

// By one thread, and then `fence_mbarrier_init` and a barrier of the block (or the cluster).
TILE_HOST void mbarrier_init(const sptr<u64>& bar, u32 arrivals,
                             unsigned line = __builtin_LINE()) {
  tsim_mbarrier_init(&bar, arrivals, line);
}
TILE_HOST void mbarrier_arrive(const sptr<u64>& bar, unsigned line = __builtin_LINE()) {
  tsim_mbarrier_arrive(&bar, -1, line);
}

// At the same barrier of block `rank` of the cluster. Compilers choose who only frees memory.
TILE_HOST void mbarrier_arrive_remote(const sptr<u64>& bar, u32 rank,
                                      unsigned line = __builtin_LINE()) {
  tsim_mbarrier_arrive(&bar, (int)rank, line);
}
TILE_HOST void mbarrier_free_remote(const sptr<u64>& bar, u32 rank,
                                    unsigned line = __builtin_LINE()) {
  tsim_mbarrier_arrive(&bar, (int)rank, line);
}

// The current phase completes only when `bytes` more have been copied.
TILE_HOST void mbarrier_expect_tx(const sptr<u64>& bar, u32 bytes,
                                  unsigned line = __builtin_LINE()) {
  tsim_mbarrier_expect(&bar, bytes, 0, line);
}
TILE_HOST void mbarrier_arrive_expect_tx(const sptr<u64>& bar, u32 bytes,
                                         unsigned line = __builtin_LINE()) {
  tsim_mbarrier_expect(&bar, bytes, 1, line);
}

// Until the phase of `parity` has completed.
TILE_HOST void mbarrier_wait(const sptr<u64>& bar, u32 parity, unsigned line = __builtin_LINE()) {
  tsim_mbarrier_wait(&bar, parity, line);
}
TILE_HOST void mbarrier_wait_cluster(const sptr<u64>& bar, u32 parity,
                                     unsigned line = __builtin_LINE()) {
  tsim_mbarrier_wait(&bar, parity, line);
}

// This thread's earlier `cp_async` arrive when they are complete; they count as one arrival.
TILE_HOST void cp_async_mbarrier_arrive(const sptr<u64>& bar, unsigned line = __builtin_LINE()) {
  tsim_copy_async_arrive(&bar, line);
}

// Barriers that were just set up are seen by copies and other blocks; what this thread wrote to
// shared memory is seen by asynchronous copies and products.
TILE_HOST void fence_mbarrier_init(unsigned line = __builtin_LINE()) {
  tsim_fence_mbarrier_init(line);
}
TILE_HOST void fence_proxy_async(unsigned line = __builtin_LINE()) {
  tsim_fence_proxy_async(line);
}

}  // namespace tile
