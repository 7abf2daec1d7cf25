// Findings of one launch: merged, worded, and handed out as plain records.
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <mutex>
#include <string>
#include <vector>

#include "abi.h"

namespace tsim {

// What a check has found. The reporting function fills in the block and, unless set, the thread.
struct Finding {
  uint32_t kind = 0;
  uint32_t space = TSIM_NO_MEMORY;
  uint32_t line = 0;
  uint32_t other_line = 0;
  int thread = -1;
  int other_thread = -1;
  uint64_t offset = 0;
  uint64_t bytes = 0;
  uint64_t buffer_start = 0;
  uint64_t buffer_bytes = 0;
  const char* buffer = nullptr;
  uint64_t other_block = ~0ull;   // linear index, if it is another one
  int rank = -1;                  // of the block in its cluster; -1: the one that runs
  uint32_t actor = TSIM_THREAD;   // what of the thread it was
  uint32_t other_actor = TSIM_THREAD;
};

class Reports {
 public:
  explicit Reports(uint32_t max_reports) : max_reports_(max_reports) {}

  // Adds a finding, or counts it if the same kind was found at the same lines before.
  void add(const Finding& finding, const uint32_t block[3], const uint32_t other_block[3],
           const std::string& message);
  // Whether so many different findings exist that no further block should start.
  bool is_full() const { return full_.load(std::memory_order_relaxed); }
  // Whether so many findings were merged that going on only costs time.
  bool is_flooded() const { return total_.load(std::memory_order_relaxed) > FLOOD; }
  // Moves the records into a result; the strings live as long as `storage`.
  void write_to(std::vector<tsim_report>& records, std::deque<std::string>& storage,
                uint64_t& total) const;

 private:
  struct Entry {
    tsim_report record;
    std::string buffer;
    std::string message;
  };
  static constexpr uint64_t FLOOD = 200000;

  uint32_t max_reports_;
  std::atomic<uint64_t> total_{0};
  std::mutex mutex_;
  std::deque<Entry> entries_;
  std::atomic<bool> full_{false};
};

std::string format(const char* pattern, ...) __attribute__((format(printf, 1, 2)));

// A finding of some kind at a line; whoever makes it adds what else is known.
Finding finding_at(uint32_t kind, uint32_t line);

// Reports about the running thread of the running block.
void report(Finding finding, const std::string& message);
// The same, then gives the block up: the thread cannot go on.
[[noreturn]] void report_and_abandon(const Finding& finding, const std::string& message);
// The same for what no machine would execute.
[[noreturn]] void refuse(uint32_t line, const std::string& message);

}  // namespace tsim
