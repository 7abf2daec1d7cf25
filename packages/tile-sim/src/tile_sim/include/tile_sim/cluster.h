// Blocks that run side by side and reach each other's shared memory; grids that overlap.
#pragma once
#include "tile_sim/pointers.h"

namespace tile {

// All threads of all blocks of the cluster.
TILE_HOST void cluster_arrive(unsigned line = __builtin_LINE()) { tsim_cluster_arrive(1, line); }
TILE_HOST void cluster_wait(unsigned line = __builtin_LINE()) { tsim_cluster_wait(line); }
TILE_HOST void cluster_sync(unsigned line = __builtin_LINE()) {
  tsim_cluster_arrive(1, line);
  tsim_cluster_wait(line);
}
// Without ordering what was written before.
TILE_HOST void cluster_arrive_relaxed(unsigned line = __builtin_LINE()) {
  tsim_cluster_arrive(0, line);
}

// Number of this block in its cluster.
TILE_HOST int cluster_rank() { return tsim_cluster_rank(); }

// The same place in block `rank` of the cluster.
template <class T>
TILE_HOST sptr<T> remote(const sptr<T>& shared, int rank, unsigned line = __builtin_LINE()) {
  return tsim_remote(&shared, rank, line);
}

// Until the grids that this one depends on are complete; grids that depend on this one may begin.
TILE_HOST void grid_wait(unsigned line = __builtin_LINE()) { tsim_grid_dependency(0, line); }
TILE_HOST void grid_launch(unsigned line = __builtin_LINE()) { tsim_grid_dependency(1, line); }

}  // namespace tile
