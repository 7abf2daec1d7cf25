// Operations of the lanes of a warp: each leaves its arguments, the last to arrive executes the
// operation for all of them, and all run on.
#pragma once

#include <cstdint>

#include "block.h"
#include "scheduler.h"

namespace tsim {

enum Operation : int {
  OP_SYNC_WARP,
  OP_SHUFFLE,
  OP_BALLOT,
  OP_MATCH,
  OP_LOAD_MATRIX,
  OP_STORE_MATRIX,
  OP_MMA,
  OP_ELECT,
  OP_MFMA,
  OP_LDS_LOAD,
  OP_LDS_WAIT,
};

const char* name_of_operation(int operation);

// Finds where the running lane meets the lanes in `needed`; reports lanes that execute something
// else, or have exited.
Rendezvous& meet(int operation, uint64_t needed, uint32_t line);

// Runs `execute(warp, rendezvous)` once for all lanes of the warp, or those in `mask`.
template <class Execute>
inline void collective(int operation, uint64_t mask, void* argument, uint32_t line,
                       Execute execute) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  Warp& warp = block.warps[me.warp];
  Rendezvous& r = meet(operation, mask & warp.lanes, line);
  r.arguments[me.lane] = argument;
  r.arrived |= 1ull << me.lane;
  if (r.arrived != r.needed) {
    wait_in(State::IN_WARP_OPERATION, line);
    return;
  }
  ++block.statistics.collectives;
  execute(warp, r);
  r.arrived = 0;
  if (r.needed == warp.lanes) warp.uniforms.forget();
  const uint64_t others = r.needed & ~(1ull << me.lane);
  if (others) make_ready(block, me.warp, others);
}

// Calls `visit(lane, argument)` for each lane that takes part, lowest first.
template <class Argument, class Visit>
inline void for_each_lane(const Rendezvous& r, Visit visit) {
  for (uint64_t rest = r.needed; rest; rest &= rest - 1) {
    const int lane = __builtin_ctzll(rest);
    visit(lane, *static_cast<Argument*>(r.arguments[lane]));
  }
}

// A kernel executes few kinds of products many times: the last one is remembered.
template <class Kind>
struct Remembered {
  uint64_t key;      // 0: none yet
  Kind kind;
};

}  // namespace tsim
