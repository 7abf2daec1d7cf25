// Shuffles, votes and matches. They exchange registers and do not order memory.
#include "collective.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

struct Shuffle {
  uint64_t value;
  uint64_t result;
  int kind;
  int argument;
  int width;
};

// The lane that `lane` reads from; itself where that would leave its segment.
int source_lane(const Shuffle& s, int lane, int warp_size) {
  const int width = s.width > 0 && s.width < warp_size ? s.width : warp_size;
  const int first = lane & ~(width - 1);
  int source = lane;
  switch (s.kind) {
    case TSIM_SHUFFLE_XOR:
      source = lane ^ s.argument;
      // As the instruction: earlier segments can be read, later ones cannot.
      return source < first + width && source >= 0 ? source : lane;
    case TSIM_SHUFFLE_INDEX:
      return first + (s.argument & (width - 1));
    case TSIM_SHUFFLE_DOWN:
      source = lane + s.argument;
      break;
    default:
      source = lane - s.argument;
  }
  return source >= first && source < first + width ? source : lane;
}

void execute_shuffle(Warp&, Rendezvous& r) {
  const int warp_size = current_block->warp_size;
  for_each_lane<Shuffle>(r, [&](int lane, Shuffle& s) {
    const int source = source_lane(s, lane, warp_size);
    if (r.needed >> source & 1) {
      s.result = static_cast<Shuffle*>(r.arguments[source])->value;
      return;
    }
    Finding finding;
    finding.kind = TSIM_DIVERGENCE;
    finding.line = r.line;
    report(finding, format("lane %d reads from lane %d, which does not take part in the shuffle",
                           lane, source));
  });
}

struct Vote {
  uint64_t value;
  uint64_t result;
};

}  // namespace

extern "C" {

unsigned long long tsim_shuffle(int kind, unsigned long long value, int argument, int width,
                                unsigned line) {
  Shuffle shuffle{value, value, kind, argument, width};
  collective(OP_SHUFFLE, ~0ull, &shuffle, line, execute_shuffle);
  return shuffle.result;
}

unsigned long long tsim_ballot(int predicate, unsigned line) {
  Vote vote{predicate != 0, 0};
  collective(OP_BALLOT, ~0ull, &vote, line, [](Warp&, Rendezvous& r) {
    uint64_t set = 0;
    for_each_lane<Vote>(r, [&](int lane, Vote& v) { set |= v.value << lane; });
    for_each_lane<Vote>(r, [&](int, Vote& v) { v.result = set; });
  });
  return vote.result;
}

// For each lane, the lanes that have the same value.
unsigned long long tsim_match_any(unsigned long long value, unsigned line) {
  Vote vote{value, 0};
  collective(OP_MATCH, ~0ull, &vote, line, [](Warp&, Rendezvous& r) {
    for_each_lane<Vote>(r, [&](int, Vote& mine) {
      for_each_lane<Vote>(r, [&](int lane, Vote& other) {
        if (other.value == mine.value) mine.result |= 1ull << lane;
      });
    });
  });
  return vote.result;
}

// All lanes if they have one value, else none.
unsigned long long tsim_match_all(unsigned long long value, unsigned line) {
  Vote vote{value, 0};
  collective(OP_MATCH, ~0ull, &vote, line, [](Warp&, Rendezvous& r) {
    const uint64_t first = static_cast<Vote*>(r.arguments[__builtin_ctzll(r.needed)])->value;
    bool is_same = true;
    for_each_lane<Vote>(r, [&](int, Vote& v) { is_same &= v.value == first; });
    for_each_lane<Vote>(r, [&](int, Vote& v) { v.result = is_same ? r.needed : 0; });
  });
  return vote.result;
}

unsigned long long tsim_active_lanes(unsigned line) { return active_lanes(line); }

// Lanes that meet here are ordered: what each did before comes before what all do after.
void tsim_sync_warp(unsigned long long mask, unsigned line) {
  collective(OP_SYNC_WARP, mask, nullptr, line, [](Warp&, Rendezvous& r) {
    Block& block = *current_block;
    if (!block.checks_for(TSIM_CHECK_RACE)) return;
    block.clock.meet_lanes(block.clock.thread(block.rank, current_thread->warp * block.warp_size),
                             r.needed);
  });
}

}  // extern "C"
