// Asynchronous copies: the queue of one thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock.h"

namespace tsim {

struct Block;
struct Thread;

struct AsyncCopy {
  unsigned char* to;
  const unsigned char* from;
  uint16_t bytes;
  bool has_source;     // or zeros are written
  bool has_arrived;    // the bytes came early
  uint32_t group;
  uint32_t line;
};

class CopyQueue {
 public:
  void start() {
    copies_.clear();
    first_ = 0;
    open_group_ = 0;
  }
  void commit() { ++open_group_; }
  void push(AsyncCopy copy) {
    copy.group = open_group_;
    copies_.push_back(copy);
  }
  // Takes the oldest copy out if only the latest `pending` committed groups may stay.
  bool pop_beyond(uint32_t pending, AsyncCopy& copy) {
    if (first_ == copies_.size()) {
      copies_.clear();
      first_ = 0;
      return false;
    }
    copy = copies_[first_];
    if (open_group_ - copy.group <= pending) return false;
    ++first_;
    return true;
  }

 private:
  std::vector<AsyncCopy> copies_;
  size_t first_ = 0;          // of `copies_` that has not been waited for
  uint32_t open_group_ = 0;
};

}  // namespace tsim
