// Which thread of the block runs next.
#pragma once

#include "block.h"

namespace tsim {

// Makes lanes of a warp runnable.
inline void make_ready(Block& block, int warp, uint64_t lanes) {
  block.warps[warp].ready |= lanes;
  block.ready_warps |= 1u << warp;
}

// Starts all threads of the cluster and returns when all have exited or it is abandoned.
void run_threads(Cluster& cluster);

// Stops the running thread in `state` until another makes it ready; reports a deadlock if none
// can.
void wait_in(State state, uint32_t line);

// Lets other threads run first.
void yield_thread(uint32_t line);

// Leaves the cluster as it is: its threads never run again.
[[noreturn]] void abandon_block();

// The lanes of the running thread's warp that reach `line` together: all that can, before they
// wait for something else.
uint64_t active_lanes(uint32_t line);

}  // namespace tsim
