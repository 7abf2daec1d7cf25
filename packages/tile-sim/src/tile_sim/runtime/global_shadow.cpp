#include "global_shadow.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>

#include "block.h"

namespace tsim {

namespace {

constexpr auto relaxed = std::memory_order_relaxed;

uint64_t who_of(uint32_t cluster, Stamp stamp) {
  return uint64_t(cluster) << 32 | stamp_who(stamp);
}

}  // namespace

struct GlobalShadow::Request {
  Block& block;
  const Observer& by;
  const tsim_global& place;
  uint64_t offset;
  uint32_t bytes;
  Access access;
  const unsigned char* value;
  Stamp stamp;
  uint32_t mark;          // of the cluster: number + 1
};

GlobalShadow::GlobalShadow(const void* begin, uint64_t bytes, uint32_t element_bytes)
    : begin_(reinterpret_cast<uintptr_t>(begin)), bytes_(bytes),
      grain_(element_bytes >= 4 ? 4 : element_bytes) {
  mapped_ = std::max<size_t>((bytes + grain_ - 1) / grain_ * sizeof(Cell), 1);
  // Zero pages, mapped when they are touched: an all-zero cell is one without history.
  void* memory = mmap(nullptr, mapped_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  cells_ = static_cast<Cell*>(memory);
}

GlobalShadow::~GlobalShadow() { munmap(static_cast<void*>(cells_), mapped_); }

void GlobalShadow::access(Block& block, const Observer& by, const tsim_global& place,
                          uint32_t bytes, Access access, const void* value, Stamp stamp) {
  const uint64_t offset = reinterpret_cast<uintptr_t>(place.address) - begin_;
  if (offset >= bytes_ || bytes > bytes_ - offset) return;     // the bounds check is off
  if (offset % grain_ || bytes % grain_) return;               // a view in smaller elements
  const Request request{block, by, place, offset, bytes, access,
                        static_cast<const unsigned char*>(value), stamp,
                        static_cast<uint32_t>(block.cluster->number) + 1};
  if (access == Access::ATOMIC) block.has_used_global_atomics = true;
  for (uint64_t number = offset / grain_; number < (offset + bytes) / grain_; ++number) {
    if (is_half(access) || !halves_.empty()) {
      if (check_halves(request, number)) continue;
    }
    // Whose order with stores of whole bytes matters alike: it is after what they left.
    if (access == Access::READ || is_half(access)) check_read(request, cells_[number], number);
    else check_write(request, cells_[number], number);
  }
}

void GlobalShadow::check_read(const Request& request, Cell& cell, uint64_t number) {
  const uint32_t writer = cell.write_cluster.load(relaxed) & ~BUSY;
  if (writer) {
    const Rival rival = unknown_write(request, cell, number, writer);
    if (rival.cluster && !has_stored(request, cell, number, writer)) {
      report_race(request, rival, "write", number);
    }
  }
  const uint32_t reader = cell.read_cluster.load(relaxed);
  cell.read.store(request.stamp, relaxed);
  if (reader == 0) cell.read_cluster.store(request.mark, relaxed);
  else if (reader != request.mark && reader != MANY) cell.read_cluster.store(MANY, relaxed);
}

// Compares with stores of half a byte; whether there is a race, which has been reported.
bool GlobalShadow::check_halves(const Request& request, uint64_t number) {
  const auto is_ordered = [&](const HalfBytes::Store& store) {
    return store.cluster == request.mark ? request.by.knows(store.stamp)
                                         : request.block.has_used_global_atomics;
  };
  HalfBytes::Store rival;
  if (is_half(request.access)) {
    const HalfBytes::Store mine{request.stamp, request.mark, *request.value};
    rival = halves_.store(number, request.access == Access::HIGH_HALF, mine, is_ordered);
  } else if (request.access == Access::READ) {
    rival = halves_.read(number, is_ordered);
  } else {
    rival = halves_.write(number, is_ordered);
  }
  if (rival.stamp) report_race(request, {rival.stamp, rival.cluster}, "write", number);
  return rival.stamp != 0;
}

void GlobalShadow::check_write(const Request& request, Cell& cell, uint64_t number) {
  uint32_t writer = cell.write_cluster.load(relaxed);
  do {
    while (writer & BUSY) writer = cell.write_cluster.load(relaxed);
  } while (!cell.write_cluster.compare_exchange_weak(writer, writer | BUSY,
                                                     std::memory_order_acquire));
  Rivals rivals;
  const uint32_t after = write_in_turn(request, cell, number, writer, rivals);
  cell.write_cluster.store(after, std::memory_order_release);
  // A report may give the block up, so nothing is held by now.
  if (rivals.writer.cluster) report_race(request, rivals.writer, "write", number);
  if (rivals.reader.cluster) report_race(request, rivals.reader, "read", number);
}

// Compares with earlier accesses and remembers this one; returns whose write is the last now.
uint32_t GlobalShadow::write_in_turn(const Request& request, Cell& cell, uint64_t number,
                                     uint32_t writer, Rivals& rivals) {
  if (writer) {
    const Rival rival = unknown_write(request, cell, number, writer);
    if (rival.cluster && is_same_store(request, cell, number)) {
      const std::lock_guard<std::mutex> lock(joint_mutex_);
      joint_[number][who_of(request.mark, request.stamp)] = request.stamp;
      cell.is_joint.store(1, relaxed);
      return writer;
    }
    const bool both_atomic =
        request.access == Access::ATOMIC && (stamp_flags(rival.stamp) & STAMP_ATOMIC);
    if (!both_atomic) rivals.writer = rival;
  }
  if (const uint32_t reader = cell.read_cluster.load(relaxed)) {
    const Stamp read = cell.read.load(relaxed);
    const bool is_ordered = reader == request.mark ? request.by.knows(read)
                                                   : request.block.has_used_global_atomics;
    if (!is_ordered) rivals.reader = {read, reader};
    cell.read_cluster.store(0, relaxed);
  }
  if (cell.is_joint.load(relaxed)) {
    const std::lock_guard<std::mutex> lock(joint_mutex_);
    joint_.erase(number);
    cell.is_joint.store(0, relaxed);
  }
  cell.write.store(request.stamp, relaxed);
  cell.value.store(value_at(request, number), relaxed);
  return request.mark;
}

// A write, of those that stored what is there, that does not come before the request.
GlobalShadow::Rival GlobalShadow::unknown_write(const Request& request, const Cell& cell,
                                                uint64_t number, uint32_t writer) {
  const auto is_ordered = [&](uint32_t cluster, Stamp write) {
    return cluster == request.mark ? request.by.knows(write)
                                   : request.block.has_used_global_atomics;
  };
  const Stamp last = cell.write.load(relaxed);
  if (!is_ordered(writer, last)) return {last, writer};
  if (!cell.is_joint.load(relaxed)) return {0, 0};
  const std::lock_guard<std::mutex> lock(joint_mutex_);
  for (const auto& [who, write] : joint_[number]) {
    const uint32_t cluster = uint32_t(who >> 32);
    if (!is_ordered(cluster, write)) return {write, cluster};
  }
  return {0, 0};
}

// Whether it is a value that the reader has stored itself.
bool GlobalShadow::has_stored(const Request& request, const Cell& cell, uint64_t number,
                              uint32_t writer) {
  const uint64_t me = who_of(request.mark, request.stamp);
  if (who_of(writer, cell.write.load(relaxed)) == me) return true;
  if (!cell.is_joint.load(relaxed)) return false;
  const std::lock_guard<std::mutex> lock(joint_mutex_);
  const auto found = joint_.find(number);
  return found != joint_.end() && found->second.count(me);
}

// Threads, or blocks, that hold copies of one value store it: the same line, the same bytes. No
// reader can tell which of them was last, or that there was more than one.
bool GlobalShadow::is_same_store(const Request& request, const Cell& cell, uint64_t number) const {
  if (!request.value || stamp_line(cell.write.load(relaxed)) != stamp_line(request.stamp)) {
    return false;
  }
  return cell.value.load(relaxed) == value_at(request, number);
}

uint32_t GlobalShadow::value_at(const Request& request, uint64_t number) const {
  uint32_t value = 0;
  if (request.value) {
    std::memcpy(&value, request.value + (number * grain_ - request.offset), grain_);
  }
  return value;
}

void GlobalShadow::report_race(const Request& request, Rival rival, const char* earlier_access,
                               uint64_t number) const {
  const auto [earlier, earlier_mark] = rival;
  Finding finding;
  finding.kind = TSIM_DATA_RACE;
  finding.space = TSIM_GLOBAL;
  finding.line = stamp_line(request.stamp);
  finding.other_line = stamp_line(earlier);
  blame(finding, request.stamp);
  finding.offset = begin_ + number * grain_ -
                   reinterpret_cast<uintptr_t>(request.place.buffer->data);
  finding.bytes = request.bytes;
  finding.buffer = request.place.buffer->name;
  finding.buffer_bytes = request.place.buffer->bytes;
  const std::string name = finding.buffer ? format(" '%s'", finding.buffer) : "";
  std::string who = earlier_mark == MANY ? "several blocks" : "another block";
  if (earlier_mark == request.mark) {
    blame_other(finding, earlier);
    who = issuer_of(earlier);
    if (is_own_engine(earlier, request.stamp)) finding.kind = TSIM_MISSING_WAIT;
  } else if (earlier_mark != MANY) {
    const Clock& clock = request.block.clock;
    const int who_then = int(stamp_who(earlier));
    finding.other_thread = clock.is_agent(who_then) ? -1 : clock.thread_of(who_then);
    finding.other_block = block_number(*request.block.config, earlier_mark - 1,
                                       clock.rank_of(who_then));
  }
  report(finding, format("%s at byte %llu of global buffer%s by %s is not ordered with "
                         "the %s by %s at line %u",
                         name_of(request.access), (unsigned long long)finding.offset, name.c_str(),
                         issuer_of(request.stamp).c_str(), earlier_access, who.c_str(),
                         finding.other_line));
}

GlobalShadows::GlobalShadows(const tsim_kernel& kernel, void** arguments, bool is_checked) {
  for (uint32_t i = 0; i < kernel.parameter_count; ++i) {
    if (kernel.parameters[i].kind == TSIM_SCALAR) continue;
    auto* buffer = static_cast<tsim_buffer*>(arguments[i]);
    bool is_written = kernel.parameters[i].kind == TSIM_READ_WRITE;
    uint32_t element_bytes = kernel.parameters[i].bytes;
    if (kernel.parameters[i].kind == TSIM_TENSOR_MAP) {
      auto* map = static_cast<tsim_tensor_map*>(arguments[i]);
      buffer = &map->buffer;
      is_written = map->is_written != 0;
      element_bytes = map->element_bytes;
    }
    buffer->shadow = nullptr;
    buffers_.push_back(buffer);
    if (!is_checked || !is_written || !buffer->bytes) continue;
    const auto begin = reinterpret_cast<uintptr_t>(buffer->data);
    bool is_known = false;   // a tensor that is passed by address and in maps, too
    for (auto& shadow : shadows_) {
      is_known |= shadow->begin() <= begin && begin + buffer->bytes <= shadow->end();
    }
    if (is_known) continue;
    shadows_.push_back(
        std::make_unique<GlobalShadow>(buffer->data, buffer->bytes, element_bytes));
  }
  // A buffer that overlaps one that is written, in place or as a part of it, shares its shadow.
  for (tsim_buffer* buffer : buffers_) {
    const auto begin = reinterpret_cast<uintptr_t>(buffer->data);
    for (auto& shadow : shadows_) {
      if (begin < shadow->end() && shadow->begin() < begin + buffer->bytes) {
        buffer->shadow = shadow.get();
        break;
      }
    }
  }
}

GlobalShadows::~GlobalShadows() {
  for (tsim_buffer* buffer : buffers_) buffer->shadow = nullptr;
}

}  // namespace tsim
