// One access of one thread to memory: inside its buffer, aligned, recorded.
#pragma once

#include <cstdint>

#include "abi.h"
#include "clock.h"
#include "tensor_box.h"
#include "tile_sim/device_abi.h"

namespace tsim {

struct Block;
struct Observer;
struct Thread;

// LOW_HALF and HIGH_HALF: an indivisible store of four bits of a byte, which keeps the others.
enum class Access : uint8_t { READ, WRITE, ATOMIC, LOW_HALF, HIGH_HALF };

inline bool is_half(Access access) {
  return access == Access::LOW_HALF || access == Access::HIGH_HALF;
}

// With its article: "a read".
const char* name_of(Access access);

constexpr uint32_t CHECKS_OF_SHADOW = TSIM_CHECK_RACE | TSIM_CHECK_UNINIT | TSIM_CHECK_WAIT;

// Reports accesses outside the logical buffer and misaligned ones, and gives the block up.
void check_shared_place(Block& block, const tsim_shared& place, uint32_t bytes, Access access,
                        uint32_t line);
void check_global_place(Block& block, const tsim_global& place, uint32_t bytes, Access access,
                        uint32_t line);

// The same for ranges of any size, which start at multiples of `alignment`.
void check_shared_range(Block& block, const tsim_shared& place, uint32_t bytes,
                        uint32_t alignment, Access access, uint32_t line);
void check_global_range(Block& block, const tsim_global& place, uint32_t bytes,
                        uint32_t alignment, Access access, uint32_t line);

// Tells the shadows and counters. `value` is what a write is going to put there.
void record_shared(Block& block, Thread& thread, const tsim_shared& place, uint32_t bytes,
                   Access access, const void* value, uint32_t line);
void record_global(Block& block, Thread& thread, const tsim_global& place, uint32_t bytes,
                   Access access, const void* value, uint32_t line);

// The same for what engines read and write in global memory: rows, and boxes row by row.
void record_global_range(Block& block, const Observer& by, const tsim_global& place,
                         uint32_t bytes, Access access, Stamp stamp);
void record_box(Block& block, const Observer& by, const Box& box, Access access, Stamp stamp);

// Counts a bulk copy of a box, or of bytes side by side.
void count_box(Block& block, const Box& box, bool is_write, uint32_t line);
void count_row(Block& block, const void* address, uint32_t bytes, bool is_write, uint32_t line);

// A box of a map at coordinates that a kernel names.
Box make_box(const tsim_tensor_map& map, const int* at, int rank, uint32_t line);

}  // namespace tsim
