// What 4-bit numbers become floats with.
#pragma once
#include "tile_hip/arithmetic.h"

namespace tile {

TILE_DEVICE u32 picked_bytes(u32 low, u32 high, int a, int b, int c, int d) {
  return __builtin_amdgcn_perm(high, low, static_cast<u32>(a | b << 8 | c << 16 | d << 24));
}

TILE_DEVICE u32 masked_xor(u32 a, u32 mask, u32 with) { return (a & mask) ^ with; }

TILE_DEVICE u32 fma_pair(half_t, u32 a, u32 b, u32 c) {
  typedef _Float16 pair __attribute__((ext_vector_type(2)));
  return bits_as<u32>(bits_as<pair>(a) * bits_as<pair>(b) + bits_as<pair>(c));
}
TILE_DEVICE u32 fma_pair(bfloat16_t, u32 a, u32 b, u32 c) {
  const auto wide = [](u32 bits) { return bits_as<float>(bits); };
  constexpr u32 upper = 0xffff0000u;
  const float low = __builtin_fmaf(wide(a << 16), wide(b << 16), wide(c << 16));
  const float high = __builtin_fmaf(wide(a & upper), wide(b & upper), wide(c & upper));
  // The sums are exact, too: their upper halves are the numbers.
  return picked_bytes(bits_as<u32>(low), bits_as<u32>(high), 2, 3, 6, 7);
}

}  // namespace tile

#include "tile_dequant.h"
