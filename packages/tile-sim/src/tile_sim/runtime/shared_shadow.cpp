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

void SharedShadow::configure(uint32_t arena_bytes) {
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
  halves_.clear();
  free_crowds_.clear();
  for (uint32_t i = 0; i < crowds_.size(); ++i) free_crowds_.push_back(i + 1);
}

namespace {

// Bits `first` to `end` of a chunk's sixteen.
uint16_t byte_mask(uint32_t first, uint32_t end) {
  return uint16_t(((1u << (end - first)) - 1) << first);
}

Finding shared_finding(const Block& block, uint32_t kind, uint32_t at, uint32_t bytes,
                       Stamp stamp) {
  Finding finding;
  finding.kind = kind;
  finding.space = TSIM_SHARED;
  finding.line = stamp_line(stamp);
  blame(finding, stamp);
  finding.offset = at;
  finding.bytes = bytes;
  finding.buffer_bytes = block.config->shared_bytes;
  return finding;
}

}  // namespace

void SharedShadow::access(Block& block, const Observer& by, uint32_t offset, uint32_t bytes,
                          Access access, const void* value, Stamp stamp) {
  walk({block, by, offset, bytes, access, false, static_cast<const unsigned char*>(value), stamp});
}

void SharedShadow::read_by_engine(Block& block, const Observer& by, uint32_t offset,
                                  uint32_t bytes, Stamp stamp) {
  walk({block, by, offset, bytes, Access::READ, true, nullptr, stamp});
}

void SharedShadow::walk(const Request& request) {
  const uint32_t offset = request.offset, end = offset + request.bytes;
  if (__builtin_expect(is_half(request.access) || !halves_.empty(), 0)) {
    if (check_halves(request)) return;
  }
  for (uint32_t chunk = offset / 16; chunk * 16 < end; ++chunk) {
    if (__builtin_expect(chunk >= chunk_count_, 0)) return;  // the bounds check is off
    touch(request, chunk, std::max(offset, chunk * 16) - chunk * 16,
          std::min(end, chunk * 16 + 16) - chunk * 16);
  }
}

// Compares with stores of half a byte; whether there is a race, which has been reported.
bool SharedShadow::check_halves(const Request& request) {
  if (!request.block.checks_for(TSIM_CHECK_RACE)) return false;
  const auto is_ordered = [&](const HalfBytes::Store& store) {
    return request.by.knows(store.stamp);
  };
  for (uint32_t at = request.offset; at < request.offset + request.bytes; ++at) {
    HalfBytes::Store rival;
    if (is_half(request.access)) {
      const HalfBytes::Store mine{request.stamp, 0, *request.value};
      rival = halves_.store(at, request.access == Access::HIGH_HALF, mine, is_ordered);
    } else if (request.access == Access::READ) {
      rival = halves_.read(at, is_ordered);
    } else {
      rival = halves_.write(at, is_ordered);
    }
    if (!rival.stamp) continue;
    report_race(request, rival.stamp, "write", at);
    return true;
  }
  return false;
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
  if (request.access == Access::WRITE || is_half(request.access)) {
    chunk.written |= mask;
  } else if (__builtin_expect((chunk.written & mask) != mask, 0)) {
    check_written(request, chunk, at, mask);
    if (request.access == Access::ATOMIC) chunk.written |= mask;
  }
  if (request.block.checks_for(TSIM_CHECK_RACE)) order(request, chunk, number, first, end);
}

void SharedShadow::check_pending(const Request& request, Chunk& chunk, uint32_t at, uint16_t mask) {
  if (chunk.kind == Pending::BARRIER) {
    check_barrier(request, chunk, at);
    return;
  }
  if (request.block.checks_for(TSIM_CHECK_WAIT)) {
    const Stamp pending = make_stamp(0, chunk.pending_who, 0, chunk.pending_line);
    Finding finding =
        shared_finding(request.block, TSIM_MISSING_WAIT, at, request.bytes, request.stamp);
    blame_other(finding, pending);
    finding.other_line = chunk.pending_line;
    report(finding,
           format("%s of %u bytes at byte %u of shared memory, while the asynchronous copy that "
                  "%s issued at line %u to it may still be on its way",
                  name_of(request.access), request.bytes, request.offset,
                  issuer_of(pending).c_str(), chunk.pending_line));
  }
  if (request.access != Access::READ) {
    chunk.pending &= uint16_t(~mask);
    chunk.written |= mask;
  }
}

void SharedShadow::check_barrier(const Request& request, const Chunk& chunk, uint32_t at) {
  const Stamp owner = make_stamp(0, chunk.pending_who, 0, chunk.pending_line);
  Finding finding = shared_finding(request.block, TSIM_PROTOCOL, at, request.bytes, request.stamp);
  blame_other(finding, owner);
  finding.other_line = chunk.pending_line;
  report(finding, format("%s of %u bytes at byte %u of shared memory, where there is an mbarrier "
                         "since line %u",
                         name_of(request.access), request.bytes, request.offset,
                         chunk.pending_line));
}

void SharedShadow::check_written(const Request& request, const Chunk& chunk, uint32_t at,
                                 uint16_t mask) {
  if (!request.block.checks_for(TSIM_CHECK_UNINIT)) return;
  const uint32_t byte = at / 16 * 16 + __builtin_ctz(uint16_t(mask & ~chunk.written));
  report(shared_finding(request.block, TSIM_UNINITIALISED, byte, request.bytes, request.stamp),
         format("%s of %u bytes at byte %u of shared memory, of which byte %u has not been "
                "written",
                name_of(request.access), request.bytes, request.offset, byte));
}

// Compares with earlier accesses to the same bytes, and remembers this one.
void SharedShadow::order(const Request& request, Chunk& chunk, uint32_t number, uint32_t first,
                         uint32_t end) {
  const bool is_whole = end - first == 16;
  if (is_whole && chunk.part_bytes == 16) {
    if (request.keeps()) read(request, chunk.whole, number * 16);
    else write(request, chunk.whole, number * 16, 16);
    return;
  }
  // The largest part that `first` and `end` are multiples of.
  const uint32_t fit = (first | end) & -(first | end);
  if (fit < chunk.part_bytes) split(chunk, number, uint8_t(fit));
  const uint32_t size = chunk.part_bytes;
  for (uint32_t at = first; at < end; at += size) {
    History& part = parts(number)[at / size];
    if (request.keeps()) read(request, part, number * 16 + at);
    else write(request, part, number * 16 + at, size);
  }
  if (!is_whole || request.keeps()) return;
  for (uint32_t i = 0; i < 16 / size; ++i) {
    leave_crowd(parts(number)[i].crowd);
    if (i) leave_crowd(parts(number)[i].writers);
  }
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
    // The first of the smaller parts keeps the crowds; the others get copies.
    if (i % factor) {
      copy_crowd(part[i].crowd);
      copy_crowd(part[i].writers);
    }
  }
  chunk.part_bytes = part_bytes;
}

void SharedShadow::read(const Request& request, History& history, uint32_t at) {
  const Observer& by = request.by;
  if (history.write) {
    if (const Stamp rival = unknown_write(request, history); __builtin_expect(rival != 0, 0)) {
      if (!has_stored(request, history)) report_race(request, rival, "write", at);
    } else if (request.is_engine && !(stamp_flags(history.write) & STAMP_PROXY)) {
      check_fence(request, history, at);
    }
  }
  for (Stamp& earlier : history.reads) {
    // A read that comes before this one need not be remembered: what comes after this one
    // comes after both.
    if (!earlier || by.knows(earlier)) {
      earlier = request.stamp;
      return;
    }
  }
  join_crowd(request, history.crowd);
}

// Engines go past what threads have at hand: a write reaches them only through a fence.
void SharedShadow::check_fence(const Request& request, History& history, uint32_t at) {
  if (!request.by.sees_through_engines(history.write)) {
    Finding finding =
        shared_finding(request.block, TSIM_MISSING_FENCE, at, request.bytes, request.stamp);
    blame_other(finding, history.write);
    finding.other_line = stamp_line(history.write);
    report(finding, format("an engine reads byte %u of shared memory, which %s wrote at line %u "
                           "without fence_proxy_async behind it",
                           at, issuer_of(history.write).c_str(), stamp_line(history.write)));
  }
  history.write |= make_stamp(0, 0, STAMP_PROXY, 0);   // told, or known to be visible
}

// What an engine writes may overtake what threads have read and written, unless they fenced.
void SharedShadow::check_refill(const Request& request, const History& history, uint32_t at) {
  if (is_overtaken(request, history.write, "wrote", at)) return;
  for (Stamp earlier : history.reads) {
    if (is_overtaken(request, earlier, "read", at)) return;
  }
  if (!history.crowd) return;
  for (Stamp earlier : crowds_[history.crowd - 1]->by_who) {
    if (is_overtaken(request, earlier, "read", at)) return;
  }
}

bool SharedShadow::is_overtaken(const Request& request, Stamp earlier, const char* what,
                                uint32_t at) {
  const Observer& by = request.by;
  if (!earlier || stamp_flags(earlier) & STAMP_PROXY || !by.knows(earlier)) return false;
  if (by.sees_through_engines(earlier)) return false;
  Finding finding =
      shared_finding(request.block, TSIM_MISSING_FENCE, at, request.bytes, request.stamp);
  blame_other(finding, earlier);
  finding.other_line = stamp_line(earlier);
  report(finding, format("an engine overwrites byte %u of shared memory, which %s %s at line %u "
                         "without fence_proxy_async behind it",
                         at, issuer_of(earlier).c_str(), what, stamp_line(earlier)));
  return true;
}

uint32_t SharedShadow::take_crowd() {
  if (free_crowds_.empty()) {
    crowds_.push_back(std::make_unique<Crowd>());
    free_crowds_.push_back(uint32_t(crowds_.size()));
  }
  const uint32_t crowd = free_crowds_.back();
  free_crowds_.pop_back();
  return crowd;
}

void SharedShadow::join_crowd(const Request& request, uint32_t& number) {
  const Clock& clock = request.by.clock;
  if (!number) {
    number = take_crowd();
    Crowd& fresh = *crowds_[number - 1];
    fresh.by_who.assign(size_t(clock.everybody()), 0);
    fresh.has_others = false;
  }
  Crowd& crowd = *crowds_[number - 1];
  const int who = int(stamp_who(request.stamp));
  crowd.by_who[size_t(who)] = request.stamp;
  crowd.latest_time = stamp_time(request.stamp);
  crowd.has_others |= clock.is_agent(who) || clock.rank_of(who) != request.block.rank;
}

void SharedShadow::leave_crowd(uint32_t& number) {
  if (!number) return;
  free_crowds_.push_back(number);
  number = 0;
}

void SharedShadow::copy_crowd(uint32_t& number) {
  if (!number) return;
  const uint32_t source = number;
  number = take_crowd();
  *crowds_[number - 1] = *crowds_[source - 1];
}

// A write, of those that stored what is there, that does not come before the request; or 0.
Stamp SharedShadow::unknown_write(const Request& request, const History& history) const {
  if (!history.write) return 0;
  if (!request.by.knows(history.write)) return history.write;
  if (__builtin_expect(!history.writers, 1)) return 0;
  for (Stamp earlier : crowds_[history.writers - 1]->by_who) {
    if (earlier && !request.by.knows(earlier)) return earlier;
  }
  return 0;
}

// Whether it is a value that the reader has stored itself.
bool SharedShadow::has_stored(const Request& request, const History& history) const {
  const uint32_t who = stamp_who(request.stamp);
  if (request.is_engine) return false;
  if (stamp_who(history.write) == who) return true;
  return history.writers && crowds_[history.writers - 1]->by_who[who];
}

void SharedShadow::write(const Request& request, History& history, uint32_t at, uint32_t bytes) {
  const Observer& by = request.by;
  const bool is_atomic = request.access == Access::ATOMIC;
  if (request.is_engine) check_refill(request, history, at);
  if (const Stamp rival = unknown_write(request, history)) {
    if (is_same_store(request, rival, at, bytes)) {
      join_crowd(request, history.writers);
      return;
    }
    const bool both_atomic = is_atomic && (stamp_flags(rival) & STAMP_ATOMIC);
    if (!both_atomic) report_race(request, rival, "write", at);
  }
  for (Stamp earlier : history.reads) {
    if (__builtin_expect(earlier && !by.knows(earlier), 0)) {
      report_race(request, earlier, "read", at);
      break;
    }
  }
  if (history.crowd) {
    const Crowd& crowd = *crowds_[history.crowd - 1];
    const Clock& clock = by.clock;
    const bool is_old = !crowd.has_others && clock.is_below_floor(crowd.latest_time,
                                                                  request.block.rank);
    if (!is_old || clock.rank_of(by.who) != request.block.rank) {
      for (Stamp earlier : crowd.by_who) {
        if (!earlier || by.knows(earlier)) continue;
        report_race(request, earlier, "read", at);
        break;
      }
    }
    leave_crowd(history.crowd);
  }
  leave_crowd(history.writers);
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
  Finding finding =
      shared_finding(request.block, TSIM_DATA_RACE, at, request.bytes, request.stamp);
  blame_other(finding, earlier);
  finding.other_line = stamp_line(earlier);
  // Whoever started an engine has to wait for it; others must be told that it is done.
  if (is_own_engine(earlier, request.stamp)) finding.kind = TSIM_MISSING_WAIT;
  report(finding, format("%s at byte %u of shared memory by %s is not ordered with the %s "
                         "by %s at line %u",
                         name_of(request.access), at, issuer_of(request.stamp).c_str(),
                         earlier_access, issuer_of(earlier).c_str(), stamp_line(earlier)));
}

void SharedShadow::begin_copy(Block& block, const Observer& by, uint32_t offset, uint32_t bytes,
                              Stamp stamp, Pending kind) {
  walk({block, by, offset, bytes, Access::WRITE, kind == Pending::BULK_COPY, nullptr, stamp});
  for (uint32_t at = offset; at < offset + bytes; at = at / 16 * 16 + 16) {
    Chunk& chunk = chunks_[at / 16];
    if (chunk.pending && chunk.kind == Pending::BARRIER) continue;
    chunk.pending |= byte_mask(at % 16, std::min(at % 16 + offset + bytes - at, 16u));
    chunk.kind = kind;
    chunk.pending_who = uint16_t(stamp_who(stamp));
    chunk.pending_line = stamp_line(stamp);
  }
}

void SharedShadow::end_copy(uint32_t offset, uint32_t bytes, Stamp stamp) {
  const uint32_t end = offset + bytes;
  for (uint32_t at = offset; at < end; at = at / 16 * 16 + 16) {
    const uint32_t number = at / 16;
    const uint32_t first = at % 16, last = std::min(end - number * 16, 16u);
    Chunk& chunk = chunks_[number];
    const uint16_t mask = byte_mask(first, last);
    if (chunk.kind != Pending::BARRIER) chunk.pending &= uint16_t(~mask);
    chunk.written |= mask;
    if (chunk.part_bytes == 16) {
      if (mask == 0xffff) chunk.whole.write = stamp;
      continue;
    }
    const uint32_t size = chunk.part_bytes;
    for (uint32_t byte = first; byte < last; byte += size) {
      parts(number)[byte / size].write = stamp;
    }
  }
}

void SharedShadow::occupy(uint32_t offset, uint32_t bytes, Stamp stamp) {
  for (uint32_t at = offset; at < offset + bytes; at += 8) {
    Chunk& chunk = chunks_[at / 16];
    chunk.pending |= uint16_t(0xff << at % 16);
    chunk.written |= uint16_t(0xff << at % 16);
    chunk.kind = Pending::BARRIER;
    chunk.pending_who = uint16_t(stamp_who(stamp));
    chunk.pending_line = stamp_line(stamp);
  }
}

void SharedShadow::vacate(uint32_t offset, uint32_t bytes) {
  for (uint32_t at = offset; at < offset + bytes; at += 8) {
    chunks_[at / 16].pending &= uint16_t(~(0xff << at % 16));
  }
}

}  // namespace tsim
