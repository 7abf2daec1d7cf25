// What the blocks of a cluster do with each other: they meet, and reach into each other's memory.
#pragma once

#include <cstdint>

#include "block.h"
#include "tile_sim/device_abi.h"

namespace tsim {

// The block of a rank in the running cluster; reports a rank that it does not have.
Block& require_block(int rank, uint32_t line);

// A thread is about to touch the shared memory of another block: it must know that the block has
// started, and the block must not end before.
void note_remote(Block& owner, Thread& thread, uint32_t line);
// The same for an engine, of which `stamp` is the access.
void note_visit(Block& owner, Stamp stamp);

// The block whose shared memory a thread of `block` reaches, which is not its own.
Block& reach_other(Block& block, Thread& thread, const tsim_shared& place, uint32_t line);

// The byte of the running block's arena at a place, which operations of engines need.
uint32_t own_offset(const tsim_shared& place, uint32_t line);

// A thread exits: others may have waited for it. A block has ended: nobody may reach it any more.
void leave_cluster(Block& block, Thread& thread);
void check_visits_at_exit(Block& block);

}  // namespace tsim
