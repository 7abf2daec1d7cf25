// Barriers in shared memory, which count arrivals of threads and bytes of copies.
//
// A barrier goes through phases. A phase completes once all its arrivals and all announced bytes
// are there; who waits for it learns what those knew that arrived, and that the copies are done.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "barrier.h"
#include "clock.h"
#include "tile_sim/device_abi.h"

namespace tsim {

struct Block;
struct Thread;

constexpr uint32_t MBARRIER_BYTES = 8;
constexpr uint32_t MOST_ARRIVALS = (1u << 20) - 1;   // and bytes under way

struct Mbarrier {
  uint32_t offset;          // in the arena
  uint32_t count;           // arrivals that a phase needs
  uint32_t missing;         // of the current phase
  int64_t bytes;            // announced, and not arrived; negative if they came first
  uint32_t phase;           // completed ones
  Stamp initialised;
  uint32_t fenced;          // tick of the fence behind that; 0: none yet
  uint32_t copies;          // under way to it
  uint32_t copy_line;       // of the latest
  uint32_t copy_time;       // of the latest that has arrived
  int agent;                // who copies are to the clock
  Release released;         // by those that arrived
  Known completed;          // what the end of the latest phase tells
  uint64_t waiting[MAX_WARPS];
};

class Mbarriers {
 public:
  void start() { barriers_.clear(); }
  // The barrier at a byte of the arena; null if none was set up there.
  Mbarrier* find(uint32_t offset);
  Mbarrier& add(uint32_t offset);
  const std::vector<Mbarrier>& all() const { return barriers_; }
  // Those that `who` has set up are seen by others from `time` on.
  void fence(uint32_t who, uint32_t time);

 private:
  std::vector<Mbarrier> barriers_;
};

// The barrier of `owner` at a place that the running thread names; reports if there is none, or if
// the thread cannot know that there is. Engines and other blocks need a fence, too.
Mbarrier& require_mbarrier(Block& owner, uint32_t offset, bool needs_fence, uint32_t line);

// The byte of the arena that a place stands for, after checking that a barrier may be there.
uint32_t mbarrier_offset(const tsim_shared& place, uint32_t line);

// A thread arrives; some bytes of a copy arrive, of which `time` is the tick. `line` is to blame.
void arrive(Block& owner, Mbarrier& barrier, int who, uint32_t line);
void arrive_bytes(Block& owner, Mbarrier& barrier, uint32_t bytes, uint32_t time, uint32_t line);
// The same for a thread whose knowledge was left in `earlier`.
void arrive_later(Block& owner, Mbarrier& barrier, const Release& earlier, uint32_t line);

// "the mbarrier at byte 1024: phase 3 lacks 1 of 2 arrivals and 4096 bytes".
std::string state_of(const Mbarrier& barrier);

// What is wrong with the barriers of a block whose threads have exited.
void check_mbarriers_at_exit(Block& block);

}  // namespace tsim
