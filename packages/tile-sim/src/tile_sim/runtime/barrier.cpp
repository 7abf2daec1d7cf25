#include "barrier.h"

#include <cstring>

#include "block.h"
#include "scheduler.h"
#include "tile_sim/device_abi.h"

namespace tsim {

void Barriers::start() {
  for (Barrier& b : barriers_) {
    b.in_use = false;
    b.arrived = b.waiters = 0;
    b.released = Release();
    std::memset(b.waiting, 0, sizeof b.waiting);
  }
  votes_ = voters_ = 0;
  finished_ = 0;
}

namespace {

Finding barrier_finding(uint32_t line, const Barriers::Barrier& barrier) {
  Finding finding;
  finding.kind = TSIM_BARRIER;
  finding.line = line;
  finding.other_line = barrier.line;
  finding.other_thread = barrier.first_thread;
  return finding;
}

}  // namespace

void Barriers::reach(Block& block, int number, int threads, bool waits, uint32_t line) {
  const bool fits = threads >= 0 && threads <= block.thread_count &&
                    (threads % block.warp_size == 0 || threads == block.thread_count);
  if (number < 0 || number >= BARRIERS || !fits) {
    Finding finding;
    finding.kind = TSIM_INVALID;
    finding.line = line;
    report_and_abandon(finding,
                       format("barrier %d of %d threads: a block has %d barriers, for whole warps, "
                              "and this one %d threads",
                              number, threads, BARRIERS, block.thread_count));
  }
  Barrier& barrier = barriers_[number];
  Thread& me = *current_thread;
  leave_tensor_memory(me, line);
  if (waits) meet_tensor_memory(me, line);
  if (!barrier.in_use) {
    barrier.in_use = true;
    barrier.expected = threads;
    barrier.line = line;
    barrier.first_thread = me.id;
    block.clock.forget(barrier.released);
  } else if (barrier.expected != threads) {
    report_and_abandon(barrier_finding(line, barrier),
                       format("barrier %d is used with %d threads here and with %d by thread %d",
                              number, threads, barrier.expected, barrier.first_thread));
  } else if (barrier.line != line && number == 0 && block.checks_for(TSIM_CHECK_BARRIER)) {
    report(barrier_finding(line, barrier),
           format("threads of one block wait at different barrier statements: thread %d here, "
                  "thread %d at line %u",
                  me.id, barrier.first_thread, barrier.line));
  }
  ++barrier.arrived;
  // Where all wait, `order` needs no account of who knew what.
  if (block.checks_for(TSIM_CHECK_RACE) && threads) {
    block.clock.release(me.who, barrier.released);
  }
  if (waits) {
    barrier.waiting[me.warp] |= 1ull << me.lane;
    ++barrier.waiters;
  }
  if (barrier.arrived >= (threads ? threads : block.alive)) {
    open(block, barrier);
    // The one that completes the barrier runs on.
    if (waits) {
      Warp& warp = block.warps[me.warp];
      warp.ready &= ~(1ull << me.lane);
      if (!warp.ready) block.ready_warps &= ~(1u << me.warp);
    }
    return;
  }
  if (!waits) return;
  me.barrier = number;
  wait_in(State::AT_BARRIER, line);
}

// What the threads did before they met comes before what they do now. The barrier of all waits for
// threads to arrive or to exit; others know nothing of threads that exited.
void Barriers::order(Block& block, Barrier& barrier) {
  if (!barrier.expected || barrier.waiters == block.thread_count) {
    block.clock.meet_all(block.rank);
    return;
  }
  for (int w = 0; w < block.warp_count; ++w) {
    for (uint64_t rest = barrier.waiting[w]; rest; rest &= rest - 1) {
      const int lane = __builtin_ctzll(rest);
      block.clock.acquire(block.threads[size_t(w * block.warp_size + lane)].who,
                          barrier.released.sum);
    }
  }
}

void Barriers::thread_finished(int thread) {
  if (!finished_++) first_finished_ = thread;
}

// Machines let a barrier of all open once the others have exited, but no program may count on it:
// a branch has led some of its threads around the barrier.
void Barriers::require_all(const Block& block, const Barrier& barrier) {
  if (barrier.expected || !finished_ || !block.checks_for(TSIM_CHECK_BARRIER)) return;
  Finding finding = barrier_finding(barrier.line, barrier);
  finding.other_line = 0;
  finding.thread = barrier.first_thread;
  finding.other_thread = first_finished_;
  report(finding, format("%d of %d threads of the block wait at a barrier of all; thread %d ran "
                         "to the end without it",
                         barrier.arrived, block.thread_count, first_finished_));
}

void Barriers::open(Block& block, Barrier& barrier) {
  ++block.statistics.barriers;
  require_all(block, barrier);
  if (block.checks_for(TSIM_CHECK_RACE)) order(block, barrier);
  for (int w = 0; w < block.warp_count; ++w) {
    if (!barrier.waiting[w]) continue;
    block.warps[size_t(w)].uniforms.forget();
    make_ready(block, w, barrier.waiting[w]);
    barrier.waiting[w] = 0;
  }
  barrier.arrived = barrier.waiters = 0;
  barrier.in_use = false;
  if (&barrier == &barriers_[0]) {
    result_ = votes_;
    result_is_all_ = votes_ == voters_;
    votes_ = voters_ = 0;
    block.counters.flush(block);
  }
}

void Barriers::thread_exited(Block& block) {
  Barrier& barrier = barriers_[0];
  if (barrier.in_use && !barrier.expected && barrier.arrived >= block.alive) open(block, barrier);
}

int Barriers::reach_counting(Block& block, bool predicate, bool& is_all, uint32_t line) {
  votes_ += predicate;
  ++voters_;
  reach(block, 0, 0, true, line);
  is_all = result_is_all_;
  return result_;
}

}  // namespace tsim

using namespace tsim;

extern "C" {

void tsim_leave() { current_thread->leaves = true; }

void tsim_sync(unsigned line) { current_block->barriers.reach(*current_block, 0, 0, true, line); }

int tsim_sync_count(int kind, int predicate, unsigned line) {
  bool is_all;
  Block& block = *current_block;
  const int count = block.barriers.reach_counting(block, predicate != 0, is_all, line);
  return kind == 0 ? count : kind == 1 ? is_all : count != 0;
}

void tsim_bar_sync(int barrier, int threads, unsigned line) {
  current_block->barriers.reach(*current_block, barrier, threads, true, line);
}

void tsim_bar_arrive(int barrier, int threads, unsigned line) {
  current_block->barriers.reach(*current_block, barrier, threads, false, line);
}

}  // extern "C"
