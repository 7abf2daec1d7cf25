// Copies of AMD's waves from global into shared memory: what is under way, the oldest first.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock.h"

namespace tsim {

// One instruction: 64 pieces that lie side by side in shared memory.
struct LdsLoad {
  static constexpr int LANES = 64;
  unsigned char* to;
  uint32_t bytes;              // of a piece
  uint64_t sources;            // lanes that have one; the others bring zeros
  bool has_arrived;            // the bytes came early
  Stamp stamp;
  const unsigned char* from[LANES];
};

// Those of one wave. They complete in order.
class LoadQueue {
 public:
  void start() {
    loads_.clear();
    first_ = 0;
  }
  LdsLoad& push() {
    loads_.emplace_back();
    return loads_.back();
  }
  size_t count() const { return loads_.size() - first_; }
  // The oldest, which is under way no more; valid until the next push.
  const LdsLoad& pop() { return loads_[first_++]; }
  // Before a push: forgets those that are complete.
  void tidy() {
    if (first_ < loads_.size() && first_ < MANY) return;
    loads_.erase(loads_.begin(), loads_.begin() + std::ptrdiff_t(first_));
    first_ = 0;
  }

 private:
  static constexpr size_t MANY = 64;
  std::vector<LdsLoad> loads_;
  size_t first_ = 0;
};

}  // namespace tsim
