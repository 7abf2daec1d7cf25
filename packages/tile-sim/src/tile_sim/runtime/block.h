// The state of the blocks that one host thread is running.
#pragma once

#include <csetjmp>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "abi.h"
#include "actors.h"
#include "async_copy.h"
#include "barrier.h"
#include "bulk_store.h"
#include "clock.h"
#include "counters.h"
#include "engine.h"
#include "faults.h"
#include "fiber.h"
#include "flags.h"
#include "lds_load.h"
#include "mbarrier.h"
#include "observer.h"
#include "report.h"
#include "shared_shadow.h"
#include "tensor_memory.h"
#include "uniform.h"
#include "wgmma.h"

namespace tsim {

constexpr int MAX_THREADS = 1024;
constexpr int MAX_LANES = 64;

enum class State : uint8_t {
  READY, RUNNING, IN_WARP_OPERATION, AT_BARRIER, AT_MBARRIER, AT_PRODUCT, AT_CLUSTER,
  GATHERING, EXITED,
};

struct Thread {
  void* stack_pointer;
  uint32_t index[3];
  int id;             // in its block
  int who;            // for the clock
  int warp;
  int lane;
  State state;
  uint32_t line;      // of the operation that it waits in, or of its last access
  int barrier;        // that it waits at; of one in memory, the place
  uint64_t active;    // the answer to active_lanes
  CopyQueue copies;
  StoreQueue stores;
  Issued issued;
  uint32_t generation;       // of the cluster's barrier, at which it has arrived
  bool leaves;               // the kernel before its end
  bool has_arrived;          // and not waited yet
  bool has_waited;           // for earlier grids
  bool has_launched;         // later ones
  uint32_t tensor_line;      // of its latest use of tensor memory without a fence behind; or 0
  uint32_t met_line;         // where it met others, without a fence of tensor memory behind; or 0
  uint16_t started;          // blocks of the cluster of which it knows that they have
};

// A warp operation that some lanes have reached.
struct Rendezvous {
  uint64_t needed = 0;
  uint64_t arrived = 0;
  int operation = 0;
  uint32_t line = 0;
  void* arguments[MAX_LANES];
};

struct Warp {
  uint64_t lanes;        // that exist
  uint64_t alive;        // that have not exited
  uint64_t ready;
  uint64_t gathering;    // that asked which lanes are active
  // Lanes of a diverged warp may be in different operations at a time, with disjoint masks.
  Rendezvous rendezvous[4];
  LoadQueue loads;
  UniformValues uniforms;
};

struct Statistics {
  uint64_t switches = 0;
  uint64_t collectives = 0;
  uint64_t barriers = 0;
  uint64_t async_copies = 0;
  uint64_t shared_accesses = 0;
  uint64_t global_accesses = 0;
  uint64_t bulk_copies = 0;
  uint64_t products = 0;
};

struct Cluster;

struct ClusterBarrier {
  int arrived;
  uint32_t generation;       // how often it has opened
  Release released;
  Known completed;           // what those learn that wait for the latest opening
};

struct Block {
  const tsim_config* config;
  const tsim_kernel* kernel;
  void** arguments;
  Reports* reports;
  Cluster* cluster;

  int rank;                // in its cluster
  uint64_t number;         // linear index in the grid
  uint32_t index[3];
  int thread_count;
  int warp_count;
  int warp_size;
  uint32_t checks;

  std::vector<Thread> threads;
  std::vector<Warp> warps;
  uint32_t ready_warps;    // bit per warp
  int alive;
  bool has_used_global_atomics;

  unsigned char* arena;
  Clock& clock;            // of the cluster
  SharedShadow shadow;
  Barriers barriers;
  Mbarriers mbarriers;
  Agents agents;
  TensorMemory tensor;
  std::vector<Warpgroup> warpgroups;
  std::vector<Budget> budgets;
  // The latest access of others to its shared memory, by who it was; what its threads knew.
  std::unordered_map<uint32_t, Stamp> visits;
  Release ended;
  Counters counters;
  Statistics statistics;
  std::string output;

  explicit Block(Clock& clock) : clock(clock) {}
  bool checks_for(uint32_t bits) const { return (checks & bits) != 0; }
  uint32_t arena_offset(const void* address) const {
    return static_cast<uint32_t>(static_cast<const unsigned char*>(address) - arena);
  }
};

// Blocks that run together, on one host thread: one, unless the launch asks for clusters.
struct Cluster {
  const tsim_config* config;
  uint64_t number;         // linear index of the cluster
  std::vector<std::unique_ptr<Block>> blocks;
  int alive;               // blocks that have threads left
  bool is_abandoned;
  uint64_t random_state;
  uint64_t deadline;       // nanoseconds of the steady clock; 0 if none
  Text text;               // of the kernel
  void* host_stack;        // where the launch continues once the blocks are over
  sigjmp_buf escape;       // the same, from a signal
  std::unique_ptr<Stacks> stacks;

  unsigned char* arenas;   // of all blocks, one behind the other
  size_t arena_stride;
  Clock clock;
  Engine engine;
  Flags flags;
  uint64_t polls;          // of memory, since anything else has happened
  ClusterBarrier barrier;

  // The block whose shared memory an address lies in.
  Block& owner_of(const void* address) const {
    const size_t at = size_t(static_cast<const unsigned char*>(address) - arenas);
    return *blocks[at / arena_stride < blocks.size() ? at / arena_stride : 0];
  }
};

// What this host thread is running; null outside blocks. Every access of a kernel asks for them, so
// they are `__thread` (which needs no test whether they are initialised) and at a fixed distance
// from the thread's own memory. That kind of memory is scarce in a library that is loaded late:
// nothing but pointers.
extern __thread Block* current_block __attribute__((tls_model("initial-exec")));
extern __thread Thread* current_thread __attribute__((tls_model("initial-exec")));

inline uint64_t next_random(Block& block) {
  uint64_t& x = block.cluster->random_state;
  x ^= x << 13;
  x ^= x >> 7;
  x ^= x << 17;
  return x;
}

inline Stamp stamp_of(Block& block, const Thread& thread, uint32_t flags, uint32_t line) {
  return make_stamp(block.clock.time_of(thread.who), uint32_t(thread.who), flags, line);
}

void block_coordinates(const tsim_config& config, uint64_t number, uint32_t index[3]);
// The linear index of a block of a cluster.
uint64_t block_number(const tsim_config& config, uint64_t cluster, int rank);

}  // namespace tsim
