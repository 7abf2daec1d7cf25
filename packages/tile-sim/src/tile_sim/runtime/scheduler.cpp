#include "scheduler.h"

#include <chrono>

#include "cluster.h"
#include "deadlock.h"
#include "faults.h"

namespace tsim {

__thread Block* current_block;
__thread Thread* current_thread;

namespace {

int lowest(uint64_t mask) { return __builtin_ctzll(mask); }
int highest(uint64_t mask) { return 63 - __builtin_clzll(mask); }

int drawn(Block& block, uint64_t mask) {
  int skip = static_cast<int>(next_random(block) % __builtin_popcountll(mask));
  while (skip--) mask &= mask - 1;
  return lowest(mask);
}

// The warp to continue with. Staying in one is cheapest: its lanes meet soonest.
int pick_warp(Block& block, const Thread* last) {
  const uint32_t ready = block.ready_warps;
  switch (block.config->schedule) {
    case TSIM_RANDOM:
      return drawn(block, ready);
    case TSIM_REVERSE:
      if (last && block.warps[last->warp].ready) return last->warp;
      return highest(ready);
    default: {
      if (!last) return lowest(ready);
      if (block.warps[last->warp].ready) return last->warp;
      const uint32_t later = ready & ~((2u << last->warp) - 1);
      return lowest(later ? later : ready);
    }
  }
}

int pick_lane(Block& block, const Warp& warp) {
  switch (block.config->schedule) {
    case TSIM_RANDOM:
      return drawn(block, warp.ready);
    case TSIM_REVERSE:
      return highest(warp.ready);
    default:
      return lowest(warp.ready);
  }
}

// Lanes that asked who is active learn it once no other lane of their warp can run: those at the
// same line form one group.
void release_gathering(Block& block, int w) {
  Warp& warp = block.warps[w];
  while (warp.gathering) {
    Thread* threads = &block.threads[w * block.warp_size];
    const uint32_t line = threads[lowest(warp.gathering)].line;
    uint64_t group = 0;
    for (uint64_t rest = warp.gathering; rest; rest &= rest - 1) {
      if (threads[lowest(rest)].line == line) group |= rest & -rest;
    }
    for (uint64_t rest = group; rest; rest &= rest - 1) threads[lowest(rest)].active = group;
    warp.gathering &= ~group;
    make_ready(block, w, group);
  }
}

Thread* take(Block& block, int w, int lane) {
  Warp& warp = block.warps[w];
  warp.ready &= ~(1ull << lane);
  if (!warp.ready) block.ready_warps &= ~(1u << w);
  return &block.threads[w * block.warp_size + lane];
}

// The block of the cluster to continue with; null if none has threads that can run.
Block* pick_block(Cluster& cluster, Block& here) {
  const int count = int(cluster.blocks.size());
  int skip = 0;
  switch (cluster.config->schedule) {
    case TSIM_RANDOM:
      skip = int(next_random(here) % uint64_t(count));
      break;
    case TSIM_REVERSE:
      skip = count - 1;
      break;
    default:
      break;
  }
  const bool stays = cluster.config->schedule != TSIM_RANDOM;
  if (stays && here.ready_warps) return &here;
  for (int i = 0; i < count; ++i) {
    const int step = cluster.config->schedule == TSIM_REVERSE ? count - i : i;
    Block& block = *cluster.blocks[size_t((here.rank + skip + step) % count)];
    if (block.ready_warps) return &block;
  }
  return nullptr;
}

// The thread to continue with, and its block; null if none can run.
Thread* pick(Block*& block, const Thread* last) {
  if (last && !block->warps[last->warp].ready) release_gathering(*block, last->warp);
  if (block->cluster->blocks.size() > 1) {
    Block* next = pick_block(*block->cluster, *block);
    if (!next) return nullptr;
    if (next != block) last = nullptr;
    block = next;
  } else if (!block->ready_warps) {
    return nullptr;
  }
  const int w = pick_warp(*block, last);
  return take(*block, w, pick_lane(*block, block->warps[w]));
}

void check_deadline(Block& block) {
  if (!block.cluster->deadline) return;
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  if (uint64_t(std::chrono::nanoseconds(now).count()) < block.cluster->deadline) return;
  Finding finding;
  finding.kind = TSIM_TIME_LIMIT;
  finding.line = current_thread ? current_thread->line : 0;
  report_and_abandon(finding, format("the block still runs after %u ms",
                                     block.config->time_limit_ms));
}

// Threads that can run do nothing but look at memory again and again.
void check_polls(Cluster& cluster) {
  constexpr uint64_t PATIENCE = 100000;   // far more than it takes to draw each of them
  if (cluster.polls < PATIENCE) return;
  report_deadlock(cluster);
  abandon_block();
}

// The same, but not at every switch: asking for the time takes longer than switching.
void check_time(Block& block) {
  if (block.cluster->deadline && block.statistics.switches % 1024 == 0) check_deadline(block);
}

void resume(Block& block, Thread& next) {
  current_block = &block;
  current_thread = &next;
  next.state = State::RUNNING;
  ++block.statistics.switches;
}

// The thread that runs after the current one; never returns if there is none.
Thread& next_thread(Block& here, Thread& me) {
  if (is_stopped(*here.config)) abandon_block();
  check_time(here);
  here.cluster->polls = 0;
  Block* block = &here;
  here.cluster->engine.maybe_deliver(*here.cluster);
  Thread* next;
  while (!(next = pick(block, &me))) {
    if (here.cluster->engine.deliver_one(*here.cluster)) continue;
    report_deadlock(*here.cluster);
    abandon_block();
  }
  resume(*block, *next);
  return *next;
}

// All threads of a block have exited.
void end_block(Block& block) {
  --block.cluster->alive;
  block.cluster->engine.check_at_exit(block);
  check_visits_at_exit(block);
  check_mbarriers_at_exit(block);
  check_tensor_memory_at_exit(block);
  check_budgets_at_exit(block);
  report_partial_products(block);
}

[[noreturn]] void exit_thread() {
  Block& block = *current_block;
  Thread& me = *current_thread;
  check_stores_at_exit(block, me);
  check_products_at_exit(block, me);
  if (!me.leaves) block.barriers.thread_finished(me.id);
  me.state = State::EXITED;
  block.warps[me.warp].alive &= ~(1ull << me.lane);
  --block.alive;
  leave_cluster(block, me);
  void* unused;
  if (!block.alive) end_block(block);
  if (!block.cluster->alive) {
    tsim_switch_stack(&unused, block.cluster->host_stack);
    __builtin_unreachable();
  }
  block.barriers.thread_exited(block);
  Thread& next = next_thread(block, me);
  tsim_switch_stack(&unused, next.stack_pointer);
  __builtin_unreachable();
}

void thread_main() {
  current_block->kernel->run(current_block->arguments);
  exit_thread();
}

}  // namespace

void run_threads(Cluster& cluster) {
  for (auto& block : cluster.blocks) {
    for (Thread& thread : block->threads) {
      const int stack = block->rank * block->thread_count + thread.id;
      thread.state = State::READY;
      thread.stack_pointer = cluster.stacks->prepare(stack, thread_main);
    }
  }
  const bool is_reverse = cluster.config->schedule == TSIM_REVERSE;
  Block* block = (is_reverse ? cluster.blocks.back() : cluster.blocks.front()).get();
  Thread* first = pick(block, nullptr);
  resume(*block, *first);
  if (!sigsetjmp(cluster.escape, 0)) {
    tsim_switch_stack(&cluster.host_stack, first->stack_pointer);
  }
  current_thread = nullptr;
}

void wait_in(State state, uint32_t line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.state = state;
  me.line = line;
  Thread& next = next_thread(block, me);
  if (&next != &me) tsim_switch_stack(&me.stack_pointer, next.stack_pointer);
}

void yield_thread(uint32_t line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  if (is_stopped(*block.config)) abandon_block();
  check_deadline(block);
  check_polls(*block.cluster);
  Block* other = &block;
  if (block.cluster->blocks.size() > 1) {
    const size_t count = block.cluster->blocks.size(), skip = next_random(block) % count;
    for (size_t i = 0; i < count; ++i) {
      other = block.cluster->blocks[(skip + i) % count].get();
      if (other->ready_warps) break;
    }
  }
  if (!other->ready_warps) return;
  // Drawn whatever the schedule: two threads that poll must not take turns for ever.
  const int w = drawn(*other, other->ready_warps);
  Thread& next = *take(*other, w, drawn(*other, other->warps[w].ready));
  me.state = State::READY;
  make_ready(block, me.warp, 1ull << me.lane);
  resume(*other, next);
  tsim_switch_stack(&me.stack_pointer, next.stack_pointer);
}

void abandon_block() {
  Block& block = *current_block;
  block.cluster->is_abandoned = true;
  void* unused;
  tsim_switch_stack(&unused, block.cluster->host_stack);
  __builtin_unreachable();
}

uint64_t active_lanes(uint32_t line) {
  Thread& me = *current_thread;
  current_block->warps[me.warp].gathering |= 1ull << me.lane;
  wait_in(State::GATHERING, line);
  return me.active;
}

}  // namespace tsim
