// lds_load and lds_wait: a wave's copies, issued and awaited by all its lanes together.
//
// AMD "CDNA3 Instruction Set Architecture": buffer loads to LDS write from M0 on, which all lanes
// share, one piece per lane; they return in order, and S_WAITCNT vmcnt(N) waits until N are left.
#include "lds_load.h"

#include <cstring>

#include "access.h"
#include "block.h"
#include "cluster.h"
#include "collective.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

// What a lane brings along.
struct LanePiece {
  unsigned char* to;              // of all lanes alike
  const unsigned char* tensor;    // likewise
  const unsigned char* from;      // null: zeros
  uint32_t bytes;
};

// The last byte that a number of 32 bits leads to. What lies behind stands for zeros.
constexpr long long REACH = 0xfffffff0;

void require_wave(const Block& block, const Thread& me, uint32_t line) {
  if (block.warp_size == LdsLoad::LANES && !~block.warps[size_t(me.warp)].lanes) return;
  report_and_abandon(finding_at(TSIM_INVALID, line),
                     "lds_load in a wave that does not have 64 lanes");
}

// Where the lanes of this wave wait that have come already, if some have.
const Rendezvous* started(const Warp& warp) {
  for (const Rendezvous& r : warp.rendezvous) {
    if (r.arrived && r.operation == OP_LDS_LOAD) return &r;
  }
  return nullptr;
}

// One instruction of all lanes has one place and one tensor.
void check_uniform(const Block& block, const Thread& me, const LanePiece& mine, uint32_t line) {
  const Rendezvous* others = started(block.warps[size_t(me.warp)]);
  if (!others) return;
  if (others->line != line) {
    Finding finding = finding_at(TSIM_DIVERGENCE, line);
    finding.other_line = others->line;
    report_and_abandon(finding, format("lanes of one wave execute different lds_loads: this one "
                                       "here, others that at line %u",
                                       others->line));
  }
  const int other = __builtin_ctzll(others->arrived);
  const LanePiece& theirs = *static_cast<const LanePiece*>(others->arguments[other]);
  const int thread = me.warp * block.warp_size + other;
  if (theirs.to != mine.to) {
    report_and_abandon(finding_at(TSIM_INVALID, line),
                       format("lanes of one wave copy to different places: thread %d to byte %u of "
                              "shared memory, thread %d to byte %u; lds_load adds the lane itself",
                              me.id, block.arena_offset(mine.to), thread,
                              block.arena_offset(theirs.to)));
  }
  if (theirs.tensor != mine.tensor || theirs.bytes != mine.bytes) {
    report_and_abandon(finding_at(TSIM_INVALID, line),
                       format("lanes of one wave copy from different tensors, or pieces of "
                              "different sizes: threads %d and %d",
                              me.id, thread));
  }
}

// Whatever lies before the instruction in some lane has to lie before it in all.
struct WaveCrew : Crew {
  WaveCrew(Block& block, int warp) {
    first = block.clock.thread(block.rank, warp * block.warp_size);
    rank = block.rank;
    for (int lane = 0; lane < block.warp_size; ++lane) {
      const Known known = block.clock.known(first + lane);
      Part* last = count ? &parts[count - 1] : nullptr;
      if (last && last->known == known) last->lane = -1;
      else parts[count++] = {known, int16_t(lane)};
    }
  }
};

void deliver(const LdsLoad& load) {
  unsigned char* to = load.to;
  for (int lane = 0; lane < LdsLoad::LANES; ++lane, to += load.bytes) {
    if (load.sources >> lane & 1) std::memcpy(to, load.from[lane], load.bytes);
    else std::memset(to, 0, load.bytes);
  }
}

int agent_of(Block& block, int warp) {
  return block.agents.take(block, TSIM_LOAD, uint32_t(warp), warp * block.warp_size);
}

void begin_load(Block& block, Rendezvous& r) {
  const int w = current_thread->warp;
  LoadQueue& queue = block.warps[size_t(w)].loads;
  queue.tidy();
  LdsLoad& load = queue.push();
  const LanePiece& some = *static_cast<const LanePiece*>(r.arguments[current_thread->lane]);
  load.to = some.to;
  load.bytes = some.bytes;
  load.sources = 0;
  for_each_lane<LanePiece>(r, [&](int lane, LanePiece& piece) {
    load.from[lane] = piece.from;
    if (piece.from) load.sources |= 1ull << lane;
  });
  const uint32_t bytes = load.bytes * LdsLoad::LANES;
  if (block.checks_for(CHECKS_OF_SHADOW)) {
    const int agent = agent_of(block, w);
    load.stamp = make_stamp(block.clock.tick(), uint32_t(agent), 0, r.line);
    const WaveCrew crew(block, w);
    block.shadow.begin_copy(block, {block.clock, agent, &crew}, block.arena_offset(load.to), bytes,
                            load.stamp, Pending::COPY);
  }
  // Until it arrives there is neither the old value nor the new one: 0xff is NaN in all floats.
  load.has_arrived = arrives_at_once(block);
  if (load.has_arrived) deliver(load);
  else std::memset(load.to, 0xff, bytes);
}

// Completes all but the latest `left`; every lane of the wave knows of it.
void end_loads(Block& block, const Rendezvous& r, size_t left) {
  const int w = current_thread->warp;
  LoadQueue& queue = block.warps[size_t(w)].loads;
  Stamp latest = 0;
  while (queue.count() > left) {
    const LdsLoad& load = queue.pop();
    if (!load.has_arrived) deliver(load);
    latest = load.stamp;
    if (!block.checks_for(CHECKS_OF_SHADOW)) continue;
    block.shadow.end_copy(block.arena_offset(load.to), load.bytes * LdsLoad::LANES, latest);
  }
  if (!latest || !block.checks_for(TSIM_CHECK_RACE)) return;
  const int first = block.clock.thread(block.rank, w * block.warp_size);
  for (uint64_t rest = r.needed; rest; rest &= rest - 1) {
    block.clock.learn(first + __builtin_ctzll(rest), int(stamp_who(latest)), stamp_time(latest));
  }
}

}  // namespace

extern "C" {

void tsim_lds_load(const tsim_shared* to, const tsim_global* tensor, long long offset,
                   unsigned bytes, int predicate, int is_narrow, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  me.line = line;
  require_wave(block, me, line);
  LanePiece piece{to->address, tensor->address, nullptr, bytes};
  check_uniform(block, me, piece, line);
  tsim_shared place = *to;
  place.address += uint32_t(me.lane) * bytes;
  check_shared_place(block, place, bytes, Access::WRITE, line);
  if (predicate) {
    tsim_global from = *tensor;
    from.address += offset;
    check_global_place(block, from, bytes, Access::READ, line);
    if (is_narrow && offset > REACH - bytes) {
      report_and_abandon(finding_at(TSIM_INVALID, line),
                         format("an lds_load from byte %lld of a tensor, by an index of 32 bits",
                                offset));
    }
    record_global(block, me, from, bytes, Access::READ, nullptr, line);
    piece.from = from.address;
  }
  ++block.statistics.async_copies;
  if (block.checks_for(TSIM_COUNT_BANKS)) {
    block.counters.count(block, me, TSIM_SHARED, true, own_offset(place, line), bytes, line);
  }
  collective(OP_LDS_LOAD, ~0ull, &piece, line,
             [&](Warp&, Rendezvous& r) { begin_load(block, r); });
}

void tsim_lds_wait(int left, unsigned line) {
  Block& block = *current_block;
  current_thread->line = line;
  collective(OP_LDS_WAIT, ~0ull, &left, line, [&](Warp&, Rendezvous& r) {
    for_each_lane<int>(r, [&](int, int& other) {
      if (other == left) return;
      report_and_abandon(finding_at(TSIM_DIVERGENCE, line),
                         "lanes of one wave wait for different numbers of lds_loads");
    });
    end_loads(block, r, size_t(left));
  });
}

}  // extern "C"
