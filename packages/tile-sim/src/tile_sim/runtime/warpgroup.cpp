// What whole warps and warpgroups agree on: who acts for all, and how many registers each has.
#include <algorithm>
#include <cstdlib>

#include "block.h"
#include "collective.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

constexpr int REGISTERS = 65536;   // of a multiprocessor
constexpr int FEWEST = 24, MOST_REGISTERS = 240, STEP = 8;

// Registers of each thread when its block begins: the assembler reckons with so many blocks.
int at_entry(const Block& block) {
  const int groups = int(block.budgets.size());
  return REGISTERS / (groups * WARPGROUP * int(block.config->resident)) / STEP * STEP;
}

// What the warpgroups that have asked so far hold together; others hold `unknown`.
int sum_of(const Block& block, int unknown) {
  int sum = 0;
  for (const Budget& budget : block.budgets) sum += budget.count ? budget.count : unknown;
  return sum;
}

void check_sum(const Block& block, int unknown, uint32_t line) {
  const int sum = sum_of(block, unknown), pool = at_entry(block) * int(block.budgets.size());
  if (sum <= pool) return;
  report(finding_at(TSIM_DEADLOCK, line),
         format("the warpgroups of a block hold %d registers in each lane together, of the %d that "
                "they begin with: whoever asks for more waits forever",
                sum, pool));
}

// The lane that acts for its warp: any, but always the same.
int elected(const Block& block, const Thread& me) {
  switch (block.config->schedule) {
    case TSIM_REVERSE:
      return 63 - __builtin_clzll(block.warps[size_t(me.warp)].lanes);
    case TSIM_RANDOM:
      return int((block.config->seed * 7 + uint64_t(me.warp) * 5) % 32);
    default:
      return 0;
  }
}

}  // namespace

namespace tsim {

void check_budgets_at_exit(Block& block) {
  bool is_asked = false;
  for (const Budget& budget : block.budgets) {
    is_asked |= budget.count != 0;
    if (!budget.lanes) continue;
    report(finding_at(TSIM_DIVERGENCE, budget.line),
           format("%d of the 128 threads of a warpgroup set their registers: all do it together",
                  budget.lanes));
  }
  if (!is_asked) return;
  check_sum(block, at_entry(block), block.budgets.back().line);
}

}  // namespace tsim

extern "C" {

void tsim_set_registers(int count, int increases, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  const bool is_whole = (me.id / WARPGROUP + 1) * WARPGROUP <= block.thread_count;
  if (count % STEP || count < FEWEST || count > MOST_REGISTERS || !is_whole || block.warp_size != 32) {
    report_and_abandon(finding_at(TSIM_INVALID, line),
                       format("%d registers for each thread of a warpgroup: they are a multiple "
                              "of 8 from 24 to 240, for 128 threads",
                              count));
  }
  Budget& budget = block.budgets[size_t(me.id / WARPGROUP)];
  const int asked = increases ? count : -count;
  if (budget.lanes && (budget.asked != asked || budget.line != line)) {
    Finding finding = finding_at(TSIM_DIVERGENCE, line);
    finding.other_line = budget.line;
    report_and_abandon(finding, format("threads of one warpgroup set their registers to %d here "
                                       "and to %d at line %u",
                                       count, std::abs(budget.asked), budget.line));
  }
  budget.asked = asked;
  budget.line = line;
  if (++budget.lanes < WARPGROUP) return;
  budget.lanes = 0;
  const int before = budget.count ? budget.count : std::min(at_entry(block), MOST_REGISTERS);
  if (increases ? budget.count && count < before : count > before) {
    report(finding_at(TSIM_INVALID, line),
           format("%s from %d registers of each thread to %d", increases ? "more" : "fewer",
                  before, count));
  }
  budget.count = count;
  check_sum(block, FEWEST, line);
}

int tsim_elect(unsigned line) {
  const Block& block = *current_block;
  const Thread& me = *current_thread;
  collective(OP_ELECT, ~0ull, nullptr, line, [](Warp&, Rendezvous&) {});
  return me.lane == elected(block, me);
}

}  // extern "C"
