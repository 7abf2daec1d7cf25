// The engine that fills shared memory beside the threads of a cluster.
//
// Work waits in a queue. Late, the strictest legal engine, does none of it before no thread can run
// any more; other modes do it at once, or at any time. Whatever is on its way is poison.
#pragma once

#include <cstdint>
#include <deque>

#include "clock.h"
#include "tensor_box.h"

namespace tsim {

struct Block;
struct Cluster;

struct BulkCopy {
  enum Kind : uint8_t { BOX, ROW, REMOTE, THREAD_COPIES, PRODUCTS } kind;
  Block* from;             // of the thread that issued it
  int thread;
  Block* to;
  uint32_t offset;         // in the arena of `to`
  uint32_t bytes;
  Block* told;             // whose barrier is told
  uint32_t barrier;        // its place in the arena of `told`
  uint32_t line;
  Box box;
  const unsigned char* source;
  // Of a thread's own copies, and of products: how many come first, the tick they carry, what the thread knew.
  uint64_t position;
  uint32_t time;
  Release released;
};

class Engine {
 public:
  void start() { queue_.clear(); }
  // Begins; `copy` may be complete on return.
  void issue(Block& block, const BulkCopy& copy);
  // Completes something; false if there is nothing.
  bool deliver_one(Cluster& cluster);
  // What an engine that works at any time does between two threads.
  void maybe_deliver(Cluster& cluster) {
    if (__builtin_expect(!queue_.empty(), 0)) deliver_at_any_time(cluster);
  }
  // Completes the arrivals of a thread that no more than `position` of its copies come before.
  void deliver_arrivals(const Block& block, int thread, uint64_t position);
  // Reports what is on its way to a block whose threads have exited.
  void check_at_exit(Block& block);

 private:
  void deliver(size_t number, bool is_waited_for = false);
  size_t deliver_earlier(size_t number);
  void deliver_at_any_time(Cluster& cluster);

  std::deque<BulkCopy> queue_;
};

}  // namespace tsim
