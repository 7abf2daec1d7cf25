#include "clock.h"

#include <algorithm>

namespace tsim {

void BlockClock::start(int threads, int warp_size) {
  warp_size_ = warp_size;
  now_ = everyone_since_ = 1;
  threads_.resize(threads);
  warps_.resize((threads + warp_size - 1) / warp_size);
  for (ThreadClock& t : threads_) {
    t.time = 1;
    t.has_own = false;
    t.own.since = 0;
  }
  for (Knowledge& w : warps_) w.since = 0;
}

// Makes a vector describe the time since the last barrier of all.
void BlockClock::refresh(Knowledge& known) const {
  if (known.since == everyone_since_) return;
  known.times.assign(threads_.size(), 0);
  known.since = everyone_since_;
}

void BlockClock::join(Knowledge& into, const Knowledge& from) {
  if (from.since != into.since) return;  // `from` is older: everybody knows what it says
  const uint32_t* source = from.times.data();
  uint32_t* target = into.times.data();
  const size_t n = into.times.size();
  for (size_t i = 0; i < n; ++i) target[i] = std::max(target[i], source[i]);
}

void BlockClock::meet_all() {
  everyone_since_ = ++now_;
  for (ThreadClock& t : threads_) {
    t.time = now_;
    t.has_own = false;
  }
}

void BlockClock::meet_lanes(int warp, uint64_t lanes, uint64_t alive) {
  const int first = warp * warp_size_;
  Knowledge& shared = warps_[warp];
  const bool is_whole_warp = (lanes & alive) == alive;
  Knowledge* met = &shared;
  Knowledge partial;
  if (!is_whole_warp) {
    refresh(partial);
    met = &partial;
  }
  refresh(*met);
  for (uint64_t rest = lanes; rest; rest &= rest - 1) {
    const int t = first + __builtin_ctzll(rest);
    if (&known_by(t) != met) join(*met, known_by(t));
    met->times[t] = std::max(met->times[t], threads_[t].time);
  }
  ++now_;
  for (uint64_t rest = lanes; rest; rest &= rest - 1) {
    ThreadClock& clock = threads_[first + __builtin_ctzll(rest)];
    clock.time = now_;
    clock.has_own = !is_whole_warp;
    if (clock.has_own) clock.own = partial;
  }
}

void BlockClock::release(int t, Knowledge& into) {
  refresh(into);
  join(into, known_by(t));
  into.times[t] = std::max(into.times[t], threads_[t].time);
  threads_[t].time = ++now_;
}

void BlockClock::acquire(int t, const Knowledge& from) {
  ThreadClock& clock = threads_[t];
  if (!clock.has_own) {
    clock.own = warps_[t / warp_size_];
    clock.has_own = true;
  }
  refresh(clock.own);
  join(clock.own, from);
}

void BlockClock::acquire_warp(int warp, uint64_t lanes, uint64_t alive, const Knowledge& from) {
  if ((lanes & alive) == alive) {
    // What one lane knew beyond the others becomes known to all: they wait at one barrier, and
    // released into it before.
    refresh(warps_[warp]);
    join(warps_[warp], from);
    for (uint64_t rest = lanes; rest; rest &= rest - 1) {
      threads_[warp * warp_size_ + __builtin_ctzll(rest)].has_own = false;
    }
    return;
  }
  for (uint64_t rest = lanes; rest; rest &= rest - 1) {
    acquire(warp * warp_size_ + __builtin_ctzll(rest), from);
  }
}

}  // namespace tsim
