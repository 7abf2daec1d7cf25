// Floats of 8 bits and fewer: from and to float32, by integer arithmetic.
#pragma once
#include "tile_hip/bits.h"

namespace tile {

TILE_DEVICE int nearest_integer(float x) { return static_cast<int>(__builtin_rintf(x)); }

}  // namespace tile

#include "tile_narrow_codes.h"
