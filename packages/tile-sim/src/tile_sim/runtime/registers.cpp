// Registers as operands of operations: inside their array, and written before they are read.
#include "registers.h"

#include "block.h"
#include "report.h"

namespace tsim {
namespace {

Finding register_finding(uint32_t kind, const tsim_registers& r, uint32_t bytes, uint32_t line) {
  Finding finding;
  finding.kind = kind;
  finding.space = TSIM_REGISTERS;
  finding.line = line;
  finding.offset = uint64_t(int64_t(r.offset / r.element_bytes));
  finding.bytes = bytes;
  finding.buffer_bytes = uint64_t(r.bytes / r.element_bytes);
  return finding;
}

void check_bounds(const tsim_registers& r, uint32_t bytes, uint32_t line) {
  if (r.offset >= 0 && r.offset <= r.bytes && bytes <= uint32_t(r.bytes - r.offset)) return;
  report_and_abandon(register_finding(TSIM_OUT_OF_BOUNDS, r, bytes, line),
                     format("an operation on %u registers from element %d on, of %d",
                            bytes / r.element_bytes, r.offset / r.element_bytes,
                            r.bytes / r.element_bytes));
}

// Whether all of some flags have the bits `mask`, or none of them has. Most are words of four.
bool have_all(const unsigned char* flags, uint32_t bytes, unsigned char mask) {
  const uint32_t masks = mask * 0x01010101u;
  uint32_t all = ~0u, i = 0;
  for (; i + 4 <= bytes; i += 4) {
    uint32_t word;
    __builtin_memcpy(&word, flags + i, 4);
    all &= word;
  }
  for (; i < bytes; ++i) all &= flags[i] | 0xffffff00u;
  return (all & masks) == masks;
}
bool have_none(const unsigned char* flags, uint32_t bytes, unsigned char mask) {
  uint32_t any = 0, i = 0;
  for (; i + 4 <= bytes; i += 4) {
    uint32_t word;
    __builtin_memcpy(&word, flags + i, 4);
    any |= word;
  }
  for (; i < bytes; ++i) any |= flags[i];
  return !(any & mask * 0x01010101u);
}

// An access to registers that a product under way uses.
void report_busy(const tsim_registers& r, const char* access, uint32_t bytes, uint32_t line) {
  if (!current_block->checks_for(TSIM_CHECK_WAIT)) return;
  Finding finding = register_finding(TSIM_MISSING_WAIT, r, bytes, line);
  finding.other_line = line_of_product(*current_thread, r.values + r.offset);
  finding.other_actor = TSIM_PRODUCT;
  report(finding, format("%s of register element %d, while the wgmma at line %u may still use it",
                         access, r.offset / r.element_bytes, finding.other_line));
}

// The first of some registers whose flag has, or lacks, a bit.
tsim_registers first_with(const tsim_registers& r, unsigned char mask, bool has) {
  tsim_registers at = r;
  while (((r.written[at.offset] & mask) != 0) != has) ++at.offset;
  return at;
}

constexpr unsigned char READABLE = 0x80;

}  // namespace

const unsigned char* read_registers(const tsim_registers& r, uint32_t bytes, uint32_t line) {
  check_bounds(r, bytes, line);
  constexpr uint32_t CHECKS = TSIM_CHECK_UNINIT | TSIM_CHECK_WAIT;
  if (current_block->checks_for(CHECKS) &&
      __builtin_expect(!have_all(r.written + r.offset, bytes, READABLE), 0)) {
    const tsim_registers at = first_with(r, READABLE, false);
    if (r.written[at.offset] == TSIM_SUMMED) {
      report_busy(at, "a read", bytes, line);
    } else if (current_block->checks_for(TSIM_CHECK_UNINIT)) {
      report(register_finding(TSIM_UNINITIALISED, at, bytes, line),
             format("an operation reads %u registers from element %d on, of which element %d has "
                    "not been written",
                    bytes / r.element_bytes, r.offset / r.element_bytes,
                    at.offset / r.element_bytes));
    }
  }
  return r.values + r.offset;
}

unsigned char* write_registers(const tsim_registers& r, uint32_t bytes, uint32_t line) {
  check_bounds(r, bytes, line);
  if (current_block->checks_for(TSIM_CHECK_WAIT) &&
      __builtin_expect(!have_none(r.written + r.offset, bytes, TSIM_BUSY), 0)) {
    report_busy(first_with(r, TSIM_BUSY, true), "a write", bytes, line);
  }
  __builtin_memset(r.written + r.offset, TSIM_WRITTEN, bytes);
  return r.values + r.offset;
}

namespace {

// Elements of the size of a Word; returns whether all of them may be read.
template <class Word>
bool gather(const tsim_registers& r, int count, int stride, unsigned char* to) {
  constexpr Word mask = Word(0x8080808080808080ull);
  Word flags = mask;
  const int step = stride * int(sizeof(Word));
  for (int i = 0, at = r.offset; i < count; ++i, at += step) {
    Word flag;
    __builtin_memcpy(&flag, r.written + at, sizeof flag);
    __builtin_memcpy(to + i * int(sizeof(Word)), r.values + at, sizeof flag);
    flags &= flag;
  }
  return flags == mask;
}

template <class Word>
void scatter(const tsim_registers& r, int count, int stride, const unsigned char* from) {
  const int step = stride * int(sizeof(Word));
  for (int i = 0, at = r.offset; i < count; ++i, at += step) {
    __builtin_memcpy(r.values + at, from + i * int(sizeof(Word)), sizeof(Word));
    __builtin_memset(r.written + at, TSIM_WRITTEN, sizeof(Word));
  }
}

bool gather_any(const tsim_registers& r, int count, int stride, unsigned char* to) {
  switch (r.element_bytes) {
    case 1:
      return gather<uint8_t>(r, count, stride, to);
    case 2:
      return gather<uint16_t>(r, count, stride, to);
    case 4:
      return gather<uint32_t>(r, count, stride, to);
    default:
      return gather<uint64_t>(r, count, stride, to);
  }
}

uint32_t reach_of(const tsim_registers& r, int count, int stride) {
  return uint32_t(((count - 1) * stride + 1) * r.element_bytes);
}

}  // namespace

void read_spread(const tsim_registers& r, int count, int stride, unsigned char* to,
                 uint32_t line) {
  check_bounds(r, reach_of(r, count, stride), line);
  if (__builtin_expect(gather_any(r, count, stride, to), 1)) return;
  tsim_registers at = r;
  for (int i = 0; i < count; ++i, at.offset += stride * r.element_bytes) {
    if (have_all(at.written + at.offset, uint32_t(r.element_bytes), READABLE)) continue;
    read_registers(at, uint32_t(r.element_bytes), line);
    return;
  }
}

void write_spread(const tsim_registers& r, int count, int stride, const unsigned char* from,
                  uint32_t line) {
  check_bounds(r, reach_of(r, count, stride), line);
  if (r.element_bytes == 4) scatter<uint32_t>(r, count, stride, from);
  else scatter<uint64_t>(r, count, stride, from);
}

}  // namespace tsim

using namespace tsim;

extern "C" {

void tsim_unreadable_register(const unsigned char* value, const unsigned char* flags, int index,
                              unsigned line) {
  Finding finding;
  finding.kind = TSIM_UNINITIALISED;
  finding.space = TSIM_REGISTERS;
  finding.line = line;
  finding.offset = uint64_t(int64_t(index));
  if (*flags == TSIM_SUMMED) {
    tsim_busy_register(value, index, line);
  } else if (current_block->checks_for(TSIM_CHECK_UNINIT)) {
    report(finding, format("a read of register element %d, which has not been written", index));
  }
}

void tsim_busy_register(const unsigned char* value, int index, unsigned line) {
  if (!current_block->checks_for(TSIM_CHECK_WAIT)) return;
  Finding finding;
  finding.kind = TSIM_MISSING_WAIT;
  finding.space = TSIM_REGISTERS;
  finding.line = line;
  finding.other_line = line_of_product(*current_thread, value);
  finding.other_actor = TSIM_PRODUCT;
  finding.offset = uint64_t(int64_t(index));
  report(finding, format("an access to register element %d, while the wgmma at line %u may still "
                         "use it",
                         index, finding.other_line));
}

void tsim_register_out_of_bounds(int index, int count, unsigned line) {
  Finding finding;
  finding.kind = TSIM_OUT_OF_BOUNDS;
  finding.space = TSIM_REGISTERS;
  finding.line = line;
  finding.offset = uint64_t(int64_t(index));
  finding.buffer_bytes = uint64_t(count);
  report_and_abandon(finding, format("element %d of %d registers", index, count));
}

const void* tsim_read_registers(const tsim_registers* r, unsigned bytes, unsigned line) {
  return read_registers(*r, bytes, line);
}

void* tsim_write_registers(const tsim_registers* r, unsigned bytes, unsigned line) {
  return write_registers(*r, bytes, line);
}

}  // extern "C"
