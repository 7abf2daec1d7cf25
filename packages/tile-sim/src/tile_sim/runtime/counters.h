// Counters: how well the addresses of a warp suit the banks and sectors of memory.
//
// Lanes reach a line one after the other, so an operation of the whole warp is put together from
// the n-th time that each of its lanes reaches that line since the last barrier. Where lanes
// diverge, that is an approximation.
#pragma once

#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "abi.h"

namespace tsim {

struct Block;
struct Thread;

struct LineCount {
  uint64_t requests = 0;
  uint64_t bytes = 0;
  uint64_t taken = 0;      // transactions or sectors
  uint64_t ideal = 0;
};

// What is counted apart: a line, the memory, reads or writes, the size of one lane's access.
struct CountKey {
  uint32_t line;
  uint16_t bytes;
  uint8_t space;
  bool is_write;
  uint64_t packed() const {
    return uint64_t(line) << 32 | uint64_t(bytes) << 16 | uint64_t(space) << 8 | is_write;
  }
  static CountKey unpack(uint64_t key) {
    return {uint32_t(key >> 32), uint16_t(key >> 16), uint8_t(key >> 8), (key & 1) != 0};
  }
};

using LineCounts = std::unordered_map<uint64_t, LineCount>;

class Counters {
 public:
  void configure(int warps, const tsim_config& config);

  // One lane's access. Shared addresses count from the start of the arena.
  void count(Block& block, const Thread& thread, uint32_t space, bool is_write, uint64_t address,
             uint32_t bytes, uint32_t line);
  // What an engine was asked for.
  void count(const CountKey& key, const LineCount& cost);
  // Counts what is not complete: lanes that will not come any more.
  void flush(Block& block);

  const LineCounts& totals() const { return totals_; }

 private:
  struct Operation {
    uint64_t lanes = 0;
    uint64_t addresses[64];
  };
  // The operations of one warp at one line that some lanes have not reached yet.
  struct Site {
    std::deque<Operation> open;
    uint64_t first = 0;             // number of open[0]
    uint64_t reached[64] = {};      // how many each lane has reached
  };
  void fold(uint64_t key, const Operation& operation);

  int warp_size_ = 32;
  int banks_ = 32;
  uint32_t sector_bytes_ = 32;
  std::vector<std::unordered_map<uint64_t, Site>> warps_;
  LineCounts totals_;
};

}  // namespace tsim
