// Registers as operands of operations.
#pragma once

#include <cstdint>

#include "tile_sim/device_abi.h"

namespace tsim {

// The values, after reporting those that nothing has written.
const unsigned char* read_registers(const tsim_registers& r, uint32_t bytes, uint32_t line);

// The values, from now on written.
unsigned char* write_registers(const tsim_registers& r, uint32_t bytes, uint32_t line);

}  // namespace tsim
