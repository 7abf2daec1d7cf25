#include "deadlock.h"

#include <map>
#include <utility>
#include <vector>

#include "block.h"
#include "collective.h"

namespace tsim {
namespace {

std::string waits_for(Block& block, const Thread& thread) {
  switch (thread.state) {
    case State::AT_BARRIER: {
      const Barriers::Barrier& barrier = block.barriers[thread.barrier];
      const int expected = barrier.expected ? barrier.expected : block.alive;
      return format("wait at barrier %d (%d of %d threads have arrived)", thread.barrier,
                    barrier.arrived, expected);
    }
    case State::AT_CLUSTER:
      return format("wait at the cluster's barrier (%d threads have arrived)",
                    block.cluster->barrier.arrived);
    case State::AT_PRODUCT:
      return product_awaited_by(block, thread);
    case State::AT_MBARRIER:
      return "wait at " + state_of(*block.mbarriers.find(uint32_t(thread.barrier)));
    case State::IN_WARP_OPERATION: {
      for (const Rendezvous& r : block.warps[thread.warp].rendezvous) {
        if (!(r.arrived >> thread.lane & 1)) continue;
        return format("wait in %s for other lanes of their warps", name_of_operation(r.operation));
      }
      return "wait in a warp operation";
    }
    case State::EXITED:
      return "have exited";
    default:
      return "read memory that nobody changes";
  }
}

constexpr size_t SHOWN_BLOCKS = 8;   // of a grid whose blocks run together

// "0-31 64 66-95"
std::string ranges(const std::vector<int>& sorted) {
  std::string text;
  int shown = 0;
  for (size_t i = 0; i < sorted.size() && shown < 8; ++shown) {
    size_t j = i;
    while (j + 1 < sorted.size() && sorted[j + 1] == sorted[j] + 1) ++j;
    text += (text.empty() ? "" : " ") + std::to_string(sorted[i]);
    if (j > i) text += "-" + std::to_string(sorted[j]);
    i = j + 1;
    if (shown == 7 && i < sorted.size()) text += " ...";
  }
  return text;
}

}  // namespace

namespace {

// Adds who waits where in one block.
void describe(Block& block, Finding& finding, std::string& message) {
  std::map<std::pair<uint32_t, std::string>, std::vector<int>> groups;
  for (const Thread& thread : block.threads) {
    const uint32_t line = thread.state == State::EXITED ? 0 : thread.line;
    groups[{line, waits_for(block, thread)}].push_back(thread.id);
  }
  const bool is_alone = block.cluster->blocks.size() == 1;
  const std::string where = is_alone ? "" : block.config->cooperative
                                ? format("block %d: ", block.rank)
                                : format("block %d of the cluster: ", block.rank);
  for (const auto& [what, threads] : groups) {
    const auto& [line, text] = what;
    message += "\n  " + where + "threads " + ranges(threads) + " " + text;
    if (!line) continue;
    message += format(" at line %u", line);
    if (!finding.line) {
      finding.line = line;
      finding.thread = threads.front();
      finding.rank = block.rank;
    } else if (!finding.other_line) {
      finding.other_line = line;
      finding.other_thread = threads.front();
    }
  }
}

// The barriers that nobody waits at: one of them may have had what another lacks.
std::string idle_mbarriers(const Block& block) {
  std::string text;
  for (const Mbarrier& barrier : block.mbarriers.all()) {
    bool is_awaited = false;
    for (uint64_t lanes : barrier.waiting) is_awaited |= lanes != 0;
    if (!is_awaited) text += "\n  nobody waits at " + state_of(barrier);
  }
  return text;
}

}  // namespace

void report_deadlock(Cluster& cluster) {
  // Of which this is the cause, not the deadlock that follows.
  for (const auto& block : cluster.blocks) {
    if (report_partial_products(*block)) return;
  }
  Finding finding;
  finding.kind = TSIM_DEADLOCK;
  const bool is_grid = cluster.config->cooperative;
  std::string message = is_grid ? "blocks of the grid wait for each other for ever"
                                : "no thread of the block can run";
  size_t shown = 0;
  for (const auto& block : cluster.blocks) {
    if (is_grid && ++shown > SHOWN_BLOCKS) break;
    describe(*block, finding, message);
  }
  for (const auto& block : cluster.blocks) message += idle_mbarriers(*block);
  report(finding, message);
}

}  // namespace tsim
