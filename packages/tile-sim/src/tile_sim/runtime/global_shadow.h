// What the race check remembers about global memory that a kernel writes.
//
// Blocks of one launch are in no order, so two of them conflict if one writes what the other
// touches. Threads of one block, or one cluster, are compared by their clock. Atomic operations do
// not conflict with each other; a block that has used one may have learnt from it what other blocks
// did before, so it is not compared with them any more.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "access.h"
#include "observer.h"

namespace tsim {

class GlobalShadow {
 public:
  // Memory from `begin` on, accessed in elements of `element_bytes` bytes.
  GlobalShadow(const void* begin, uint64_t bytes, uint32_t element_bytes);
  ~GlobalShadow();
  GlobalShadow(const GlobalShadow&) = delete;
  GlobalShadow& operator=(const GlobalShadow&) = delete;

  void access(Block& block, const Observer& by, const tsim_global& place, uint32_t bytes,
              Access access, const void* value, Stamp stamp);

  uintptr_t begin() const { return begin_; }
  uintptr_t end() const { return begin_ + bytes_; }

 private:
  // The last write and the last read of one element. Host threads share these: a field may be
  // newer than its neighbour, but only where two blocks conflict anyway.
  struct Cell {
    std::atomic<Stamp> write;
    std::atomic<Stamp> read;
    std::atomic<uint32_t> write_cluster;   // number + 1; 0: none
    std::atomic<uint32_t> read_cluster;    // number + 1; 0: none; MANY
  };
  static constexpr uint32_t MANY = ~0u;

  struct Request;
  void check_read(const Request& request, Cell& cell, uint64_t number);
  void check_write(const Request& request, Cell& cell, uint64_t number);
  bool is_same_store(const Request& request, Stamp earlier, uint64_t number) const;
  void report_race(const Request& request, Stamp earlier, uint32_t earlier_mark,
                   const char* earlier_access, uint64_t number) const;

  uintptr_t begin_;
  uint64_t bytes_;
  uint32_t grain_;
  Cell* cells_;
  size_t mapped_;
};

// The shadows of a launch's arguments: one for each region of memory that the kernel may write.
// Sets tsim_buffer.shadow of the arguments, and clears it again when destroyed.
class GlobalShadows {
 public:
  GlobalShadows(const tsim_kernel& kernel, void** arguments, bool is_checked);
  ~GlobalShadows();

 private:
  std::vector<tsim_buffer*> buffers_;
  std::vector<std::unique_ptr<GlobalShadow>> shadows_;
};

}  // namespace tsim
