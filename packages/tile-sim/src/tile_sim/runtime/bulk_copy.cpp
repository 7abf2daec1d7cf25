// Bulk copies into shared memory: what they are checked for when a thread issues them.
#include "access.h"
#include "block.h"
#include "cluster.h"
#include "engine.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

void check_bulk_bytes(uint32_t bytes, uint32_t line) {
  if (bytes && bytes % BULK_ALIGNMENT == 0) return;
  refuse(line, format("a bulk copy of %u bytes: it moves multiples of 16", bytes));
}

// Starts a copy to the same place in `owner`; the barrier is there, too, or in another block.
void issue_to(Block& owner, BulkCopy copy, const tsim_shared& to, const tsim_shared& barrier,
              Block* told = nullptr) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  copy.told = told ? told : &owner;
  if (&owner != &block) note_remote(owner, me, copy.line);
  else if (copy.told != &block) note_remote(*told, me, copy.line);
  copy.from = &block;
  copy.thread = me.id;
  copy.to = &owner;
  copy.offset = own_offset(to, copy.line);
  copy.barrier = mbarrier_offset(barrier, copy.line);
  Mbarrier& there = require_mbarrier(*copy.told, copy.barrier, true, copy.line);
  copy.told->agents.take(*copy.told, TSIM_COPY, copy.barrier, me.id);
  ++there.copies;
  there.copy_line = copy.line;
  if (owner.checks_for(CHECKS_OF_SHADOW)) {
    const Stamp stamp =
        make_stamp(block.clock.tick(), uint32_t(there.agent), STAMP_PROXY, copy.line);
    owner.shadow.begin_copy(owner, {block.clock, me.who}, copy.offset, copy.bytes, stamp,
                            Pending::BULK_COPY);
  }
  ++block.statistics.bulk_copies;
  block.cluster->engine.issue(block, copy);
}

BulkCopy copy_of(BulkCopy::Kind kind, uint32_t bytes, uint32_t line) {
  BulkCopy copy{};
  copy.kind = kind;
  copy.bytes = bytes;
  copy.line = line;
  current_thread->line = line;
  return copy;
}

BulkCopy box_copy(const tsim_shared* to, const tsim_tensor_map* map, const int* at, int rank,
                  unsigned line) {
  Block& block = *current_block;
  BulkCopy copy = copy_of(BulkCopy::BOX, box_bytes(*map), line);
  copy.box = make_box(*map, at, rank, line);
  check_shared_range(block, *to, copy.bytes, BOX_ALIGNMENT, Access::WRITE, line);
  record_box(block, {block.clock, current_thread->who}, copy.box, Access::READ,
             stamp_of(block, *current_thread, 0, line));
  count_box(block, copy.box, false, line);
  return copy;
}

}  // namespace

extern "C" {

void tsim_tensor_load(const tsim_shared* to, const tsim_tensor_map* map,
                      const tsim_shared* barrier, unsigned mask, const int* at, int rank,
                      unsigned line) {
  const BulkCopy copy = box_copy(to, map, at, rank, line);
  if (!mask) {
    issue_to(*current_block, copy, *to, *barrier);
    return;
  }
  for (int number = 0; number < MAX_CLUSTER; ++number) {
    if (mask >> number & 1) issue_to(require_block(number, line), copy, *to, *barrier);
  }
}

void tsim_tensor_load_pair(const tsim_shared* to, const tsim_tensor_map* map,
                           const tsim_shared* barrier, const int* at, int rank, unsigned line) {
  Block& block = *current_block;
  const BulkCopy copy = box_copy(to, map, at, rank, line);
  issue_to(block, copy, *to, *barrier, &require_block(block.rank & ~1, line));
}

void tsim_bulk_load(const tsim_shared* to, const tsim_global* from, unsigned bytes,
                    const tsim_shared* barrier, unsigned line) {
  Block& block = *current_block;
  check_bulk_bytes(bytes, line);
  check_shared_range(block, *to, bytes, BULK_ALIGNMENT, Access::WRITE, line);
  check_global_range(block, *from, bytes, BULK_ALIGNMENT, Access::READ, line);
  record_global_range(block, {block.clock, current_thread->who}, *from, bytes, Access::READ,
                      stamp_of(block, *current_thread, 0, line));
  BulkCopy copy = copy_of(BulkCopy::ROW, bytes, line);
  copy.source = from->address;
  count_row(block, from->address, bytes, false, line);
  issue_to(block, copy, *to, *barrier);
}

void tsim_bulk_copy_remote(const tsim_shared* to, int rank, const tsim_shared* from,
                           unsigned bytes, const tsim_shared* barrier, unsigned line) {
  Block& block = *current_block;
  check_bulk_bytes(bytes, line);
  check_shared_range(block, *to, bytes, BULK_ALIGNMENT, Access::WRITE, line);
  check_shared_range(block, *from, bytes, BULK_ALIGNMENT, Access::READ, line);
  Block& owner = require_block(rank, line);
  BulkCopy copy = copy_of(BulkCopy::REMOTE, bytes, line);
  copy.source = from->address;
  if (block.checks_for(CHECKS_OF_SHADOW)) {
    // Who knows that the copy has arrived knows that its source was read.
    const Mbarrier& there =
        require_mbarrier(owner, mbarrier_offset(*barrier, line), true, line);
    const Stamp stamp =
        make_stamp(block.clock.tick(), uint32_t(there.agent), STAMP_PROXY, line);
    block.shadow.read_by_engine(block, {block.clock, current_thread->who},
                                own_offset(*from, line), bytes, stamp);
  }
  issue_to(owner, copy, *to, *barrier);
}

// Arrives once the thread's copies so far are there.
void tsim_copy_async_arrive(const tsim_shared* barrier, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  BulkCopy item = copy_of(BulkCopy::THREAD_COPIES, 0, line);
  item.from = item.to = item.told = &block;
  item.thread = me.id;
  item.barrier = mbarrier_offset(*barrier, line);
  require_mbarrier(block, item.barrier, false, line);
  block.agents.take(block, TSIM_COPY, item.barrier, me.id);
  item.position = me.copies.started();
  item.time = block.clock.time_of(me.who);
  block.clock.release(me.who, item.released);
  block.cluster->engine.issue(block, item);
}

void tsim_tensor_prefetch(const tsim_tensor_map*, unsigned line) { current_thread->line = line; }

}  // extern "C"
