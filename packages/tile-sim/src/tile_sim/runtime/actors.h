// Who makes an access, for the clock and for reports: threads, and the engines beside them.
#pragma once

#include <cstdint>
#include <string>

#include "abi.h"
#include "clock.h"

namespace tsim {

struct Block;
struct Finding;

// The engines of one block that have been used. Each has a number for the clock.
class Agents {
 public:
  struct Agent {
    tsim_actor kind;
    int thread;        // that started it last; of a product: the first of its warpgroup
    uint32_t key;
  };

  void start() { count_ = 0; }
  // The engine of a kind that `key` tells from others, or the first of `count` that work together.
  // If there are too many, they share the last numbers: then what waits for one waits for all.
  int take(Block& block, tsim_actor kind, uint32_t key, int thread, int count = 1);
  const Agent& operator[](int number) const { return agents_[number]; }

 private:
  Agent agents_[AGENTS];
  int count_ = 0;
};

// "thread 5", "the copy of thread 0", "the wgmma of threads 128-255".
std::string issuer_of(Stamp stamp);

// Fills in who made the access, and who made the earlier one.
void blame(Finding& finding, Stamp stamp);
void blame_other(Finding& finding, Stamp stamp);

// Whether `earlier` is of an engine that was started by the thread, or its warpgroup, of `now`.
bool is_own_engine(Stamp earlier, Stamp now);

}  // namespace tsim
