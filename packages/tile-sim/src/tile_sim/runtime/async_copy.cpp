#include "async_copy.h"

#include <cstring>

#include "access.h"
#include "block.h"
#include "cluster.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

// The bytes are there.
void end_copy(Block& block, uint32_t who, const AsyncCopy& copy, uint32_t time) {
  if (!copy.has_arrived && copy.has_source) std::memcpy(copy.to, copy.from, copy.bytes);
  if (!copy.has_arrived && !copy.has_source) std::memset(copy.to, 0, copy.bytes);
  if (!block.checks_for(CHECKS_OF_SHADOW)) return;
  const Stamp stamp = make_stamp(time, who, 0, copy.line);
  block.shadow.end_copy(block.arena_offset(copy.to), copy.bytes, stamp);
}

}  // namespace

namespace tsim {

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

void complete_copies(Block& block, Thread& thread, uint64_t position, uint32_t time, int agent,
                     uint32_t now) {
  AsyncCopy copy;
  while (thread.copies.pop_before(position, copy)) {
    const bool is_by_itself = agent >= 0 && thread.copies.is_open(copy);
    if (is_by_itself) end_copy(block, uint32_t(agent), copy, now);
    else end_copy(block, uint32_t(thread.who), copy, time);
  }
}

}  // namespace tsim

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
  const uint32_t offset = own_offset(*to, line);
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
    if (predicate) std::memcpy(copy.to, copy.from, bytes);
    else std::memset(copy.to, 0, bytes);
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
  block.cluster->engine.deliver_arrivals(block, me.id,
                                         me.copies.started_beyond(uint32_t(pending)));
  const uint32_t time = block.clock.time_of(me.who);
  AsyncCopy copy;
  while (me.copies.pop_beyond(uint32_t(pending), copy)) end_copy(block, uint32_t(me.who), copy, time);
}

}  // extern "C"
