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

// Whether so many bytes are 0xff; operations read words of four.
bool are_all_set(const unsigned char* flags, uint32_t bytes) {
  uint32_t all = ~0u;
  uint32_t i = 0;
  for (; i + 4 <= bytes; i += 4) {
    uint32_t word;
    __builtin_memcpy(&word, flags + i, 4);
    all &= word;
  }
  for (; i < bytes; ++i) all &= 0xffffff00u | flags[i];
  return all == ~0u;
}

}  // namespace

const unsigned char* read_registers(const tsim_registers& r, uint32_t bytes, uint32_t line) {
  check_bounds(r, bytes, line);
  if (current_block->checks_for(TSIM_CHECK_UNINIT)) {
    const unsigned char* written = r.written + r.offset;
    if (__builtin_expect(!are_all_set(written, bytes), 0)) {
      tsim_registers at = r;
      while (r.written[at.offset]) ++at.offset;
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
  __builtin_memset(r.written + r.offset, 0xff, bytes);
  return r.values + r.offset;
}

}  // namespace tsim

using namespace tsim;

extern "C" {

void tsim_uninitialised_register(int index, unsigned line) {
  if (!current_block->checks_for(TSIM_CHECK_UNINIT)) return;
  Finding finding;
  finding.kind = TSIM_UNINITIALISED;
  finding.space = TSIM_REGISTERS;
  finding.line = line;
  finding.offset = uint64_t(int64_t(index));
  report(finding, format("a read of register element %d, which has not been written", index));
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
