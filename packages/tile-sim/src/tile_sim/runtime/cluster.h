// What the blocks of a cluster do with each other.
#pragma once

#include <cstdint>

#include "block.h"
#include "tile_sim/device_abi.h"

namespace tsim {

// The block whose shared memory a thread of `block` reaches, which is not its own.
Block& reach_other(Block& block, Thread& thread, const tsim_shared& place, uint32_t line);

}  // namespace tsim
