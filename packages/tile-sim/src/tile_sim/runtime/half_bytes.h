// Who stored single halves of bytes: elements of four bits, each of which may be of another thread.
//
// Stores of the two halves of a byte are no rivals. Who reads or writes the byte touches both, and
// a reader is after one of them at least: it has a rival only if neither store comes before it.
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>
#include <unordered_map>

#include "clock.h"

namespace tsim {

class HalfBytes {
 public:
  struct Store {
    Stamp stamp = 0;         // 0: there is none
    uint32_t cluster = 0;
    uint32_t bits = 0;
  };

  bool empty() const { return !is_used_.load(std::memory_order_relaxed); }
  void clear() {
    if (empty()) return;
    bytes_.clear();
    is_used_ = false;
  }

  // Each returns an earlier store that is a rival. `is_ordered` says which come before now.
  template <class F>
  Store store(uint64_t byte, bool is_high, const Store& mine, F is_ordered) {
    const std::lock_guard<std::mutex> lock(mutex_);
    is_used_ = true;
    Store& last = bytes_[byte].halves[is_high];
    const Store before = last;
    if (is_rival(before, is_ordered)) {
      const bool is_same = stamp_line(before.stamp) == stamp_line(mine.stamp);
      if (is_same && before.bits == mine.bits) return {};   // copies of one value
      last = mine;
      return before;
    }
    last = mine;
    return {};
  }
  template <class F>
  Store read(uint64_t byte, F is_ordered) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = bytes_.find(byte);
    if (found == bytes_.end()) return {};
    const Store* halves = found->second.halves;
    const bool both = is_rival(halves[0], is_ordered) && is_rival(halves[1], is_ordered);
    return both ? halves[0] : Store{};
  }
  template <class F>
  Store write(uint64_t byte, F is_ordered) {
    const std::lock_guard<std::mutex> lock(mutex_);
    const auto found = bytes_.find(byte);
    if (found == bytes_.end()) return {};
    const Byte last = found->second;
    bytes_.erase(found);
    for (const Store& half : last.halves) {
      if (is_rival(half, is_ordered)) return half;
    }
    return {};
  }

 private:
  struct Byte {
    Store halves[2];
  };

  template <class F>
  static bool is_rival(const Store& store, F is_ordered) {
    return store.stamp && !is_ordered(store);
  }

  std::mutex mutex_;
  std::atomic<bool> is_used_{false};
  std::unordered_map<uint64_t, Byte> bytes_;
};

}  // namespace tsim
