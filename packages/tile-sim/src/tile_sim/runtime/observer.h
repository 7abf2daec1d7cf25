// Those who access memory, and what they know of earlier accesses.
#pragma once

#include <cstdint>

#include "clock.h"

namespace tsim {

// Threads that do something together: what comes before it comes before it for all of them.
struct Crew {
  static constexpr int MOST = 128;
  struct Part {
    Known known;
    int16_t lane;      // the only one that knows it; -1 if several do
  };
  int rank = 0;        // of their block
  int first = 0;       // number of the first of them
  int count = 0;       // of parts
  Part parts[MOST];

  bool knows(const Clock& clock, Stamp s) const {
    for (int i = 0; i < count; ++i) {
      if (clock.is_within(s, parts[i].known, rank)) continue;
      if (parts[i].lane < 0 || first + parts[i].lane != int(stamp_who(s))) return false;
    }
    return true;
  }
};

// A thread, or an agent that works for a crew.
struct Observer {
  const Clock& clock;
  int who;                     // its own accesses come in order
  const Crew* crew = nullptr;

  bool knows(Stamp s) const {
    if (!crew) return clock.is_before(s, who);
    return int(stamp_who(s)) == who || crew->knows(clock, s);
  }

  // Whether engines that start now see a write by a thread: a fence lies between.
  bool sees_through_engines(Stamp s) const {
    const uint32_t fence = clock.fence_after(s);
    if (fence && knows(make_stamp(fence, stamp_who(s), 0, 0))) return true;
    if (!crew) return clock.was_fenced_by(who, s);
    for (int lane = 0; lane < Crew::MOST; ++lane) {
      if (!clock.was_fenced_by(crew->first + lane, s)) return false;
    }
    return true;
  }
};

}  // namespace tsim
