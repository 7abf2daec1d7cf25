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
    earlier_ = 0;
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
      forget();
      return false;
    }
    copy = copies_[first_];
    if (open_group_ - copy.group <= pending) return false;
    ++first_;
    return true;
  }
  // The same if it is one of the first `position` that the thread has started.
  bool pop_before(uint64_t position, AsyncCopy& copy) {
    if (first_ == copies_.size() || earlier_ + first_ >= position) return false;
    copy = copies_[first_++];
    return true;
  }
  // Whether no commit has followed a copy: then nobody waits for it by its group.
  bool is_open(const AsyncCopy& copy) const { return copy.group == open_group_; }
  // How many were started so far; how many of them are not in the latest `pending` groups.
  uint64_t started() const { return earlier_ + copies_.size(); }
  uint64_t started_beyond(uint32_t pending) const { return earlier_ + count_beyond(pending); }

 private:
  size_t count_beyond(uint32_t pending) const {
    size_t end = first_;
    while (end < copies_.size() && open_group_ - copies_[end].group > pending) ++end;
    return end;
  }
  void forget() {
    earlier_ += copies_.size();
    copies_.clear();
    first_ = 0;
  }

  std::vector<AsyncCopy> copies_;
  size_t first_ = 0;          // of `copies_` that has not been waited for
  uint64_t earlier_ = 0;      // that are not in `copies_` any more
  uint32_t open_group_ = 0;
};

// Whether an engine that may be fast, slow or anything delivers at once.
bool arrives_at_once(Block& block);

// The first `position` copies of a thread arrive, as writes of the thread at the tick `time`; those
// that no commit has followed as writes of `agent` at `now`, unless `agent` is negative.
void complete_copies(Block& block, Thread& thread, uint64_t position, uint32_t time, int agent,
                     uint32_t now);

}  // namespace tsim
