// Matrices in shared memory as descriptors of operands say it.
#pragma once

#include <cstdint>

#include "tensor_box.h"
#include "tile_sim/device_abi.h"

namespace tsim {

// A descriptor, decoded, and the buffer that it must stay in. Source: PTX ISA, "Matrix descriptor
// format", "Strides" and "Canonical layouts" of wgmma.
struct Matrix {
  uint32_t start = 0;      // bytes from the start of shared memory
  uint32_t leading = 0;
  uint32_t stride = 0;
  uint32_t swizzle = 0;
  uint32_t begin = 0;      // of the logical buffer
  uint32_t end = 0;
  bool is_along_k = true;  // or along M or N

  // Address of the 16 bytes with elements along K from byte `along` of row `row` on; or of those
  // along M or N from byte `along` of the row of k `row` on.
  uint32_t chunk(uint32_t row, uint32_t along) const {
    const uint32_t group = row / 8, inside = row % 8;
    uint32_t at = start + (start_offset(group, along)) + inside * (swizzle ? swizzle : 16);
    return swizzled(at & 0x3ffff, swizzle);
  }

  static Matrix of(const tsim_operand& operand, uint32_t offset, uint32_t begin, uint32_t end,
                   bool is_along_k);

 private:
  uint32_t start_offset(uint32_t group, uint32_t along) const {
    if (!swizzle) {
      // Blocks of 8 rows of 16 bytes.
      return is_along_k ? group * stride + along / 16 * leading
                        : along / 16 * stride + group * leading;
    }
    if (is_along_k) return group * stride + along;
    return group * stride + along / swizzle * leading + along % swizzle;
  }
};

}  // namespace tsim
