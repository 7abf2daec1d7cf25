// Bulk copies out of shared memory. The engine reads as late as a wait for the reading allows.
#include "bulk_store.h"

#include <cstring>

#include "access.h"
#include "async_copy.h"
#include "atomic.h"
#include "block.h"
#include "cluster.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

// Whether the engine combines such elements so: PTX ISA, "cp.reduce.async.bulk".
bool is_combined(int reduction, int type) {
  switch (type) {
    case TSIM_F16:
    case TSIM_BF16:
    case TSIM_I32:
    case TSIM_U32:
    case TSIM_U64:
      return true;
    case TSIM_F32:
    case TSIM_F64:
      return reduction == TSIM_ATOMIC_ADD;
    case TSIM_I64:
      return reduction != TSIM_ATOMIC_ADD;
    default:
      return false;
  }
}

void check_reduction(int reduction, int type, uint32_t line) {
  if (reduction >= 0 && !is_combined(reduction, type)) {
    refuse(line, "no engine combines such elements so");
  }
}

uint32_t element_bytes(int type) {
  switch (type) {
    case TSIM_F16:
    case TSIM_BF16:
    case TSIM_I16:
    case TSIM_U16:
      return 2;
    case TSIM_I64:
    case TSIM_U64:
    case TSIM_F64:
      return 8;
    case TSIM_I32:
    case TSIM_U32:
    case TSIM_F32:
      return 4;
    default:
      return 1;
  }
}

void execute(const Block& block, BulkStore& store) {
  if (store.is_done) return;
  store.is_done = true;
  const unsigned char* from = block.arena + store.offset;
  if (store.box.map) {
    store_box(store.box, block.arena, store.offset, store.reduction);
  } else if (store.reduction < 0) {
    std::memcpy(store.to, from, store.bytes);
  } else {
    const uint32_t size = element_bytes(store.type);
    update_atomically(store.reduction, store.type, store.to, from, int(store.bytes / size));
  }
}

// The engines of a thread that read shared memory, and write global memory, to the clock.
int reader_of(Block& block, const Thread& thread) {
  return block.agents.take(block, TSIM_STORE, uint32_t(thread.id) * 2, thread.id);
}
int writer_of(Block& block, const Thread& thread) {
  return block.agents.take(block, TSIM_STORE, uint32_t(thread.id) * 2 + 1, thread.id);
}

Access access_of(int reduction) { return reduction < 0 ? Access::WRITE : Access::ATOMIC; }

Stamp write_stamp(Block& block, const Thread& thread, BulkStore& store) {
  store.write_time = block.clock.tick();
  const uint32_t flags = STAMP_PROXY | (store.reduction < 0 ? 0 : STAMP_ATOMIC);
  return make_stamp(store.write_time, uint32_t(writer_of(block, thread)), flags, store.line);
}

void issue(Block& block, Thread& thread, BulkStore store) {
  ++block.statistics.bulk_copies;
  store.group = thread.stores.open_group;
  if (block.checks_for(CHECKS_OF_SHADOW)) {
    store.read_time = block.clock.tick();
    const Stamp stamp = make_stamp(store.read_time, uint32_t(reader_of(block, thread)),
                                   STAMP_PROXY, store.line);
    block.shadow.read_by_engine(block, {block.clock, thread.who}, store.offset, store.bytes,
                                stamp);
  }
  if (arrives_at_once(block)) execute(block, store);
  thread.stores.stores.push_back(store);
}

// What a thread may rely on from here on.
void finish(Block& block, Thread& thread, BulkStore& store, bool is_complete) {
  execute(block, store);
  store.is_read = true;
  if (!block.checks_for(TSIM_CHECK_RACE)) return;
  block.clock.learn(thread.who, reader_of(block, thread), store.read_time);
  if (is_complete) block.clock.learn(thread.who, writer_of(block, thread), store.write_time);
}

}  // namespace

namespace tsim {

void check_stores_at_exit(Block& block, Thread& thread) {
  for (BulkStore& store : thread.stores.stores) {
    const bool is_open = store.group == thread.stores.open_group;
    execute(block, store);
    if (store.is_read || !block.checks_for(TSIM_CHECK_WAIT)) continue;
    Finding finding;
    finding.kind = TSIM_MISSING_WAIT;
    finding.space = TSIM_SHARED;
    finding.line = store.line;
    finding.actor = TSIM_STORE;
    finding.offset = store.offset;
    finding.bytes = store.bytes;
    finding.buffer_bytes = block.config->shared_bytes;
    report(finding, format("the block ends while the store may still read byte %u of its shared "
                           "memory%s",
                           store.offset, is_open ? ", and its group was not closed" : ""));
  }
}

}  // namespace tsim

extern "C" {

void tsim_tensor_store(const tsim_tensor_map* map, const tsim_shared* from, int reduction,
                       const int* at, int rank, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  check_reduction(reduction, int(map->type), line);
  BulkStore store{};
  store.box = make_box(*map, at, rank, line);
  store.bytes = box_bytes(*map);
  store.reduction = reduction;
  store.line = line;
  check_shared_range(block, *from, store.bytes, BOX_ALIGNMENT, Access::READ, line);
  store.offset = own_offset(*from, line);
  record_box(block, {block.clock, me.who}, store.box, access_of(reduction),
             write_stamp(block, me, store));
  count_box(block, store.box, true, line);
  me.line = line;
  issue(block, me, store);
}

void tsim_bulk_store(const tsim_global* to, const tsim_shared* from, unsigned bytes, int reduction,
                     int type, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  if (!bytes || bytes % BULK_ALIGNMENT) {
    refuse(line, format("a bulk copy of %u bytes: it moves multiples of 16", bytes));
  }
  check_reduction(reduction, type, line);
  check_shared_range(block, *from, bytes, BULK_ALIGNMENT, Access::READ, line);
  const Access access = access_of(reduction);
  check_global_range(block, *to, bytes, BULK_ALIGNMENT, access, line);
  BulkStore store{};
  store.to = to->address;
  store.offset = own_offset(*from, line);
  store.bytes = bytes;
  store.reduction = reduction;
  store.type = type;
  store.line = line;
  record_global_range(block, {block.clock, me.who}, *to, bytes, access,
                      write_stamp(block, me, store));
  count_row(block, to->address, bytes, true, line);
  me.line = line;
  issue(block, me, store);
}

void tsim_bulk_commit(unsigned line) {
  current_thread->line = line;
  ++current_thread->stores.open_group;
}

void tsim_bulk_wait(int pending, int reads, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  StoreQueue& queue = me.stores;
  size_t kept = 0;
  for (BulkStore& store : queue.stores) {
    const bool is_covered = queue.open_group - store.group > uint32_t(pending);
    if (is_covered) finish(block, me, store, !reads);
    // Until it is complete, a later wait may be for that.
    if (!is_covered || reads) queue.stores[kept++] = store;
  }
  queue.stores.resize(kept);
}

}  // extern "C"
