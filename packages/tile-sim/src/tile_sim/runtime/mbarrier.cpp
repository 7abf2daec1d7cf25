#include "mbarrier.h"

#include <cstring>

#include "access.h"
#include "block.h"
#include "cluster.h"
#include "scheduler.h"

namespace tsim {

Mbarrier* Mbarriers::find(uint32_t offset) {
  for (Mbarrier& barrier : barriers_) {
    if (barrier.offset == offset) return &barrier;
  }
  return nullptr;
}

Mbarrier& Mbarriers::add(uint32_t offset) {
  barriers_.emplace_back();
  Mbarrier& barrier = barriers_.back();
  std::memset(static_cast<void*>(&barrier), 0, sizeof barrier);
  barrier.offset = offset;
  return barrier;
}

void Mbarriers::fence(uint32_t who, uint32_t time) {
  for (Mbarrier& barrier : barriers_) {
    if (stamp_who(barrier.initialised) == who && !barrier.fenced) barrier.fenced = time;
  }
}

namespace {

Finding protocol_finding(const Mbarrier& barrier, uint32_t line) {
  Finding finding;
  finding.kind = TSIM_PROTOCOL;
  finding.space = TSIM_SHARED;
  finding.line = line;
  finding.offset = barrier.offset;
  finding.bytes = MBARRIER_BYTES;
  finding.buffer_bytes = current_block->config->shared_bytes;
  return finding;
}

std::string name_of(const Mbarrier& barrier) {
  return format("the mbarrier at byte %u", barrier.offset);
}

// A phase is over.
void complete(Block& owner, Mbarrier& barrier, uint32_t line) {
  if (barrier.copies) {
    Finding finding = protocol_finding(barrier, line);
    finding.other_line = barrier.copy_line;
    report(finding,
           format("phase %u of %s completes while the copy at line %u to it is still on its way: "
                  "fewer bytes were announced than are copied",
                  barrier.phase, name_of(barrier).c_str(), barrier.copy_line));
  }
  ++barrier.phase;
  barrier.missing = barrier.count;
  Clock& clock = owner.clock;
  clock.keep(barrier.released.sum);
  clock.drop(barrier.completed);
  barrier.completed = barrier.released.sum;
  for (int w = 0; w < owner.warp_count; ++w) {
    const uint64_t lanes = barrier.waiting[w];
    if (!lanes) continue;
    barrier.waiting[w] = 0;
    for (uint64_t rest = lanes; rest; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      clock.acquire(owner.threads[size_t(w * owner.warp_size + lane)].who, barrier.completed);
    }
    make_ready(owner, w, lanes);
  }
}

void settle(Block& owner, Mbarrier& barrier, uint32_t line) {
  if (barrier.missing) return;
  if (barrier.bytes == 0) {
    complete(owner, barrier, line);
  } else if (barrier.bytes < 0) {
    Finding finding = protocol_finding(barrier, line);
    finding.other_line = barrier.copy_line;
    report(finding, format("%lld bytes more than phase %u of %s expects have been copied to it, "
                           "the last at line %u",
                           (long long)-barrier.bytes, barrier.phase, name_of(barrier).c_str(),
                           barrier.copy_line));
    barrier.bytes = 0;
    complete(owner, barrier, line);
  }
}

// The latest copy has arrived, but no thread has waited for that: it might as well have come later.
void check_last_copy(const Block& block, const Mbarrier& barrier) {
  const Stamp stamp = make_stamp(barrier.copy_time, uint32_t(barrier.agent), 0, 0);
  if (!barrier.copy_time || !block.checks_for(TSIM_CHECK_RACE)) return;
  if (block.clock.is_within(stamp, block.ended.sum, block.rank)) return;
  Finding finding = protocol_finding(barrier, barrier.copy_line);
  finding.kind = TSIM_MISSING_WAIT;
  finding.actor = TSIM_COPY;
  blame(finding, stamp);
  report(finding, format("the block ends while the copy to %s may still be on its way",
                         name_of(barrier).c_str()));
}

// The current phase counts one arrival more.
void count_arrival(Block& owner, Mbarrier& barrier, uint32_t line) {
  if (!barrier.missing) {
    report_and_abandon(protocol_finding(barrier, line),
                       format("one arrival too many: phase %u of %s has had all %u, and still "
                              "waits for %lld bytes",
                              barrier.phase, name_of(barrier).c_str(), barrier.count,
                              (long long)barrier.bytes));
  }
  --barrier.missing;
  settle(owner, barrier, line);
}

}  // namespace

uint32_t mbarrier_offset(const tsim_shared& place, uint32_t line) {
  Block& block = *current_block;
  check_shared_place(block, place, MBARRIER_BYTES, Access::ATOMIC, line);
  current_thread->line = line;
  return own_offset(place, line);
}

Mbarrier& require_mbarrier(Block& owner, uint32_t offset, bool needs_fence, uint32_t line) {
  Mbarrier* barrier = owner.mbarriers.find(offset);
  if (!barrier) {
    Mbarrier nowhere{};
    nowhere.offset = offset;
    report_and_abandon(protocol_finding(nowhere, line),
                       format("nothing has set up %s", name_of(nowhere).c_str()));
  }
  if (!owner.checks_for(TSIM_CHECK_RACE)) return *barrier;
  const Clock& clock = owner.clock;
  const int me = current_thread->who;
  const uint32_t who = stamp_who(barrier->initialised);
  const bool is_known = clock.is_before(barrier->initialised, me);
  const Stamp fence = make_stamp(barrier->fenced, who, 0, 0);
  if (is_known && (!needs_fence || (barrier->fenced && clock.is_before(fence, me)))) {
    return *barrier;
  }
  Finding finding = protocol_finding(*barrier, line);
  blame_other(finding, barrier->initialised);
  finding.other_line = stamp_line(barrier->initialised);
  report(finding, format("%s was set up by %s at line %u without %s in between",
                         name_of(*barrier).c_str(), issuer_of(barrier->initialised).c_str(),
                         finding.other_line,
                         is_known ? "fence_mbarrier_init" : "a barrier of all threads"));
  return *barrier;
}

void arrive(Block& owner, Mbarrier& barrier, int who, uint32_t line) {
  if (owner.checks_for(TSIM_CHECK_RACE)) owner.clock.release(who, barrier.released);
  count_arrival(owner, barrier, line);
}

void arrive_later(Block& owner, Mbarrier& barrier, const Release& earlier, uint32_t line) {
  if (owner.checks_for(TSIM_CHECK_RACE)) owner.clock.add(barrier.released, earlier.sum);
  count_arrival(owner, barrier, line);
}

void arrive_bytes(Block& owner, Mbarrier& barrier, uint32_t bytes, uint32_t time, uint32_t line) {
  barrier.bytes -= int64_t(bytes);
  barrier.copy_time = time;
  if (owner.checks_for(TSIM_CHECK_RACE)) owner.clock.learn(barrier.released, barrier.agent, time);
  settle(owner, barrier, line);
}

std::string state_of(const Mbarrier& barrier) {
  std::string text = format("%s: phase %u (parity %u) lacks %u of %u arrivals",
                            name_of(barrier).c_str(), barrier.phase, barrier.phase & 1,
                            barrier.missing, barrier.count);
  if (barrier.bytes > 0) text += format(" and %lld bytes", (long long)barrier.bytes);
  if (barrier.bytes < 0) text += format("; %lld bytes came in advance", (long long)-barrier.bytes);
  return text;
}

void check_mbarriers_at_exit(Block& block) {
  for (const Mbarrier& barrier : block.mbarriers.all()) {
    check_last_copy(block, barrier);
    if (barrier.bytes >= 0) continue;
    Finding finding = protocol_finding(barrier, barrier.copy_line);
    report(finding, format("%lld bytes were copied to phase %u of %s, which nobody announced",
                           (long long)-barrier.bytes, barrier.phase, name_of(barrier).c_str()));
  }
}

}  // namespace tsim

using namespace tsim;

namespace {

// The barrier that a thread arrives at: its own block's, or the one at that place of another.
Mbarrier& arrival_place(const tsim_shared& place, int rank, uint32_t line, Block*& owner) {
  const uint32_t offset = mbarrier_offset(place, line);
  owner = current_block;
  if (rank >= 0) owner = &require_block(rank, line);
  const bool is_remote = owner != current_block;
  if (is_remote) note_remote(*owner, *current_thread, line);
  return require_mbarrier(*owner, offset, is_remote, line);
}

}  // namespace

extern "C" {

void tsim_mbarrier_init(const tsim_shared* place, unsigned arrivals, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  const uint32_t offset = mbarrier_offset(*place, line);
  if (!arrivals || arrivals > MOST_ARRIVALS) {
    refuse(line, format("an mbarrier of %u arrivals: they are 1 to %u", arrivals, MOST_ARRIVALS));
  }
  if (const Mbarrier* there = block.mbarriers.find(offset)) {
    Finding finding = protocol_finding(*there, line);
    finding.other_line = stamp_line(there->initialised);
    report_and_abandon(finding, format("%s is set up a second time, after line %u",
                                       name_of(*there).c_str(), finding.other_line));
  }
  const Stamp stamp = stamp_of(block, me, 0, line);
  if (block.checks_for(CHECKS_OF_SHADOW)) {
    block.shadow.access(block, {block.clock, me.who}, offset, MBARRIER_BYTES, Access::WRITE,
                        nullptr, stamp);
    block.shadow.occupy(offset, MBARRIER_BYTES, stamp);
  }
  Mbarrier& barrier = block.mbarriers.add(offset);
  barrier.count = barrier.missing = arrivals;
  barrier.initialised = stamp;
  barrier.agent = block.agents.take(block, TSIM_COPY, offset, me.id);
}

void tsim_mbarrier_arrive(const tsim_shared* place, int rank, unsigned line) {
  Block* owner;
  leave_tensor_memory(*current_thread, line);
  Mbarrier& barrier = arrival_place(*place, rank, line, owner);
  arrive(*owner, barrier, current_thread->who, line);
}

void tsim_mbarrier_expect(const tsim_shared* place, unsigned bytes, int arrives, unsigned line) {
  Block* owner;
  Mbarrier& barrier = arrival_place(*place, -1, line, owner);
  barrier.bytes += bytes;
  if (bytes > MOST_ARRIVALS || barrier.bytes > int64_t(MOST_ARRIVALS)) {
    refuse(line, format("an mbarrier that waits for %lld bytes: it counts to %u",
                        (long long)barrier.bytes, MOST_ARRIVALS));
  }
  if (arrives) arrive(*owner, barrier, current_thread->who, line);
}

void tsim_mbarrier_wait(const tsim_shared* place, unsigned parity, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  const uint32_t offset = mbarrier_offset(*place, line);
  Mbarrier& barrier = require_mbarrier(block, offset, false, line);
  meet_tensor_memory(me, line);
  if (parity > 1) refuse(line, format("parity %u: phases are even, 0, or odd, 1", parity));
  if ((barrier.phase & 1) != parity) {
    if (block.checks_for(TSIM_CHECK_RACE)) block.clock.acquire(me.who, barrier.completed);
    return;
  }
  barrier.waiting[me.warp] |= 1ull << me.lane;
  me.barrier = int(offset);
  wait_in(State::AT_MBARRIER, line);
}

void tsim_fence_mbarrier_init(unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  const uint32_t time = block.clock.advance(me.who);
  block.mbarriers.fence(uint32_t(me.who), time);
}

void tsim_fence_proxy_async(unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  block.clock.fence(me.who);
  block.mbarriers.fence(uint32_t(me.who), block.clock.time_of(me.who));
}

}  // extern "C"
