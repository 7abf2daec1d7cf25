// The order of events among blocks that run together: which accesses come before which.
//
// Every synchronising operation takes one tick of their common time. An access carries the tick of
// the latest such operation of who made it: a thread, or an agent, which is an engine that works
// beside the threads. A thread knows, for each other, the latest tick whose accesses come before
// its own (a vector clock). After a barrier of a whole block its threads know everything about
// each other, so one number serves all (the floor), and vectors only describe what else is known.
//
// Vectors are shared: threads that know the same, as the lanes of a warp mostly do, hold one.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

namespace tsim {

// One access: when, by whom, how, and from which line. 0 means "none".
using Stamp = uint64_t;

constexpr uint32_t STAMP_ATOMIC = 1;   // flags
constexpr uint32_t STAMP_PROXY = 2;    // by an engine, or known to be visible to engines
constexpr uint32_t STAMP_GROUP = 4;    // by four agents with successive numbers, together
constexpr int GROUP = 4;

inline Stamp make_stamp(uint32_t time, uint32_t who, uint32_t flags, uint32_t line) {
  return uint64_t(time) << 34 | uint64_t(who) << 19 | uint64_t(flags) << 16 | (line & 0xffff);
}
inline uint32_t stamp_time(Stamp s) { return uint32_t(s >> 34); }
inline uint32_t stamp_who(Stamp s) { return uint32_t(s >> 19) & 32767; }
inline uint32_t stamp_flags(Stamp s) { return uint32_t(s >> 16) & 7; }
inline uint32_t stamp_line(Stamp s) { return uint32_t(s) & 0xffff; }

constexpr int MAX_BLOCKS = 128;  // that run together
constexpr int MAX_CLUSTER = 16;
constexpr int AGENTS = 64;       // of a block
constexpr int MAX_ACTORS = 1 << 15;  // threads and agents, of all blocks that run together

// A vector of ticks in the clock's store; 0: nothing is known beyond the floor.
using Known = uint32_t;

// What threads leave behind for others.
struct Release {
  Known sum = 0;
  Known latest = 0;                 // that was added whole
  uint32_t floors[MAX_BLOCKS] = {}; // versions of the floors that were added, by block
};

// The last places of a thread's time at which it has made its writes visible to engines.
struct Fences {
  static constexpr int KEPT = 8;
  uint32_t times[KEPT];             // right after each fence
  uint32_t count;
  Known known;                      // at the latest fence
  uint32_t floor;
};

class Clock {
 public:
  // So many blocks of so many threads each.
  void start(int blocks, int threads);

  // Everybody who can access memory has a number.
  int thread(int rank, int thread) const { return rank * stride_ + thread; }
  int agent(int rank, int number) {
    has_agents_ = true;
    return rank * stride_ + threads_ + number;
  }
  bool is_agent(int who) const { return homes_[size_t(who)] == MAX_BLOCKS; }
  int rank_of(int who) const { return who / stride_; }
  int thread_of(int who) const { return who % stride_; }
  int everybody() const { return blocks_ * stride_; }

  uint32_t time_of(int who) const { return members_[size_t(who)].time; }
  uint32_t tick() { return ++now_; }
  // What a thread does from here on is told from what it did.
  uint32_t advance(int who) { return members_[size_t(who)].time = ++now_; }

  // Whether an access comes before what thread `me` does now.
  bool is_before(Stamp s, int me) const {
    const size_t who = stamp_who(s);
    if (int(who) == me) return true;
    const Member& member = members_[size_t(me)];
    if (stamp_time(s) < member.floors[homes_[who]]) return true;
    return member.times && covers(member.times, s);
  }
  // The same for somebody who knows `known`, in the block `rank`.
  bool is_within(Stamp s, Known known, int rank) const {
    const size_t who = stamp_who(s);
    if (stamp_time(s) < floors_[rank][homes_[who]]) return true;
    return known && covers(store_[known].times.get(), s);
  }
  // Whether a thread knows of anything that some thread of a block did.
  bool knows_of(int me, int rank) const;
  // Whether a reader of that time is covered by the block's floor, if it is one of its threads.
  bool is_below_floor(uint32_t time, int rank) const { return time < floors_[rank][rank]; }

  // All threads of a block have met.
  void meet_all(int rank);
  // The threads in `lanes`, counted from `first`, have met.
  void meet_lanes(int first, uint64_t lanes);
  // Adds what a thread knows, and what it did, to `into`.
  void release(int me, Release& into);
  void forget(Release& release);
  // A thread learns what somebody left; or all that somebody did until `time`.
  void acquire(int me, Known from);
  void learn(int me, int who, uint32_t time);
  // The same for something that threads will acquire.
  void learn(Release& into, int who, uint32_t time);
  // What somebody left is left here, too.
  void add(Release& into, Known from);

  Known known(int me) const { return members_[size_t(me)].known; }
  void keep(Known known) { store_[known].references += known != 0; }
  void drop(Known known);

  // Fences between threads and engines: the thread's writes so far, and what it knows of others'.
  void fence(int me);
  // The tick from which on those who know of `who` know a fence behind its access `s`; 0: none.
  uint32_t fence_after(Stamp s) const;
  bool was_fenced_by(int me, Stamp s) const;

 private:
  struct Member {
    uint32_t time;
    Known known;
    const uint32_t* times;    // of `known`; null if it is 0
    const uint32_t* floors;   // by block, and 0 for agents
    Fences fences;
  };
  struct Vector {
    uint32_t references = 0;
    uint32_t visit = 0;
    std::unique_ptr<uint32_t[]> times;
  };
  // What `a` became when it learnt `b`, or what `b` did until `time`.
  struct Memo {
    Known a, b, result;
    uint32_t time;
  };

  static bool covers(const uint32_t* times, Stamp s) {
    const uint32_t* first = times + stamp_who(s);
    if (stamp_time(s) > *first) return false;
    if (__builtin_expect(!(stamp_flags(s) & STAMP_GROUP), 1)) return true;
    bool all = true;
    for (int i = 1; i < GROUP; ++i) all &= stamp_time(s) <= first[i];
    return all;
  }
  Known fresh();
  Known copy_of(Known known);
  void own(Known& known);
  void join(Known into, Known from);
  void assign(int me, Known known);
  void remember(Memo& memo, Known a, Known b, uint32_t time, Known result);
  Known joined(int first, int count);
  void add_floors(Release& into, int rank);
  uint32_t* times(Known known) { return store_[known].times.get(); }

  static constexpr size_t MEMOS = 16;
  int blocks_ = 0, threads_ = 0, stride_ = 0;
  bool has_agents_ = false;
  uint32_t now_ = 1, visit_ = 0;
  std::vector<uint8_t> homes_;            // block of a thread; MAX_BLOCKS of an agent
  std::vector<Member> members_;
  uint32_t floors_[MAX_BLOCKS][MAX_BLOCKS + 1];
  uint32_t floor_versions_[MAX_BLOCKS];
  std::vector<Vector> store_;
  std::vector<Known> free_;
  size_t size_ = 0;                       // of the vectors in the store
  Memo memos_[MEMOS];
};

}  // namespace tsim
