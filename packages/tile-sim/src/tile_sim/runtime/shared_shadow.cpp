#include "shared_shadow.h"

#include <algorithm>
#include <cstring>
#include <new>

#include <sys/mman.h>

#include "block.h"

namespace tsim {

SharedShadow::~SharedShadow() {
  if (parts_) munmap(parts_, parts_bytes_);
}

void SharedShadow::configure(uint32_t arena_bytes, int threads) {
  threads_ = threads;
  chunk_count_ = (arena_bytes + 15) / 16;
  chunks_.reset(new Chunk[chunk_count_]);
  parts_bytes_ = std::max<size_t>(size_t(chunk_count_) * 16 * sizeof(History), 1);
  void* memory = mmap(nullptr, parts_bytes_, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) throw std::bad_alloc();
  parts_ = static_cast<History*>(memory);
}

void SharedShadow::start() {
  std::memset(static_cast<void*>(chunks_.get()), 0, chunk_count_ * sizeof(Chunk));
  for (uint32_t i = 0; i < chunk_count_; ++i) chunks_[i].part_bytes = 16;
  free_crowds_.clear();
  for (uint32_t i = 0; i < crowds_.size(); ++i) free_crowds_.push_back(i + 1);
}

namespace {

// Bits `first` to `end` of a chunk's sixteen.
uint16_t byte_mask(uint32_t first, uint32_t end) {
  return uint16_t(((1u << (end - first)) - 1) << first);
}

Finding shared_finding(uint32_t kind, uint32_t at, uint32_t bytes, Stamp stamp) {
  Finding finding;
  finding.kind = kind;
  finding.space = TSIM_SHARED;
  finding.line = stamp_line(stamp);
  finding.thread = int(stamp_thread(stamp));
  finding.offset = at;
  finding.bytes = bytes;
  finding.buffer_bytes = current_block->config->shared_bytes;
  return finding;
}

}  // namespace

void SharedShadow::access(Block& block, Thread& thread, uint32_t offset, uint32_t bytes,
                          Access access, const void* value, Stamp stamp) {
  const Request request{block, thread, offset,
                        bytes, access, static_cast<const unsigned char*>(value),
                        stamp};
  const uint32_t end = offset + bytes;
  for (uint32_t chunk = offset / 16; chunk * 16 < end; ++chunk) {
    if (__builtin_expect(chunk >= chunk_count_, 0)) return;  // the bounds check is off
    touch(request, chunk, std::max(offset, chunk * 16) - chunk * 16,
          std::min(end, chunk * 16 + 16) - chunk * 16);
  }
}

void SharedShadow::assume_written(uint32_t offset, uint32_t bytes) {
  const uint32_t end = std::min(offset + bytes, chunk_count_ * 16);
  for (uint32_t chunk = offset / 16; chunk * 16 < end; ++chunk) {
    const uint32_t first = std::max(offset, chunk * 16) - chunk * 16;
    chunks_[chunk].written |= byte_mask(first, std::min(end - chunk * 16, 16u));
  }
}

// Bytes `first` to `end` of one chunk.
void SharedShadow::touch(const Request& request, uint32_t number, uint32_t first, uint32_t end) {
  Chunk& chunk = chunks_[number];
  const uint16_t mask = byte_mask(first, end);
  const uint32_t at = number * 16 + first;
  if (__builtin_expect(chunk.pending & mask, 0)) {
    check_pending(request, chunk, at, mask);
    return;
  }
  if (request.access == Access::WRITE) {
    chunk.written |= mask;
  } else if (__builtin_expect((chunk.written & mask) != mask, 0)) {
    check_written(request, chunk, at, mask);
    if (request.access == Access::ATOMIC) chunk.written |= mask;
  }
  if (request.block.checks_for(TSIM_CHECK_RACE)) order(request, chunk, number, first, end);
}

void SharedShadow::check_pending(const Request& request, Chunk& chunk, uint32_t at, uint16_t mask) {
  if (request.block.checks_for(TSIM_CHECK_WAIT)) {
    Finding finding = shared_finding(TSIM_MISSING_WAIT, at, request.bytes, request.stamp);
    finding.other_line = chunk.pending_line;
    finding.other_thread = chunk.pending_thread;
    report(finding,
           format("%s of %u bytes at byte %u of shared memory, while the asynchronous copy that "
                  "thread %u issued at line %u to it may still be on its way",
                  name_of(request.access), request.bytes, request.offset, chunk.pending_thread,
                  chunk.pending_line));
  }
  if (request.access != Access::READ) {
    chunk.pending &= uint16_t(~mask);
    chunk.written |= mask;
  }
}

void SharedShadow::check_written(const Request& request, const Chunk& chunk, uint32_t at,
                                 uint16_t mask) {
  if (!request.block.checks_for(TSIM_CHECK_UNINIT)) return;
  const uint32_t byte = at / 16 * 16 + __builtin_ctz(uint16_t(mask & ~chunk.written));
  report(shared_finding(TSIM_UNINITIALISED, byte, request.bytes, request.stamp),
         format("%s of %u bytes at byte %u of shared memory, of which byte %u has not been "
                "written",
                name_of(request.access), request.bytes, request.offset, byte));
}

// Compares with earlier accesses to the same bytes, and remembers this one.
void SharedShadow::order(const Request& request, Chunk& chunk, uint32_t number, uint32_t first,
                         uint32_t end) {
  const bool is_whole = end - first == 16;
  if (is_whole && chunk.part_bytes == 16) {
    if (request.access == Access::READ) read(request, chunk.whole, number * 16);
    else write(request, chunk.whole, number * 16, 16);
    return;
  }
  // The largest part that `first` and `end` are multiples of.
  const uint32_t fit = (first | end) & -(first | end);
  if (fit < chunk.part_bytes) split(chunk, number, uint8_t(fit));
  const uint32_t size = chunk.part_bytes;
  for (uint32_t at = first; at < end; at += size) {
    History& part = parts(number)[at / size];
    if (request.access == Access::READ) read(request, part, number * 16 + at);
    else write(request, part, number * 16 + at, size);
  }
  if (!is_whole || request.access == Access::READ) return;
  for (uint32_t i = 0; i < 16 / size; ++i) leave_crowd(parts(number)[i]);
  chunk.whole = parts(number)[0];
  chunk.part_bytes = 16;
}

// Gives smaller parts the history of the larger ones.
void SharedShadow::split(Chunk& chunk, uint32_t number, uint8_t part_bytes) {
  History* part = parts(number);
  if (chunk.part_bytes == 16) part[0] = chunk.whole;
  const int factor = chunk.part_bytes / part_bytes;
  for (int i = 16 / part_bytes - 1; i >= 0; --i) {
    const History source = part[i / factor];
    part[i] = source;
    // The first of the smaller parts keeps the crowd; the others get copies.
    if (source.crowd && i % factor) {
      part[i].crowd = 0;
      if (free_crowds_.empty()) {
        crowds_.push_back(std::make_unique<Crowd>());
        free_crowds_.push_back(uint32_t(crowds_.size()));
      }
      part[i].crowd = free_crowds_.back();
      free_crowds_.pop_back();
      *crowds_[part[i].crowd - 1] = *crowds_[source.crowd - 1];
    }
  }
  chunk.part_bytes = part_bytes;
}

void SharedShadow::read(const Request& request, History& history, uint32_t at) {
  const BlockClock& clock = request.block.clock;
  const int me = request.thread.id;
  if (__builtin_expect(history.write && !clock.is_before(history.write, me), 0)) {
    report_race(request, history.write, "write", at);
  }
  for (Stamp& earlier : history.reads) {
    // A read that comes before this one need not be remembered: what comes after this one
    // comes after both.
    if (!earlier || clock.is_before(earlier, me)) {
      earlier = request.stamp;
      return;
    }
  }
  join_crowd(request, history);
}

void SharedShadow::join_crowd(const Request& request, History& history) {
  if (!history.crowd) {
    if (free_crowds_.empty()) {
      crowds_.push_back(std::make_unique<Crowd>());
      free_crowds_.push_back(uint32_t(crowds_.size()));
    }
    history.crowd = free_crowds_.back();
    free_crowds_.pop_back();
    Crowd& fresh = *crowds_[history.crowd - 1];
    fresh.of_thread.assign(size_t(threads_), 0);
  }
  Crowd& crowd = *crowds_[history.crowd - 1];
  crowd.of_thread[request.thread.id] = request.stamp;
  crowd.latest_time = stamp_time(request.stamp);
}

void SharedShadow::leave_crowd(History& history) {
  if (!history.crowd) return;
  free_crowds_.push_back(history.crowd);
  history.crowd = 0;
}

void SharedShadow::write(const Request& request, History& history, uint32_t at, uint32_t bytes) {
  const BlockClock& clock = request.block.clock;
  const int me = request.thread.id;
  const bool is_atomic = request.access == Access::ATOMIC;
  if (history.write && !clock.is_before(history.write, me)) {
    if (is_same_store(request, history.write, at, bytes)) return;
    const bool both_atomic = is_atomic && (stamp_flags(history.write) & STAMP_ATOMIC);
    if (!both_atomic) report_race(request, history.write, "write", at);
  }
  for (Stamp earlier : history.reads) {
    if (__builtin_expect(earlier && !clock.is_before(earlier, me), 0)) {
      report_race(request, earlier, "read", at);
      break;
    }
  }
  if (history.crowd) {
    const Crowd& crowd = *crowds_[history.crowd - 1];
    if (crowd.latest_time >= clock.everyone_since()) {
      for (Stamp earlier : crowd.of_thread) {
        if (!earlier || clock.is_before(earlier, me)) continue;
        report_race(request, earlier, "read", at);
        break;
      }
    }
    leave_crowd(history);
  }
  history.write = request.stamp;
  std::memset(history.reads, 0, sizeof history.reads);
}

// Threads that hold copies of one value store it together: the same line, the same bytes. No
// reader can tell which of them was last, or that there was more than one.
bool SharedShadow::is_same_store(const Request& request, Stamp earlier, uint32_t at,
                                 uint32_t bytes) const {
  if (!request.value || stamp_line(earlier) != stamp_line(request.stamp)) return false;
  return !std::memcmp(request.block.arena + at, request.value + (at - request.offset), bytes);
}

void SharedShadow::report_race(const Request& request, Stamp earlier, const char* earlier_access,
                               uint32_t at) {
  Finding finding = shared_finding(TSIM_DATA_RACE, at, request.bytes, request.stamp);
  finding.other_line = stamp_line(earlier);
  finding.other_thread = int(stamp_thread(earlier));
  report(finding, format("%s at byte %u of shared memory by thread %d is not ordered with the %s "
                         "by thread %u at line %u",
                         name_of(request.access), at, request.thread.id, earlier_access,
                         stamp_thread(earlier), stamp_line(earlier)));
}

void SharedShadow::begin_copy(Block& block, Thread& thread, uint32_t offset, uint32_t bytes,
                              Stamp stamp) {
  access(block, thread, offset, bytes, Access::WRITE, nullptr, stamp);
  for (uint32_t at = offset; at < offset + bytes; at = at / 16 * 16 + 16) {
    Chunk& chunk = chunks_[at / 16];
    chunk.pending |= byte_mask(at % 16, std::min(at % 16 + offset + bytes - at, 16u));
    chunk.pending_thread = uint16_t(thread.id);
    chunk.pending_line = stamp_line(stamp);
  }
}

void SharedShadow::end_copy(Block& block, Thread& thread, uint32_t offset, uint32_t bytes,
                            Stamp stamp) {
  for (uint32_t at = offset; at < offset + bytes; at = at / 16 * 16 + 16) {
    const uint16_t mask = byte_mask(at % 16, std::min(at % 16 + offset + bytes - at, 16u));
    chunks_[at / 16].pending &= uint16_t(~mask);
  }
  access(block, thread, offset, bytes, Access::WRITE, nullptr, stamp);
}

}  // namespace tsim
