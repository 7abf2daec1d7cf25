// Floats of 8 bits and fewer: from and to float32.
#pragma once
#include "tile_sim/device_abi.h"

namespace tile {

template <int E, int M, int B, codes C>
TILE_HOST float decode(narrow_float<E, M, B, C> x) {
  return (float)tsim_narrow_to_float(x.bits, E, M, B, (int)C);
}

TILE_HOST float decode(e8m0 x) { return (float)tsim_narrow_to_float(x.bits, 8, 0, 127, -1); }

// Rounds to nearest even, once: from double, so that no argument type is rounded before.
template <int E, int M, int B, codes C>
TILE_HOST void encode(narrow_float<E, M, B, C>& result, double x, bool saturate) {
  result.bits = (u8)tsim_float_to_narrow(x, E, M, B, (int)C, saturate);
}

TILE_HOST void encode(e8m0& result, double x, bool saturate) {
  result.bits = (u8)tsim_float_to_narrow(x, 8, 0, 127, -1, saturate);
}

}  // namespace tile
