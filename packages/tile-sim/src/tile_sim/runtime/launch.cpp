// Launches: blocks spread over host threads, and what they found put together.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <sys/mman.h>

#include "abi.h"
#include "block.h"
#include "faults.h"
#include "global_shadow.h"
#include "scheduler.h"

namespace tsim {

void block_coordinates(const tsim_config& config, uint64_t number, uint32_t index[3]) {
  index[0] = uint32_t(number % config.grid[0]);
  index[1] = uint32_t(number / config.grid[0] % config.grid[1]);
  index[2] = uint32_t(number / config.grid[0] / config.grid[1]);
}

uint64_t block_number(const tsim_config& config, uint64_t cluster, int rank) {
  uint64_t number = 0, stride = 1;
  uint64_t inside = uint64_t(rank), outside = cluster;
  for (int axis = 0; axis < 3; ++axis) {
    const uint32_t extent = config.cluster[axis];
    const uint64_t clusters = config.grid[axis] / extent;
    number += (outside % clusters * extent + inside % extent) * stride;
    outside /= clusters;
    inside /= extent;
    stride *= config.grid[axis];
  }
  return number;
}

namespace {

constexpr uint32_t DEFAULT_REPORTS = 20;
constexpr uint32_t DEFAULT_STACK = 256 << 10;  // pages that nobody reaches take no memory
constexpr uint32_t MIN_STACK = 8192;

// A result and everything it points to.
struct OwnedResult {
  tsim_result result;        // first: its address is the handle
  std::vector<tsim_report> reports;
  std::vector<tsim_counter> counters;
  std::deque<std::string> strings;
  std::string output;
};

struct Launch {
  const tsim_kernel* kernel;
  void** arguments;
  tsim_config config;
  uint64_t clusters;
  uint64_t deadline;
  Reports reports;
  std::atomic<uint64_t> next_cluster{0};
  std::atomic<uint64_t> blocks_run{0};
  std::mutex mutex;          // of what follows
  Statistics statistics;
  std::map<uint64_t, LineCount> counts;
  std::map<uint64_t, std::string> output;   // by block

  Launch(const tsim_kernel* kernel, void** arguments, const tsim_config& config)
      : kernel(kernel), arguments(arguments), config(config), reports(config.max_reports) {}
};

int threads_of(const tsim_config& config) {
  return int(config.block[0] * config.block[1] * config.block[2]);
}

uint64_t blocks_of(const tsim_config& config) {
  return uint64_t(config.cluster[0]) * config.cluster[1] * config.cluster[2];
}

// What is wrong with a configuration; empty if it can be launched.
std::string refusal(const tsim_config& c, const tsim_kernel& kernel) {
  for (int axis = 0; axis < 3; ++axis) {
    if (!c.grid[axis]) return "a grid without blocks";
    if (!c.block[axis] || c.block[axis] > MAX_THREADS) return "a block's extent is not in 1..1024";
  }
  if (uint64_t(c.block[0]) * c.block[1] * c.block[2] > MAX_THREADS) {
    return "a block of more than 1024 threads";
  }
  if (c.warp_size != 32 && c.warp_size != 64) return "warps of neither 32 nor 64 threads";
  if (c.warp_size != kernel.warp_size) {
    return format("warps of %u threads, of a kernel compiled for %u", c.warp_size,
                  kernel.warp_size);
  }
  for (int axis = 0; axis < 3; ++axis) {
    if (c.grid[axis] % c.cluster[axis]) return "a grid that is no multiple of its clusters";
  }
  if (c.banks != 32 && c.banks != 64) return "shared memory of neither 32 nor 64 banks";
  if (c.sector_bytes > 128 || c.sector_bytes & (c.sector_bytes - 1)) {
    return "sectors whose size is no power of two up to 128";
  }
  if (!c.cooperative && blocks_of(c) > MAX_CLUSTER) return "a cluster of more than 16 blocks";
  const uint64_t actors = uint64_t(c.block[0]) * c.block[1] * c.block[2] + AGENTS;
  if (blocks_of(c) > MAX_BLOCKS || blocks_of(c) * actors > MAX_ACTORS) {
    return "more blocks and threads together than the emulator tells apart";
  }
  return "";
}

tsim_config with_defaults(tsim_config c) {
  if (!c.os_threads) c.os_threads = 1;
  if (!c.max_reports) c.max_reports = DEFAULT_REPORTS;
  if (!c.stack_bytes) c.stack_bytes = DEFAULT_STACK;
  c.stack_bytes = std::max(c.stack_bytes, MIN_STACK);
  if (c.cooperative) std::memcpy(c.cluster, c.grid, sizeof c.cluster);
  for (uint32_t& extent : c.cluster) extent = std::max(extent, 1u);
  if (!c.banks) c.banks = 32;
  if (!c.sector_bytes) c.sector_bytes = 32;
  if (!c.resident) c.resident = 1;
  return c;
}

// Whole pages, and never none.
size_t arena_size(const tsim_config& config) {
  return (size_t(config.shared_bytes) + 8191) & ~size_t(4095);
}

// One host thread's place to run a block in.
std::unique_ptr<Block> make_block(Launch& launch, Cluster& cluster, int rank) {
  auto owned = std::make_unique<Block>(cluster.clock);
  Block& block = *owned;
  const tsim_config& config = launch.config;
  block.config = &config;
  block.kernel = launch.kernel;
  block.arguments = launch.arguments;
  block.reports = &launch.reports;
  block.cluster = &cluster;
  block.rank = rank;
  block.checks = config.checks;
  block.thread_count = threads_of(config);
  block.warp_size = int(config.warp_size);
  block.warp_count = (block.thread_count + block.warp_size - 1) / block.warp_size;
  block.threads.resize(size_t(block.thread_count));
  block.warps.resize(size_t(block.warp_count));
  block.warpgroups =
      std::vector<Warpgroup>(size_t((block.thread_count + WARPGROUP - 1) / WARPGROUP));
  block.budgets.resize(block.warpgroups.size());
  for (int t = 0; t < block.thread_count; ++t) {
    Thread& thread = block.threads[size_t(t)];
    thread.id = t;
    thread.warp = t / block.warp_size;
    thread.lane = t % block.warp_size;
    thread.index[0] = uint32_t(t) % config.block[0];
    thread.index[1] = uint32_t(t) / config.block[0] % config.block[1];
    thread.index[2] = uint32_t(t) / config.block[0] / config.block[1];
  }
  block.arena = cluster.arenas + size_t(rank) * cluster.arena_stride;
  if (block.checks_for(CHECKS_OF_SHADOW)) block.shadow.configure(config.shared_bytes);
  block.counters.configure(block.warp_count, config);
  return owned;
}

std::unique_ptr<Cluster> make_cluster(Launch& launch) {
  auto owned = std::make_unique<Cluster>();
  Cluster& cluster = *owned;
  const tsim_config& config = launch.config;
  const int blocks = int(blocks_of(config));
  cluster.config = &config;
  cluster.deadline = launch.deadline;
  cluster.text = text_of(*launch.kernel);
  cluster.stacks = Stacks::take(blocks * threads_of(config), config.stack_bytes);
  // Pages of their own: an access far outside is a fault, not somebody else's memory.
  cluster.arena_stride = arena_size(config);
  void* arenas = mmap(nullptr, size_t(blocks) * cluster.arena_stride, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (arenas == MAP_FAILED) throw std::bad_alloc();
  cluster.arenas = static_cast<unsigned char*>(arenas);
  for (int rank = 0; rank < blocks; ++rank) {
    cluster.blocks.push_back(make_block(launch, cluster, rank));
  }
  return owned;
}

uint64_t lanes_of(const Block& block, int warp) {
  const int count = std::min(block.warp_size, block.thread_count - warp * block.warp_size);
  return count == 64 ? ~0ull : (1ull << count) - 1;
}

void start_block(Block& block) {
  const tsim_config& config = *block.config;
  block.number = block_number(config, block.cluster->number, block.rank);
  block_coordinates(config, block.number, block.index);
  block.alive = block.thread_count;
  block.has_used_global_atomics = false;
  block.ready_warps = 0;
  for (int w = 0; w < block.warp_count; ++w) {
    Warp& warp = block.warps[size_t(w)];
    warp.lanes = warp.alive = lanes_of(block, w);
    warp.ready = warp.gathering = 0;
    for (Rendezvous& r : warp.rendezvous) r.arrived = 0;
    warp.loads.start();
    warp.uniforms.forget();
    make_ready(block, w, warp.lanes);
  }
  for (Thread& thread : block.threads) {
    thread.who = block.clock.thread(block.rank, thread.id);
    thread.copies.start();
    thread.stores.start();
    thread.issued.start();
    thread.leaves = thread.has_arrived = thread.has_waited = thread.has_launched = false;
    thread.started = 0;
    thread.tensor_line = thread.met_line = 0;
  }
  block.barriers.start();
  block.agents.start();
  block.mbarriers.start();
  block.tensor.start();
  block.visits.clear();
  block.ended = Release();
  for (Warpgroup& group : block.warpgroups) group.start();
  for (Budget& budget : block.budgets) budget = Budget();
  if (block.checks_for(CHECKS_OF_SHADOW)) block.shadow.start();
  std::memset(block.arena, 0xff, config.shared_bytes);   // NaN in all floats
}

void run_cluster(Cluster& cluster, uint64_t number) {
  cluster.number = number;
  cluster.alive = int(cluster.blocks.size());
  cluster.is_abandoned = false;
  // Any odd constants would do; clusters must differ, and the state must not be zero.
  cluster.random_state = ((cluster.config->seed + 1) * 0x9e3779b97f4a7c15ull ^
                          (number + 1) * 0xbf58476d1ce4e5b9ull) | 1;
  cluster.clock.start(int(cluster.blocks.size()), threads_of(*cluster.config));
  cluster.engine.start();
  cluster.flags.start();
  cluster.polls = 0;
  cluster.barrier = ClusterBarrier{};
  for (auto& block : cluster.blocks) start_block(*block);
  run_threads(cluster);
  for (auto& block : cluster.blocks) block->counters.flush(*block);
  current_block = nullptr;
}

void add(Statistics& to, const Statistics& from) {
  to.switches += from.switches;
  to.collectives += from.collectives;
  to.barriers += from.barriers;
  to.async_copies += from.async_copies;
  to.shared_accesses += from.shared_accesses;
  to.global_accesses += from.global_accesses;
  to.bulk_copies += from.bulk_copies;
  to.products += from.products;
}

void collect_from(Launch& launch, const Block& block) {
  add(launch.statistics, block.statistics);
  for (const auto& [key, count] : block.counters.totals()) {
    LineCount& total = launch.counts[key];
    total.requests += count.requests;
    total.bytes += count.bytes;
    total.taken += count.taken;
    total.ideal += count.ideal;
  }
}

// What each host thread does: clusters, until there are none, or enough has been found.
void work(Launch& launch) {
  SignalStack signal_stack;
  Worker worker(launch.config.stop);
  std::unique_ptr<Cluster> cluster = make_cluster(launch);
  while (!launch.reports.is_full() && !launch.reports.is_flooded() &&
         !is_stopped(launch.config)) {
    const uint64_t number = launch.next_cluster++;
    if (number >= launch.clusters) break;
    run_cluster(*cluster, number);
    launch.blocks_run += cluster->blocks.size();
    for (auto& block : cluster->blocks) {
      if (block->output.empty()) continue;
      std::lock_guard<std::mutex> lock(launch.mutex);
      launch.output[block->number].swap(block->output);
      block->output.clear();
    }
  }
  munmap(cluster->arenas, cluster->blocks.size() * cluster->arena_stride);
  Stacks::give_back(std::move(cluster->stacks));
  std::lock_guard<std::mutex> lock(launch.mutex);
  for (const auto& block : cluster->blocks) collect_from(launch, *block);
}

void run_all(Launch& launch) {
  GlobalShadows shadows(*launch.kernel, launch.arguments,
                        (launch.config.checks & TSIM_CHECK_RACE) != 0);
  FaultHandler faults;
  std::vector<std::thread> others;
  const uint64_t workers = std::min<uint64_t>(launch.config.os_threads, launch.clusters);
  for (uint64_t i = 1; i < workers; ++i) others.emplace_back(work, std::ref(launch));
  work(launch);
  for (std::thread& thread : others) thread.join();
}

tsim_counter counter_of(uint64_t packed, const LineCount& count) {
  const CountKey key = CountKey::unpack(packed);
  tsim_counter c{};
  c.line = key.line;
  c.space = key.space;
  c.is_write = key.is_write;
  c.bytes_per_lane = key.bytes;
  c.requests = count.requests;
  c.bytes = count.bytes;
  const bool has_transactions = key.space == TSIM_SHARED || key.space == TSIM_OPERANDS;
  (has_transactions ? c.transactions : c.sectors) = count.taken;
  (has_transactions ? c.ideal_transactions : c.ideal_sectors) = count.ideal;
  return c;
}

void collect(Launch& launch, OwnedResult& owned) {
  tsim_result& r = owned.result;
  launch.reports.write_to(owned.reports, owned.strings, r.total_findings);
  for (const auto& [key, count] : launch.counts) owned.counters.push_back(counter_of(key, count));
  std::sort(owned.counters.begin(), owned.counters.end(),
            [](const tsim_counter& x, const tsim_counter& y) {
              return x.line != y.line ? x.line < y.line : x.space < y.space;
            });
  for (const auto& [block, text] : launch.output) owned.output += text;
  r.report_count = owned.reports.size();
  r.reports = owned.reports.data();
  r.counter_count = owned.counters.size();
  r.counters = owned.counters.data();
  r.output_bytes = owned.output.size();
  r.output = owned.output.c_str();
  r.blocks_run = launch.blocks_run;
  r.switches = launch.statistics.switches;
  r.collectives = launch.statistics.collectives;
  r.barriers = launch.statistics.barriers;
  r.async_copies = launch.statistics.async_copies;
  r.shared_accesses = launch.statistics.shared_accesses;
  r.global_accesses = launch.statistics.global_accesses;
  r.bulk_copies = launch.statistics.bulk_copies;
  r.products = launch.statistics.products;
}

uint64_t nanoseconds_now() {
  const auto now = std::chrono::steady_clock::now().time_since_epoch();
  return uint64_t(std::chrono::nanoseconds(now).count());
}

}  // namespace
}  // namespace tsim

using namespace tsim;

extern "C" {

uint32_t tsim_abi_version(void) { return TSIM_ABI_VERSION; }

tsim_result* tsim_launch(const tsim_kernel* kernel, void** arguments, const tsim_config* config) {
  auto* owned = new OwnedResult();
  Launch launch(kernel, arguments, with_defaults(*config));
  const uint64_t start = nanoseconds_now();
  launch.deadline = config->time_limit_ms ? start + config->time_limit_ms * 1000000ull : 0;
  const std::string problem = refusal(launch.config, *kernel);
  if (problem.empty()) {
    launch.clusters = uint64_t(config->grid[0]) * config->grid[1] * config->grid[2] /
                      blocks_of(launch.config);
    run_all(launch);
  } else {
    Finding finding;
    finding.kind = TSIM_INVALID;
    const uint32_t nowhere[3] = {0, 0, 0};
    launch.reports.add(finding, nowhere, nowhere, problem);
  }
  collect(launch, *owned);
  owned->result.seconds = double(nanoseconds_now() - start) * 1e-9;
  return &owned->result;
}

void tsim_free_result(tsim_result* result) { delete reinterpret_cast<OwnedResult*>(result); }

}  // extern "C"
