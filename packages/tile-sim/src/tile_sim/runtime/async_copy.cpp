#include "async_copy.h"

#include <cstring>

#include "access.h"
#include "block.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

// Whether an engine that may be fast, slow or anything delivers at once.
bool arrives_at_once(Block& block) {
  switch (block.config->async_mode) {
    case TSIM_EARLY:
      return true;
    case TSIM_ANY_TIME:
      return next_random(block) >> 20 & 1;
    default:
      return false;
  }
}

void deliver(const AsyncCopy& copy) {
  if (copy.has_source) {
    std::memcpy(copy.to, copy.from, copy.bytes);
  } else {
    std::memset(copy.to, 0, copy.bytes);
  }
}

}  // namespace

extern "C" {

void tsim_copy_async(const tsim_shared* to, const tsim_global* from, unsigned bytes, int predicate,
                     unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  check_shared_place(block, *to, bytes, Access::WRITE, line);
  if (predicate) {
    check_global_place(block, *from, bytes, Access::READ, line);
    record_global(block, me, *from, bytes, Access::READ, nullptr, line);
  }
  ++block.statistics.async_copies;
  const uint32_t offset = block.arena_offset(to->address);
  if (block.checks_for(CHECKS_OF_SHADOW)) {
    const Stamp stamp = stamp_of(block, me, 0, line);
    block.shadow.begin_copy(block, {block.clock, me.who}, offset, bytes, stamp, Pending::COPY);
  }
  if (block.checks_for(TSIM_COUNT_BANKS)) {
    block.counters.count(block, me, TSIM_SHARED, true, offset, bytes, line);
  }
  AsyncCopy copy{to->address, from->address,      uint16_t(bytes), predicate != 0,
                 false,       0 /* the queue's */, line};
  // Until it arrives there is neither the old value nor the new one: 0xff is NaN in all floats.
  if (arrives_at_once(block)) {
    deliver(copy);
    copy.has_arrived = true;
  } else {
    std::memset(copy.to, 0xff, bytes);
  }
  me.copies.push(copy);
}

void tsim_copy_commit(unsigned) { current_thread->copies.commit(); }

void tsim_copy_wait(int pending, unsigned) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  AsyncCopy copy;
  while (me.copies.pop_beyond(uint32_t(pending), copy)) {
    if (!copy.has_arrived) deliver(copy);
    if (block.checks_for(CHECKS_OF_SHADOW)) {
      const Stamp stamp = stamp_of(block, me, 0, copy.line);
      block.shadow.end_copy(block.arena_offset(copy.to), copy.bytes, stamp);
    }
  }
}

}  // extern "C"
