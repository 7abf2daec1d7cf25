// Barriers.
#pragma once
#include "tile_sim/device_abi.h"

namespace tile {

// All threads of the block meet; what they did before is visible to all after.
TILE_HOST void sync(unsigned line = __builtin_LINE()) { tsim_sync(line); }

// The same, and every thread learns for how many, for all, for any of them `x` is true.
TILE_HOST int syncthreads_count(int x, unsigned line = __builtin_LINE()) {
  return tsim_sync_count(0, x, line);
}
TILE_HOST int syncthreads_and(int x, unsigned line = __builtin_LINE()) {
  return tsim_sync_count(1, x, line);
}
TILE_HOST int syncthreads_or(int x, unsigned line = __builtin_LINE()) {
  return tsim_sync_count(2, x, line);
}

// `threads` threads meet at barrier `id`; those that only arrive do not wait.
TILE_HOST void bar_sync(int id, int threads, unsigned line = __builtin_LINE()) {
  tsim_bar_sync(id, threads, line);
}
TILE_HOST void bar_arrive(int id, int threads, unsigned line = __builtin_LINE()) {
  tsim_bar_arrive(id, threads, line);
}

// The same on machines that count them in memory, which is not looked at here.
TILE_HOST void bar_ready(sptr<u32>, u32, unsigned line = __builtin_LINE()) { tsim_sync(line); }
TILE_HOST void bar_sync_counted(sptr<u32>, int id, int threads, unsigned line = __builtin_LINE()) {
  tsim_bar_sync(id, threads, line);
}
TILE_HOST void bar_arrive_counted(sptr<u32>, int id, int threads,
                                  unsigned line = __builtin_LINE()) {
  tsim_bar_arrive(id, threads, line);
}

// The threads of the warp meet, all of them or those in `mask`.
TILE_HOST void sync_warp(u64 mask = ~0ull, unsigned line = __builtin_LINE()) {
  tsim_sync_warp(mask, line);
}

// Order this thread's accesses before its later ones. The emulator executes each thread in order;
// a fence of the device is what others learn by, from words that the thread updates or reads.
TILE_HOST void fence_block() {}
TILE_HOST void fence() { tsim_fence(); }
TILE_HOST void fence_system() { tsim_fence(); }

}  // namespace tile
