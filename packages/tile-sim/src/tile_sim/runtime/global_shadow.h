// What the race check remembers about global memory that a kernel writes.
//
// Blocks of one launch are in no order, so two of them conflict if one writes what the other
// touches. Threads of one block, or one cluster, are compared by their clock. Atomic operations do
// not conflict with each other; a block that has used one may have learnt from it what other blocks
// did before, so it is not compared with them any more. Those who store one value by one line do it
// together: they are no rivals, and each of them may read it.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "access.h"
#include "half_bytes.h"
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
  // newer than its neighbour, but only where two blocks conflict anyway; writes come one by one.
  struct Cell {
    std::atomic<Stamp> write;
    std::atomic<Stamp> read;
    std::atomic<uint32_t> write_cluster;   // number + 1; 0: none; BUSY while it changes
    std::atomic<uint32_t> read_cluster;    // number + 1; 0: none; MANY
    std::atomic<uint32_t> value;           // of the last write, where it is known
    std::atomic<uint32_t> is_joint;        // others have stored the same: see `joint_`
  };
  static constexpr uint32_t MANY = ~0u;
  static constexpr uint32_t BUSY = 1u << 31;
  // Who stored an element together, in which cluster, by number of the element.
  using Joint = std::unordered_map<uint64_t, Stamp>;

  struct Request;
  // An access that does not come before another.
  struct Rival {
    Stamp stamp = 0;
    uint32_t cluster = 0;    // 0: there is none
  };
  struct Rivals {
    Rival writer, reader;
  };
  void check_read(const Request& request, Cell& cell, uint64_t number);
  bool check_halves(const Request& request, uint64_t number);
  void check_write(const Request& request, Cell& cell, uint64_t number);
  uint32_t write_in_turn(const Request& request, Cell& cell, uint64_t number, uint32_t writer,
                         Rivals& rivals);
  Rival unknown_write(const Request& request, const Cell& cell, uint64_t number, uint32_t writer);
  bool has_stored(const Request& request, const Cell& cell, uint64_t number, uint32_t writer);
  bool is_same_store(const Request& request, const Cell& cell, uint64_t number) const;
  uint32_t value_at(const Request& request, uint64_t number) const;
  void report_race(const Request& request, Rival rival, const char* earlier_access,
                   uint64_t number) const;

  uintptr_t begin_;
  uint64_t bytes_;
  uint32_t grain_;
  Cell* cells_;
  size_t mapped_;
  HalfBytes halves_;
  std::mutex joint_mutex_;
  std::unordered_map<uint64_t, Joint> joint_;
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
