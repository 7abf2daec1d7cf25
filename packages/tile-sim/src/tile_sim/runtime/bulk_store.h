// Bulk copies out of shared memory: the queue of the thread that issued them.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor_box.h"

namespace tsim {

struct Block;
struct Thread;

struct BulkStore {
  Box box;                 // of a row, its map is null
  unsigned char* to;       // of a row
  uint32_t offset;         // in the arena
  uint32_t bytes;
  int reduction;           // tsim_atomic_operation, or -1
  int type;
  uint32_t line;
  uint32_t group;
  uint32_t read_time;      // ticks of its accesses
  uint32_t write_time;
  bool is_done;            // shared memory was read, and global memory written
  bool is_read;            // the thread has waited for the reading
};

struct StoreQueue {
  std::vector<BulkStore> stores;
  uint32_t open_group;

  void start() {
    stores.clear();
    open_group = 0;
  }
};

// A thread exits: reports stores that may not have read their shared memory.
void check_stores_at_exit(Block& block, Thread& thread);

}  // namespace tsim
