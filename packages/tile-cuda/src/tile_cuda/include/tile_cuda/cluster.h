// Blocks that run side by side and reach each other's shared memory; grids that overlap; registers
// that warpgroups hand to each other.
#pragma once
#include "tile_cuda/bits.h"

namespace tile {

// All threads of all blocks of the cluster; whole warps come together.
TILE_DEVICE void cluster_arrive() { asm volatile("barrier.cluster.arrive.aligned;" ::: "memory"); }
TILE_DEVICE void cluster_wait() { asm volatile("barrier.cluster.wait.aligned;" ::: "memory"); }
TILE_DEVICE void cluster_sync() {
  cluster_arrive();
  cluster_wait();
}
// Without ordering what was written before.
TILE_DEVICE void cluster_arrive_relaxed() {
  asm volatile("barrier.cluster.arrive.relaxed.aligned;" :::);
}

// Number of this block in its cluster.
TILE_DEVICE int cluster_rank() {
  int rank;
  asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The same place in block `rank` of the cluster.
template <class T>
TILE_DEVICE T* remote(T* shared, int rank) {
  u64 there;
  asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(shared), "r"(rank));
  return reinterpret_cast<T*>(there);
}

// Until the grids that this one depends on are complete, and what they wrote is seen.
TILE_DEVICE void grid_wait() { asm volatile("griddepcontrol.wait;" ::: "memory"); }
// Grids that depend on this one may begin, once all its blocks have said so or are done.
TILE_DEVICE void grid_launch() { asm volatile("griddepcontrol.launch_dependents;" ::: "memory"); }

// True in one lane of the warp, whose lanes all call it.
TILE_DEVICE bool elect() {
  u32 chosen;
  asm volatile(
      "{\n\t.reg .pred p;\n\telect.sync _|p, 0xffffffff;\n\tselp.u32 %0, 1, 0, p;\n\t}"
      : "=r"(chosen));
  return chosen != 0;
}

}  // namespace tile
