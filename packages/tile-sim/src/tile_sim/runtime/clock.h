// The order of events in a block: which accesses are known to come before which.
//
// Every synchronising operation takes one tick of the block's time. A thread's accesses carry the
// tick of its latest such operation. A thread knows, for each other thread, the latest tick whose
// accesses come before its own (a vector clock). After a barrier of the whole block everybody
// knows everything, so one number serves all: accesses stamped before `everyone_since` are
// ordered, and vectors only describe what happened since.
#pragma once

#include <cstdint>
#include <vector>

namespace tsim {

// One access: when, by which thread, how, and from which line. 0 means "none".
using Stamp = uint64_t;

constexpr uint32_t STAMP_ATOMIC = 1;   // flags
constexpr uint32_t STAMP_ASYNC = 2;

inline Stamp make_stamp(uint32_t time, uint32_t thread, uint32_t flags, uint32_t line) {
  return uint64_t(time) << 32 | uint64_t(thread) << 22 | uint64_t(flags) << 16 | (line & 0xffff);
}
inline uint32_t stamp_time(Stamp s) { return uint32_t(s >> 32); }
inline uint32_t stamp_thread(Stamp s) { return uint32_t(s >> 22) & 1023; }
inline uint32_t stamp_flags(Stamp s) { return uint32_t(s >> 16) & 63; }
inline uint32_t stamp_line(Stamp s) { return uint32_t(s) & 0xffff; }

// The latest tick known of each thread of the block; all zero if older than the last barrier.
struct Knowledge {
  uint32_t since = 0;
  std::vector<uint32_t> times;
};

struct ThreadClock {
  uint32_t time = 0;
  bool has_own = false;   // knows more or less than the other lanes of its warp
  Knowledge own;
};

class BlockClock {
 public:
  // A block of so many threads in warps of so many.
  void start(int threads, int warp_size);

  uint32_t everyone_since() const { return everyone_since_; }
  ThreadClock& thread(int t) { return threads_[t]; }

  // Whether an access of this block comes before what thread `me` does now.
  bool is_before(Stamp s, int me) const {
    if (stamp_time(s) < everyone_since_ || int(stamp_thread(s)) == me) return true;
    const ThreadClock& clock = threads_[me];
    const Knowledge& known = clock.has_own ? clock.own : warps_[me / warp_size_];
    return known.since == everyone_since_ && stamp_time(s) <= known.times[stamp_thread(s)];
  }

  // All threads of the block have met.
  void meet_all();
  // The lanes in `lanes` of a warp have met; `alive` are those that have not exited.
  void meet_lanes(int warp, uint64_t lanes, uint64_t alive);
  // A thread releases what it knows into `into`, and acquires what is known there.
  void release(int t, Knowledge& into);
  void acquire(int t, const Knowledge& from);
  // All lanes of a warp acquire the same.
  void acquire_warp(int warp, uint64_t lanes, uint64_t alive, const Knowledge& from);

 private:
  void refresh(Knowledge& known) const;
  static void join(Knowledge& into, const Knowledge& from);
  const Knowledge& known_by(int t) const {
    return threads_[t].has_own ? threads_[t].own : warps_[t / warp_size_];
  }

  int warp_size_ = 32;
  uint32_t now_ = 1;
  uint32_t everyone_since_ = 1;
  std::vector<ThreadClock> threads_;
  std::vector<Knowledge> warps_;
};

}  // namespace tsim
