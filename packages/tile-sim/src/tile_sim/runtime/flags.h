// What blocks that run together tell each other through words of global memory.
//
// The order is that of the PTX memory model, by fences: what a thread knows at a fence is left in
// each word that it updates behind it; what it finds in words, it knows at its next fence.
#pragma once

#include <cstdint>
#include <unordered_map>

#include "clock.h"

namespace tsim {

class Flags {
 public:
  void start() {
    words_.clear();
    threads_.clear();
  }
  void fence(Clock& clock, int who);
  // An atomic operation that reads, writes, or does both; a write alone begins anew.
  void update(Clock& clock, int who, uintptr_t word, bool reads, bool writes);

 private:
  struct Fenced {
    Release released;   // at the latest fence
    Release seen;       // in words, since
  };
  std::unordered_map<uintptr_t, Release> words_;
  std::unordered_map<int, Fenced> threads_;
};

}  // namespace tsim
