#include "report.h"

#include <cstdarg>
#include <cstdio>
#include <cstring>

#include "block.h"
#include "scheduler.h"

namespace tsim {

std::string format(const char* pattern, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, pattern);
  vsnprintf(text, sizeof text, pattern, arguments);
  va_end(arguments);
  return text;
}

static void mark_thread(tsim_report& record, int thread) {
  constexpr int MOST = int(8 * sizeof record.threads);
  if (thread >= 0 && thread < MOST) record.threads[thread / 64] |= uint64_t{1} << (thread % 64);
}

void Reports::add(const Finding& f, const uint32_t block[3], const uint32_t other_block[3],
                  const std::string& message) {
  std::lock_guard<std::mutex> lock(mutex_);
  ++total_;
  for (Entry& entry : entries_) {
    tsim_report& known = entry.record;
    if (known.kind == f.kind && known.line == f.line && known.other_line == f.other_line &&
        known.space == f.space) {
      ++known.count;
      if (!std::memcmp(known.block, block, sizeof known.block)) mark_thread(known, f.thread);
      return;
    }
  }
  Entry entry;
  tsim_report& r = entry.record;
  std::memset(&r, 0, sizeof r);
  r.kind = f.kind;
  r.space = f.space;
  r.line = f.line;
  r.other_line = f.other_line;
  r.thread = f.thread;
  r.other_thread = f.other_thread;
  r.actor = f.actor;
  r.other_actor = f.other_actor;
  std::memcpy(r.block, block, sizeof r.block);
  std::memcpy(r.other_block, other_block, sizeof r.other_block);
  mark_thread(r, f.thread);
  r.count = 1;
  r.offset = f.offset;
  r.bytes = f.bytes;
  r.buffer_start = f.buffer_start;
  r.buffer_bytes = f.buffer_bytes;
  if (f.buffer) entry.buffer = f.buffer;
  entry.message = message;
  entries_.push_back(std::move(entry));
  if (entries_.size() >= max_reports_) full_ = true;
}

void Reports::write_to(std::vector<tsim_report>& records, std::deque<std::string>& storage,
                       uint64_t& total) const {
  total = 0;
  for (const Entry& entry : entries_) {
    tsim_report r = entry.record;
    total += r.count;
    storage.push_back(entry.message);
    r.message = storage.back().c_str();
    if (!entry.buffer.empty()) {
      storage.push_back(entry.buffer);
      r.buffer = storage.back().c_str();
    }
    records.push_back(r);
  }
}

Finding finding_at(uint32_t kind, uint32_t line) {
  Finding finding;
  finding.kind = kind;
  finding.line = line;
  return finding;
}

void report(Finding finding, const std::string& message) {
  Block& block = *current_block;
  if (finding.thread < 0 && current_thread) finding.thread = current_thread->id;
  const size_t rank = finding.rank < 0 ? size_t(block.rank) : size_t(finding.rank);
  const uint32_t* index = block.cluster->blocks[rank]->index;
  uint32_t other[3];
  std::memcpy(other, index, sizeof other);
  if (finding.other_block != ~0ull) block_coordinates(*block.config, finding.other_block, other);
  block.reports->add(finding, index, other, message);
  if (block.reports->is_flooded() && current_thread) abandon_block();
}

void report_and_abandon(const Finding& finding, const std::string& message) {
  report(finding, message);
  abandon_block();
}

void refuse(uint32_t line, const std::string& message) {
  report_and_abandon(finding_at(TSIM_INVALID, line), message);
}

}  // namespace tsim
