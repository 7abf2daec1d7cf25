// Operands that products find in shared memory by a descriptor.
#pragma once
#include "tile_cuda/bits.h"

namespace tile {

// An operand in shared memory: where it begins, and how far its parts are from each other. Step k
// of a product of several is k % PART * NEXT + k / PART * FAR units of 16 bytes on.
template <class T, int NEXT, int PART, int FAR>
struct described_matrix {
  using element = T;
  u32 low, high;
  TILE_DEVICE u64 at(int k) const {
    // Sums of 32 bits without a carry: what does not vary is added outside of loops.
    return static_cast<u64>(high) << 32 | (low + (k % PART * NEXT + k / PART * FAR));
  }
};

// An address or a distance in bytes as descriptors of matrices have it, in 14 bits. In a cluster the
// bits above those of an address in shared memory are the number of the block.
// Source: PTX ISA, "Matrix descriptor format", matrix-descriptor-encode.
TILE_DEVICE constexpr u32 matrix_descriptor_encode(u32 bytes) { return (bytes & 0x3FFFF) >> 4; }

}  // namespace tile
