// Registers as operands of operations.
#pragma once

#include <cstdint>

#include "tile_sim/device_abi.h"

namespace tsim {

// The values, after reporting those that nothing has written.
const unsigned char* read_registers(const tsim_registers& r, uint32_t bytes, uint32_t line);

// The values, from now on written.
unsigned char* write_registers(const tsim_registers& r, uint32_t bytes, uint32_t line);

// The same of `count` elements of which each is `stride` behind the one before: side by side at
// `to`, and from there.
void read_spread(const tsim_registers& r, int count, int stride, unsigned char* to, uint32_t line);
void write_spread(const tsim_registers& r, int count, int stride, const unsigned char* from,
                  uint32_t line);

}  // namespace tsim
