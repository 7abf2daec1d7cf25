#include "cluster.h"

#include "scheduler.h"

namespace tsim {
namespace {

constexpr uint16_t ALL_BLOCKS = 0xffff;

Finding protocol_finding(uint32_t line) {
  Finding finding;
  finding.kind = TSIM_PROTOCOL;
  finding.line = line;
  return finding;
}

void wake(Cluster& cluster, ClusterBarrier& barrier) {
  for (auto& block : cluster.blocks) {
    for (Thread& thread : block->threads) {
      if (thread.state != State::AT_CLUSTER) continue;
      if (block->checks_for(TSIM_CHECK_RACE)) cluster.clock.acquire(thread.who, barrier.completed);
      thread.state = State::READY;
      make_ready(*block, thread.warp, 1ull << thread.lane);
    }
  }
}

// The barrier opens once all threads that have not exited are there.
void settle(Cluster& cluster) {
  ClusterBarrier& barrier = cluster.barrier;
  int alive = 0;
  for (auto& block : cluster.blocks) alive += block->alive;
  if (!barrier.arrived || barrier.arrived < alive) return;
  barrier.arrived = 0;
  ++barrier.generation;
  cluster.clock.keep(barrier.released.sum);
  cluster.clock.drop(barrier.completed);
  barrier.completed = barrier.released.sum;
  wake(cluster, barrier);
}

void arrive(bool releases, uint32_t line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  ClusterBarrier& barrier = block.cluster->barrier;
  me.line = line;
  leave_tensor_memory(me, line);
  if (me.has_arrived) {
    report_and_abandon(protocol_finding(line),
                       "a thread arrives at the cluster's barrier a second time without waiting");
  }
  me.has_arrived = true;
  me.generation = barrier.generation;
  if (releases && block.checks_for(TSIM_CHECK_RACE)) {
    block.clock.release(me.who, barrier.released);
  }
  ++barrier.arrived;
  settle(*block.cluster);
}

void wait(uint32_t line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  ClusterBarrier& barrier = block.cluster->barrier;
  me.line = line;
  if (!me.has_arrived) {
    report_and_abandon(protocol_finding(line),
                       "a thread waits at the cluster's barrier without having arrived");
  }
  me.has_arrived = false;
  meet_tensor_memory(me, line);
  if (barrier.generation == me.generation) {
    wait_in(State::AT_CLUSTER, line);
  } else if (block.checks_for(TSIM_CHECK_RACE)) {
    block.clock.acquire(me.who, barrier.completed);
  }
  me.started = ALL_BLOCKS;  // they have arrived, also those that released nothing
}

}  // namespace

Block& require_block(int rank, uint32_t line) {
  auto& blocks = current_block->cluster->blocks;
  if (rank >= 0 && size_t(rank) < blocks.size()) return *blocks[size_t(rank)];
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report_and_abandon(finding, format("block %d of a cluster of %zu", rank, blocks.size()));
}

void note_visit(Block& owner, Stamp stamp) {
  if (owner.checks_for(TSIM_CHECK_RACE)) owner.visits[stamp_who(stamp)] = stamp;
}

void note_remote(Block& owner, Thread& thread, uint32_t line) {
  Block& block = *current_block;
  if (!owner.alive) {
    report_and_abandon(protocol_finding(line),
                       format("an access to the shared memory of block %d of the cluster, whose "
                              "threads have exited",
                              owner.rank));
  }
  if (!block.checks_for(TSIM_CHECK_RACE)) return;
  if (!(thread.started >> owner.rank & 1)) {
    if (!block.clock.knows_of(thread.who, owner.rank)) {
      report(protocol_finding(line),
             format("an access to the shared memory of block %d of the cluster, which need not "
                    "have started: no barrier of the cluster comes first",
                    owner.rank));
    }
    thread.started |= uint16_t(1u << owner.rank);
  }
  note_visit(owner, stamp_of(block, thread, 0, line));
}

Block& reach_other(Block& block, Thread& thread, const tsim_shared& place, uint32_t line) {
  Block& owner = block.cluster->owner_of(place.address);
  if (&owner != &block) note_remote(owner, thread, line);
  return owner;
}

uint32_t own_offset(const tsim_shared& place, uint32_t line) {
  const Block& block = *current_block;
  const uint32_t offset = block.arena_offset(place.address);
  if (offset < block.cluster->arena_stride) return offset;
  Finding finding;
  finding.kind = TSIM_INVALID;
  finding.line = line;
  report_and_abandon(finding, "an operation of this block's engines on memory of another block");
}

void leave_cluster(Block& block, Thread& thread) {
  ClusterBarrier& barrier = block.cluster->barrier;
  if (block.checks_for(TSIM_CHECK_RACE)) {
    const bool matters = !block.visits.empty() || !block.mbarriers.all().empty();
    if (matters || block.cluster->blocks.size() > 1) block.clock.release(thread.who, block.ended);
  }
  // Who has arrived and exits is not waited for, and does not count.
  if (thread.has_arrived && thread.generation == barrier.generation) --barrier.arrived;
  settle(*block.cluster);
}

void check_visits_at_exit(Block& block) {
  if (!block.checks_for(TSIM_CHECK_RACE)) return;
  for (const auto& [who, stamp] : block.visits) {
    if (block.clock.is_within(stamp, block.ended.sum, block.rank)) continue;
    Finding finding = protocol_finding(stamp_line(stamp));
    blame(finding, stamp);
    report(finding, format("block %d of the cluster may end before this access to its shared "
                           "memory by %s: no barrier of the cluster comes behind it",
                           block.rank, issuer_of(stamp).c_str()));
  }
}

}  // namespace tsim

using namespace tsim;

extern "C" {

void tsim_cluster_arrive(int releases, unsigned line) { arrive(releases != 0, line); }
void tsim_cluster_wait(unsigned line) { wait(line); }
int tsim_cluster_rank(void) { return current_block->rank; }

tsim_shared tsim_remote(const tsim_shared* place, int rank, unsigned line) {
  Block& block = *current_block;
  const Block& there = require_block(rank, line);
  const std::ptrdiff_t distance = there.arena - block.cluster->owner_of(place->begin).arena;
  return {place->address + distance, place->begin + distance, place->end + distance};
}

// Dependent grids run one after the other here; each thread says so once.
void tsim_grid_dependency(int launches, unsigned line) {
  Thread& me = *current_thread;
  me.line = line;
  bool& has_said = launches ? me.has_launched : me.has_waited;
  if (has_said) {
    report(protocol_finding(line),
           launches ? "a thread allows dependent grids a second time"
                    : "a thread waits for earlier grids a second time");
  }
  has_said = true;
}

}  // extern "C"
