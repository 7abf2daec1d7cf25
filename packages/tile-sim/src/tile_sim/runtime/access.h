// One access of one thread to memory: inside its buffer, aligned, recorded.
#pragma once

#include <cstdint>

#include "abi.h"
#include "tile_sim/device_abi.h"

namespace tsim {

struct Block;
struct Thread;

enum class Access : uint8_t { READ, WRITE, ATOMIC };

// With its article: "a read".
const char* name_of(Access access);

constexpr uint32_t CHECKS_OF_SHADOW = TSIM_CHECK_RACE | TSIM_CHECK_UNINIT | TSIM_CHECK_WAIT;

// Reports accesses outside the logical buffer and misaligned ones, and gives the block up.
void check_shared_place(Block& block, const tsim_shared& place, uint32_t bytes, Access access,
                        uint32_t line);
void check_global_place(Block& block, const tsim_global& place, uint32_t bytes, Access access,
                        uint32_t line);

// Tells the shadows and counters. `value` is what a write is going to put there.
void record_shared(Block& block, Thread& thread, const tsim_shared& place, uint32_t bytes,
                   Access access, const void* value, uint32_t line);
void record_global(Block& block, Thread& thread, const tsim_global& place, uint32_t bytes,
                   Access access, const void* value, uint32_t line);

}  // namespace tsim
