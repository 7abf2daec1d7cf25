#include "actors.h"

#include <algorithm>

#include "block.h"

namespace tsim {

int Agents::take(Block& block, tsim_actor kind, uint32_t key, int thread, int count) {
  for (int i = 0; i < count_; ++i) {
    if (agents_[i].kind != kind || agents_[i].key != key) continue;
    agents_[i].thread = thread;
    return block.clock.agent(block.rank, i);
  }
  const int number = std::min(count_, AGENTS - count);
  count_ = number + count;
  for (int i = 0; i < count; ++i) agents_[number + i] = Agent{kind, thread, key};
  return block.clock.agent(block.rank, number);
}

namespace {

struct Party {
  tsim_actor kind;
  int thread;
  int rank;
};

Party party_of(Stamp stamp) {
  const Cluster& cluster = *current_block->cluster;
  const int who = int(stamp_who(stamp));
  const int rank = cluster.clock.rank_of(who), local = cluster.clock.thread_of(who);
  const Block& block = *cluster.blocks[size_t(rank)];
  if (local < block.thread_count) return {TSIM_THREAD, local, rank};
  const Agents::Agent& agent = block.agents[local - block.thread_count];
  return {agent.kind, agent.thread, rank};
}

}  // namespace

std::string issuer_of(Stamp stamp) {
  const Party party = party_of(stamp);
  std::string text;
  switch (party.kind) {
    case TSIM_COPY:
      text = format("the copy of thread %d", party.thread);
      break;
    case TSIM_PRODUCT:
      text = format("the wgmma of threads %d-%d", party.thread, party.thread + WARPGROUP - 1);
      break;
    case TSIM_TENSOR_PRODUCT:
      text = format("the product of thread %d", party.thread);
      break;
    case TSIM_STORE:
      text = format("the store of thread %d", party.thread);
      break;
    case TSIM_LOAD:
      text = format("the lds_load of threads %d-%d", party.thread,
                    party.thread + LdsLoad::LANES - 1);
      break;
    default:
      text = format("thread %d", party.thread);
  }
  if (party.rank != current_block->rank) text += format(" of block %d of the cluster", party.rank);
  return text;
}

void blame(Finding& finding, Stamp stamp) {
  const Party party = party_of(stamp);
  finding.thread = party.thread;
  finding.actor = party.kind;
  finding.rank = party.rank;
}

void blame_other(Finding& finding, Stamp stamp) {
  const Party party = party_of(stamp);
  finding.other_thread = party.thread;
  finding.other_actor = party.kind;
  finding.other_block = current_block->cluster->blocks[size_t(party.rank)]->number;
}

bool is_own_engine(Stamp earlier, Stamp now) {
  const Party first = party_of(earlier), second = party_of(now);
  if (first.kind == TSIM_THREAD || second.kind != TSIM_THREAD || first.rank != second.rank) {
    return false;
  }
  if (first.kind == TSIM_LOAD) {
    return second.thread / LdsLoad::LANES == first.thread / LdsLoad::LANES;
  }
  if (first.kind != TSIM_PRODUCT) return first.thread == second.thread;
  if (first.thread / WARPGROUP != second.thread / WARPGROUP) return false;
  // A wait of its own is not one of the other warps: that is a matter of order.
  const uint32_t part = stamp_who(earlier) + uint32_t(second.thread % WARPGROUP / 32);
  return !current_block->clock.is_before(make_stamp(stamp_time(earlier), part, 0, 0),
                                         int(stamp_who(now)));
}

}  // namespace tsim
