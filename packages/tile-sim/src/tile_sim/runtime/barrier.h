// Barriers of a block: number 0 is the one that all threads use.
#pragma once

#include <cstdint>

#include "clock.h"

namespace tsim {

struct Block;

constexpr int BARRIERS = 16;
constexpr int MAX_WARPS = 32;

class Barriers {
 public:
  void start();

  // The running thread reaches a barrier of `threads` threads (0: all that have not exited), and
  // waits there unless it only arrives.
  void reach(Block& block, int number, int threads, bool waits, uint32_t line);

  // A barrier of all threads may be complete now that one has exited.
  void thread_exited(Block& block);

  // A thread has run to the end of the kernel, which it did not leave early: barriers of all that
  // open later are not for it alone.
  void thread_finished(int thread);

  // The same as `reach(block, 0, 0, true, line)`, and sums up a predicate: the number of threads
  // for which it is true, and whether that is all of them.
  int reach_counting(Block& block, bool predicate, bool& is_all, uint32_t line);

  struct Barrier {
    bool in_use;
    int arrived;
    int expected;         // 0: all threads that have not exited
    uint32_t line;        // of the first arrival
    int first_thread;
    uint64_t waiting[MAX_WARPS];
    int waiters;
    Release released;
  };
  const Barrier& operator[](int number) const { return barriers_[number]; }

 private:
  void open(Block& block, Barrier& barrier);
  void order(Block& block, Barrier& barrier);

  void require_all(const Block& block, const Barrier& barrier);

  Barrier barriers_[BARRIERS];
  int finished_ = 0;      // threads that have run to the end
  int first_finished_ = 0;
  int votes_ = 0;         // of the counting barrier that is being filled
  int voters_ = 0;
  int result_ = 0;        // of the one that was completed last
  bool result_is_all_ = false;
};

}  // namespace tsim
