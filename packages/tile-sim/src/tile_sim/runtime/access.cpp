#include "access.h"

#include "block.h"
#include "cluster.h"
#include "global_shadow.h"
#include "scheduler.h"

namespace tsim {

const char* name_of(Access access) {
  switch (access) {
    case Access::READ:
      return "a read";
    case Access::WRITE:
      return "a write";
    case Access::LOW_HALF:
    case Access::HIGH_HALF:
      return "a store of half a byte";
    default:
      return "an atomic operation";
  }
}

namespace {

// Whether [address, address + bytes) leaves [begin, begin + size).
bool leaves(uintptr_t address, uint32_t bytes, uintptr_t begin, uint64_t size) {
  const uint64_t offset = address - begin;  // huge if the address is below
  return offset > size || bytes > size - offset;
}

__attribute__((cold, noinline)) void report_outside(Finding finding, Access access) {
  finding.kind = TSIM_OUT_OF_BOUNDS;
  const char* where = finding.space == TSIM_SHARED ? "shared memory" : "global memory";
  const std::string name = finding.buffer ? format(" '%s'", finding.buffer) : "";
  report_and_abandon(
      finding, format("%s of %u bytes at byte %lld of a buffer%s of %llu bytes in %s",
                      name_of(access), unsigned(finding.bytes), (long long)finding.offset,
                      name.c_str(), (unsigned long long)finding.buffer_bytes, where));
}

__attribute__((cold, noinline)) void report_misaligned(Finding finding, Access access,
                                                       uint32_t alignment) {
  finding.kind = TSIM_MISALIGNED;
  const std::string text =
      format("%s of %u bytes at byte %lld of a buffer: the address is no multiple of %u",
             name_of(access), unsigned(finding.bytes), (long long)finding.offset, alignment);
  finding.bytes = alignment;
  report_and_abandon(finding, text);
}

Finding shared_finding(Block& block, const tsim_shared& place, uint32_t bytes, uint32_t line) {
  Finding finding;
  finding.space = TSIM_SHARED;
  finding.line = line;
  finding.offset = uint64_t(place.address - place.begin);
  finding.bytes = bytes;
  finding.buffer_start = block.cluster->owner_of(place.begin).arena_offset(place.begin);
  finding.buffer_bytes = uint64_t(place.end - place.begin);
  return finding;
}

Finding global_finding(const tsim_global& place, uint32_t bytes, uint32_t line) {
  Finding finding;
  finding.space = TSIM_GLOBAL;
  finding.line = line;
  finding.offset = uint64_t(place.address - static_cast<unsigned char*>(place.buffer->data));
  finding.bytes = bytes;
  finding.buffer_bytes = place.buffer->bytes;
  finding.buffer = place.buffer->name;
  return finding;
}

bool is_misaligned(const void* address, uint32_t bytes) {
  return (reinterpret_cast<uintptr_t>(address) & (bytes - 1)) != 0;
}

}  // namespace

void check_shared_place(Block& block, const tsim_shared& place, uint32_t bytes, Access access,
                        uint32_t line) {
  check_shared_range(block, place, bytes, bytes, access, line);
}

void check_global_place(Block& block, const tsim_global& place, uint32_t bytes, Access access,
                        uint32_t line) {
  check_global_range(block, place, bytes, bytes, access, line);
}

void check_shared_range(Block& block, const tsim_shared& place, uint32_t bytes,
                        uint32_t alignment, Access access, uint32_t line) {
  if (!block.checks_for(TSIM_CHECK_BOUNDS)) return;
  const uintptr_t address = reinterpret_cast<uintptr_t>(place.address);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(place.begin);
  if (__builtin_expect(leaves(address, bytes, begin, uint64_t(place.end - place.begin)), 0)) {
    report_outside(shared_finding(block, place, bytes, line), access);
  }
  if (__builtin_expect(is_misaligned(place.address, alignment), 0)) {
    report_misaligned(shared_finding(block, place, bytes, line), access, alignment);
  }
}

void check_global_range(Block& block, const tsim_global& place, uint32_t bytes,
                        uint32_t alignment, Access access, uint32_t line) {
  if (!block.checks_for(TSIM_CHECK_BOUNDS)) return;
  const uintptr_t address = reinterpret_cast<uintptr_t>(place.address);
  const uintptr_t begin = reinterpret_cast<uintptr_t>(place.buffer->data);
  if (__builtin_expect(leaves(address, bytes, begin, place.buffer->bytes), 0)) {
    report_outside(global_finding(place, bytes, line), access);
  }
  if (__builtin_expect(is_misaligned(place.address, alignment), 0)) {
    report_misaligned(global_finding(place, bytes, line), access, alignment);
  }
}

void record_shared(Block& block, Thread& thread, const tsim_shared& place, uint32_t bytes,
                   Access access, const void* value, uint32_t line) {
  ++block.statistics.shared_accesses;
  thread.line = line;
  uint32_t offset = block.arena_offset(place.address);
  Block* owner = &block;
  if (__builtin_expect(offset >= block.cluster->arena_stride, 0)) {
    owner = &reach_other(block, thread, place, line);
    offset = owner->arena_offset(place.address);
  }
  if (block.checks_for(CHECKS_OF_SHADOW)) {
    const uint32_t flags = access == Access::ATOMIC ? STAMP_ATOMIC : 0;
    const Stamp stamp = stamp_of(block, thread, flags, line);
    owner->shadow.access(*owner, {block.clock, thread.who}, offset, bytes, access, value, stamp);
  }
  if (block.checks_for(TSIM_COUNT_BANKS)) {
    block.counters.count(block, thread, TSIM_SHARED, access != Access::READ, offset, bytes, line);
  }
}

void record_global(Block& block, Thread& thread, const tsim_global& place, uint32_t bytes,
                   Access access, const void* value, uint32_t line) {
  ++block.statistics.global_accesses;
  thread.line = line;
  if (place.buffer->shadow) {
    const uint32_t flags = access == Access::ATOMIC ? STAMP_ATOMIC : 0;
    const Stamp stamp = stamp_of(block, thread, flags, line);
    static_cast<GlobalShadow*>(place.buffer->shadow)
        ->access(block, {block.clock, thread.who}, place, bytes, access, value, stamp);
  }
  if (block.checks_for(TSIM_COUNT_SECTORS)) {
    block.counters.count(block, thread, TSIM_GLOBAL, access != Access::READ,
                         reinterpret_cast<uintptr_t>(place.address), bytes, line);
  }
}

void record_global_range(Block& block, const Observer& by, const tsim_global& place,
                         uint32_t bytes, Access access, Stamp stamp) {
  if (!place.buffer->shadow) return;
  static_cast<GlobalShadow*>(place.buffer->shadow)
      ->access(block, by, place, bytes, access, nullptr, stamp);
}

void record_box(Block& block, const Observer& by, const Box& box, Access access, Stamp stamp) {
  const tsim_tensor_map& map = *box.map;
  const uint32_t step = map.element_strides[0], size = map.element_bytes;
  for_each_row(box, [&](const BoxRow& row) {
    if (row.first == row.end) return;
    const uint32_t count = row.end - row.first;
    tsim_global place{row.global, &map.buffer};
    const uint32_t reach = ((count - 1) * step + 1) * size;
    check_global_range(block, place, reach, 1, access, stamp_line(stamp));
    if (step == 1) {
      record_global_range(block, by, place, reach, access, stamp);
      return;
    }
    for (uint32_t i = 0; i < count; ++i, place.address += step * size) {
      record_global_range(block, by, place, size, access, stamp);
    }
  });
}

namespace {

constexpr uint64_t SECTOR_BYTES = 32;

uint64_t sectors_of(const void* address, uint32_t bytes) {
  const uint64_t first = reinterpret_cast<uintptr_t>(address) / SECTOR_BYTES;
  return (reinterpret_cast<uintptr_t>(address) + bytes - 1) / SECTOR_BYTES - first + 1;
}

}  // namespace

void count_box(Block& block, const Box& box, bool is_write, uint32_t line) {
  if (!block.checks_for(TSIM_COUNT_SECTORS)) return;
  LineCount cost;
  cost.requests = 1;
  const tsim_tensor_map& map = *box.map;
  for_each_row(box, [&](const BoxRow& row) {
    if (row.first == row.end) return;
    const uint32_t count = row.end - row.first;
    const uint32_t reach = ((count - 1) * map.element_strides[0] + 1) * map.element_bytes;
    cost.bytes += count * map.element_bytes;
    cost.taken += sectors_of(row.global, reach);
  });
  cost.ideal = (cost.bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
  block.counters.count({line, 0, TSIM_BOXES, is_write}, cost);
}

void count_row(Block& block, const void* address, uint32_t bytes, bool is_write, uint32_t line) {
  if (!block.checks_for(TSIM_COUNT_SECTORS)) return;
  LineCount cost;
  cost.requests = 1;
  cost.bytes = bytes;
  cost.taken = sectors_of(address, bytes);
  cost.ideal = (bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
  block.counters.count({line, 0, TSIM_BOXES, is_write}, cost);
}

Box make_box(const tsim_tensor_map& map, const int* at, int rank, uint32_t line) {
  if (uint32_t(rank) != map.rank) {
    Finding finding;
    finding.kind = TSIM_INVALID;
    finding.line = line;
    report_and_abandon(finding, format("a box at %d coordinates of a tensor map of %u", rank,
                                       map.rank));
  }
  Box box{&map, {}};
  for (int d = 0; d < rank; ++d) box.at[d] = at[d];
  return box;
}

}  // namespace tsim

using namespace tsim;

extern "C" {

unsigned char* tsim_shared_arena(unsigned offset, unsigned bytes, unsigned line) {
  Block& block = *current_block;
  const uint32_t arena_bytes = block.config->shared_bytes;
  if (offset > arena_bytes || bytes > arena_bytes - offset) {
    Finding finding;
    finding.kind = TSIM_INVALID;
    finding.space = TSIM_SHARED;
    finding.line = line;
    finding.offset = offset;
    finding.bytes = bytes;
    report_and_abandon(finding, format("a shared buffer of %u bytes from byte %u on, in a block "
                                       "launched with %u bytes of shared memory",
                                       bytes, offset, arena_bytes));
  }
  return block.arena + offset;
}

// A loop may wait for what another thread writes, without a barrier.
static void let_others_run(uint64_t accesses, uint32_t line) {
  constexpr uint64_t ACCESSES = uint64_t{1} << 16;
  if (__builtin_expect(accesses % ACCESSES == 0, 0)) yield_thread(line);
}

void tsim_read_shared(const tsim_shared* place, unsigned bytes, unsigned line) {
  Block& block = *current_block;
  check_shared_place(block, *place, bytes, Access::READ, line);
  record_shared(block, *current_thread, *place, bytes, Access::READ, nullptr, line);
  let_others_run(block.statistics.shared_accesses, line);
}

void tsim_write_shared(const tsim_shared* place, const void* value, unsigned bytes, unsigned line) {
  Block& block = *current_block;
  check_shared_place(block, *place, bytes, Access::WRITE, line);
  record_shared(block, *current_thread, *place, bytes, Access::WRITE, value, line);
}

void tsim_read_global(const tsim_global* place, unsigned bytes, unsigned line) {
  Block& block = *current_block;
  check_global_place(block, *place, bytes, Access::READ, line);
  record_global(block, *current_thread, *place, bytes, Access::READ, nullptr, line);
  let_others_run(block.statistics.global_accesses, line);
}

void tsim_write_global(const tsim_global* place, const void* value, unsigned bytes, unsigned line) {
  Block& block = *current_block;
  check_global_place(block, *place, bytes, Access::WRITE, line);
  record_global(block, *current_thread, *place, bytes, Access::WRITE, value, line);
}

void tsim_hand_over_shared(const tsim_shared* place) {
  Block& block = *current_block;
  if (place->address < place->begin || place->address >= place->end) return;
  const uint32_t bytes = uint32_t(place->end - place->address);
  if (block.checks_for(CHECKS_OF_SHADOW)) {
    block.shadow.assume_written(block.arena_offset(place->address), bytes);
  }
}

const tsim_buffer* tsim_unbounded_buffer(void) {
  static const tsim_buffer everything = {nullptr, ~0ull, nullptr, nullptr};
  return &everything;
}

int tsim_thread_index(int axis) { return static_cast<int>(current_thread->index[axis]); }
int tsim_block_index(int axis) { return static_cast<int>(current_block->index[axis]); }
int tsim_block_dim(int axis) { return static_cast<int>(current_block->config->block[axis]); }
int tsim_grid_dim(int axis) { return static_cast<int>(current_block->config->grid[axis]); }

}  // extern "C"
