// Registers that warpgroups hand to each other.
#pragma once
#include "tile_cuda/types.h"

namespace tile {

// Threads of this warpgroup have R registers from here on: taken from a common store, or given.
template <int R>
TILE_DEVICE void registers_increase() {
  asm volatile("setmaxnreg.inc.sync.aligned.u32 %0;" ::"n"(R));
}
template <int R>
TILE_DEVICE void registers_decrease() {
  asm volatile("setmaxnreg.dec.sync.aligned.u32 %0;" ::"n"(R));
}

}  // namespace tile
