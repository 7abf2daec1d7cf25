// Printing, and assertions.
#pragma once
#include "tile_cuda/cast.h"

namespace tile {

TILE_DEVICE void trap() { __trap(); }

}  // namespace tile

#include "tile_print.h"
