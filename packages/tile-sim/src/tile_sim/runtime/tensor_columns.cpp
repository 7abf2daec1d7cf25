// Columns of tensor memory: who takes and frees them, and who may touch them.
#include <cstring>

#include "block.h"
#include "cluster.h"
#include "tensor_memory.h"

namespace tsim {

void TensorMemory::start() {
  first = columns = line = taken_by = freed_by = 0;
  warp = -1;
  is_pair = false;
  taken = 0;
  products.clear();
  own.clear();
  issued = computed = 0;
}

Block& other_of_pair(const Block& block, uint32_t line) {
  return require_block(block.rank ^ 1, line);
}

[[noreturn]] void abandon_tensor(uint32_t line, uint32_t other_line, const std::string& message) {
  Finding finding = finding_at(TSIM_PROTOCOL, line);
  finding.other_line = other_line;
  report_and_abandon(finding, message);
}

void report_tensor(uint32_t line, uint32_t other_line, const std::string& message) {
  Finding finding = finding_at(TSIM_PROTOCOL, line);
  finding.other_line = other_line;
  report(finding, message);
}

uint32_t own_columns(const TensorMemory& memory, uint32_t address, uint32_t count, uint32_t line) {
  const uint32_t column = address & 0xffff;
  if (!memory.columns || memory.freed_by) {
    abandon_tensor(line, memory.line, "tensor memory of which the block has no columns");
  }
  if (memory.taken_by != TensorMemory::ALL) {
    abandon_tensor(line, memory.line,
                   format("columns of tensor memory that %d lanes of a warp took: all 32 do",
                          __builtin_popcount(memory.taken_by)));
  }
  if (column < memory.first || column + count > memory.first + memory.columns) {
    abandon_tensor(line, memory.line,
                   format("columns %d to %d of the %u columns of tensor memory that the block took",
                          int(column - memory.first), int(column - memory.first + count) - 1,
                          memory.columns));
  }
  return column;
}

void check_known(const Block& block, Stamp earlier, const char* what, uint32_t column,
                 uint32_t line) {
  if (!earlier || !block.checks_for(TSIM_CHECK_RACE)) return;
  const int who = int(stamp_who(earlier)), me = current_thread->who;
  if (block.clock.is_before(earlier, me)) return;
  // Lanes of a warp reach lanes of their own.
  if (!block.clock.is_agent(who) && who / block.warp_size == me / block.warp_size) return;
  Finding finding = finding_at(TSIM_PROTOCOL, line);
  finding.other_line = stamp_line(earlier);
  blame_other(finding, earlier);
  report(finding, format("column %u of tensor memory is touched while %s at line %u may still %s it",
                         column, issuer_of(earlier).c_str(), finding.other_line, what));
}

void check_complete(const TensorMemory& memory, uint32_t column, uint32_t line) {
  if (!memory.under_way[column]) return;
  const uint32_t other = memory.product_line[column];
  abandon_tensor(line, other,
                 format("column %u of tensor memory has sums that the product at line %u is still "
                        "adding to", column, other));
}

void check_fenced(const Thread& me, uint32_t line) {
  if (!me.met_line) return;
  report_tensor(line, me.met_line,
                format("tensor memory is used without tcgen05_after behind line %u, where threads "
                       "met or waited", me.met_line));
}

void check_columns_left(const Block& owner, uint32_t column, uint32_t line) {
  const TensorMemory& memory = owner.tensor;
  check_complete(memory, column, line);
  for (uint32_t q = 0; q < TensorMemory::QUARTERS; ++q) {
    check_known(owner, memory.writes[q * TensorMemory::COLUMNS + column], "write", column, line);
  }
  for (int w = 0; w < owner.warp_count; ++w) {
    const Stamp read = memory.reads[size_t(w) * TensorMemory::COLUMNS + column];
    check_known(owner, read, "read", column, line);
  }
}

void check_tensor_memory_at_exit(Block& block) {
  const TensorMemory& memory = block.tensor;
  if (!memory.columns || memory.freed_by == TensorMemory::ALL) return;
  report_tensor(memory.line, 0,
                format("the block ends and has not freed %u columns of tensor memory",
                       memory.columns));
}

void check_group(const TensorMemory& memory, int blocks, const char* what, uint32_t line) {
  if (memory.is_pair == (blocks == 2)) return;
  abandon_tensor(line, memory.line,
                 format("a %s of %s, and columns that line %u took for %s", what,
                        blocks == 2 ? "a pair of blocks" : "one block", memory.line,
                        memory.is_pair ? "a pair" : "one"));
}

void check_taken(const Block& block, const Block& other, uint32_t line) {
  const TensorMemory& memory = other.tensor;
  const bool is_known = !block.checks_for(TSIM_CHECK_RACE) ||
                        block.clock.is_before(memory.taken, current_thread->who);
  if (memory.columns && is_known) return;
  abandon_tensor(line, memory.columns ? memory.line : 0,
                 format("block %d of the cluster may not have taken its columns yet: no barrier of "
                        "the cluster comes between", other.rank));
}

}  // namespace tsim

using namespace tsim;

namespace {

// Both blocks of a pair take columns together: the other one must be there.
void check_started(const Block& block, const Block& other, uint32_t line) {
  if (!block.checks_for(TSIM_CHECK_RACE)) return;
  if (block.clock.knows_of(current_thread->who, other.rank)) return;
  report_tensor(line, 0, format("columns are taken with block %d of the cluster, which need not "
                                "have started: no barrier of the cluster comes first", other.rank));
}

}  // namespace

extern "C" {

unsigned tsim_tensor_take(unsigned columns, int blocks, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  TensorMemory& memory = block.tensor;
  me.line = line;
  me.tensor_line = line;
  if (columns < 32 || columns > TensorMemory::COLUMNS || (columns & (columns - 1))) {
    refuse(line, format("%u columns of tensor memory: a power of two from 32 to 512", columns));
  }
  const uint32_t lane = 1u << me.lane;
  if (memory.columns && (memory.taken_by & lane || memory.warp != me.warp)) {
    abandon_tensor(line, memory.line,
                   format("columns of tensor memory are taken after line %u gave up the right to",
                          memory.line));
  }
  if (blocks == 2) check_started(block, other_of_pair(block, line), line);
  const bool is_first = !memory.taken_by;
  memory.taken_by |= lane;
  if (!is_first) return ~0u;
  memory.columns = columns;
  memory.first = TensorMemory::COLUMNS - columns;   // others may have the ones before
  memory.warp = me.warp;
  memory.line = line;
  memory.is_pair = blocks == 2;
  memory.taken = make_stamp(block.clock.advance(me.who), uint32_t(me.who), 0, line);
  memory.cells.assign(size_t(TensorMemory::LANES) * TensorMemory::COLUMNS, 0.0f);
  std::memset(memory.cells.data(), 0xff, memory.cells.size() * sizeof(float));
  memory.is_written.assign(size_t(TensorMemory::LANES) * TensorMemory::COLUMNS, 0);
  memory.writes.assign(size_t(TensorMemory::QUARTERS) * TensorMemory::COLUMNS, 0);
  memory.reads.assign(size_t(TensorMemory::WARPS) * TensorMemory::COLUMNS, 0);
  std::memset(memory.under_way, 0, sizeof memory.under_way);
  std::memset(memory.factor_reads, 0, sizeof memory.factor_reads);
  memory.agent = block.agents.take(block, TSIM_TENSOR_PRODUCT, 0, me.id);
  return memory.first;
}

void tsim_tensor_free(unsigned address, unsigned columns, int blocks, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  TensorMemory& memory = block.tensor;
  me.line = line;
  check_fenced(me, line);
  const uint32_t lane = 1u << me.lane;
  const bool is_again = (memory.freed_by & lane) != 0;
  if (!memory.columns || is_again || address != memory.first || columns != memory.columns ||
      me.warp != memory.warp) {
    abandon_tensor(line, memory.line,
                   is_again ? "columns of tensor memory are freed a second time"
                            : "columns of tensor memory that this warp has not taken are freed");
  }
  check_group(memory, blocks, "free", line);
  Block* other = blocks == 2 ? &other_of_pair(block, line) : nullptr;
  if (other) check_taken(block, *other, line);
  for (uint32_t c = memory.first; c < memory.first + columns && !memory.freed_by; ++c) {
    check_columns_left(block, c, line);
    if (other) check_columns_left(*other, c, line);
  }
  memory.freed_by |= lane;
}

}  // extern "C"
