#include "tensor_memory.h"

#include <algorithm>
#include <cstring>

#include "block.h"
#include "cluster.h"
#include "engine.h"
#include "matrix_elements.h"
#include "registers.h"
#include "wgmma.h"

namespace tsim {

void TensorMemory::start() {
  first = columns = line = taken_by = freed_by = 0;
  warp = -1;
  products.clear();
  own.clear();
  issued = computed = 0;
}

[[noreturn]] void abandon_tensor(uint32_t line, uint32_t other_line, const std::string& message) {
  Finding finding = finding_at(TSIM_PROTOCOL, line);
  finding.other_line = other_line;
  report_and_abandon(finding, message);
}

namespace {

constexpr uint32_t ROWS = TensorMemory::LANES, MOST = TensorMemory::COLUMNS;
using E2m1 = ByteFloat<2, 1, 1, 3>;

uint32_t element_bytes_of(int type) {
  return type == TSIM_F32 ? 4 : type == TSIM_F16 || type == TSIM_BF16 ? 2 : 1;
}

bool is_narrow_float(int type) { return type == TSIM_E4M3 || type == TSIM_E5M2; }
bool is_byte(int type) { return type == TSIM_I8 || type == TSIM_U8; }

// Types of both operands of a product and of its sums, and how operands lie.
bool has_product(const tsim_product& p) {
  if (is_byte(p.a_type)) return is_byte(p.b_type) && p.d_type == TSIM_I32;
  if (p.d_type != TSIM_F32) return false;
  if (is_narrow_float(p.a_type)) return is_narrow_float(p.b_type);
  if (p.a_type != p.b_type) return false;
  if (p.a_type == TSIM_F32) return !p.a_across && !p.b_across;
  return p.a_type == TSIM_F16 || p.a_type == TSIM_BF16;
}

void report_tensor(uint32_t line, uint32_t other_line, const std::string& message) {
  Finding finding = finding_at(TSIM_PROTOCOL, line);
  finding.other_line = other_line;
  report(finding, message);
}

// Columns from an address on that the block has taken.
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

void check_fenced(const Thread& me, uint32_t line) {
  if (!me.met_line) return;
  report_tensor(line, me.met_line,
                format("tensor memory is used without tcgen05_after behind line %u, where threads "
                       "met or waited", me.met_line));
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

// Threads may not touch sums of products that nobody has been told are done.
void check_complete(const TensorMemory& memory, uint32_t column, uint32_t line) {
  if (!memory.under_way[column]) return;
  const uint32_t other = memory.product_line[column];
  abandon_tensor(line, other,
                 format("column %u of tensor memory has sums that the product at line %u is still "
                        "adding to", column, other));
}

const unsigned char* element(const Block& block, const Matrix& matrix, uint32_t x, uint32_t k,
                             int type) {
  const uint32_t row = matrix.is_along_k ? x : k;
  const uint32_t along = element_bytes_of(type) * (matrix.is_along_k ? k : x);
  return block.arena + matrix.chunk(row, along & ~15u) + (along & 15);
}

// Elements as they are multiplied: floats, or integers that wrap around.
void decode(int type, const unsigned char* from, float& to) { to = float_of(type, from); }
void decode(int type, const unsigned char* from, uint32_t& to) {
  to = type == TSIM_I8 ? uint32_t(int8_t(*from)) : *from;
}

// An engine writes a column in all rows: what others did there is known to be done.
void claim_column(Block& block, uint32_t c, Stamp stamp, uint32_t line) {
  TensorMemory& memory = block.tensor;
  for (uint32_t q = 0; q < TensorMemory::QUARTERS; ++q) {
    Stamp& written = memory.writes[q * MOST + c];
    if (int(stamp_who(written)) != memory.agent) check_known(block, written, "write", c, line);
    written = stamp;
  }
  for (int w = 0; w < block.warp_count; ++w) {
    check_known(block, memory.reads[size_t(w) * MOST + c], "read", c, line);
  }
}

// The product before is on its way still; what has the same thread and shape comes after it.
void check_in_order(TensorMemory& memory, uint32_t c, uint64_t shape, uint32_t line) {
  const Thread& me = *current_thread;
  if (memory.under_way[c] && memory.issuer[c] != me.id) {
    abandon_tensor(line, memory.product_line[c],
                   format("a product adds to sums of one that thread %d started, which is not "
                          "known to be done: only those of one thread come in order",
                          memory.issuer[c]));
  }
  if (memory.under_way[c] && memory.shape[c] != shape) {
    abandon_tensor(line, memory.product_line[c],
                   format("a product of another shape than the one at line %u that is not known "
                          "to be done: only those of one shape come in order",
                          memory.product_line[c]));
  }
  memory.issuer[c] = me.id;
  memory.shape[c] = shape;
  ++memory.under_way[c];
  memory.product_line[c] = line;
}

// A product reads its first factor in tensor memory from now on.
void read_factor(Block& block, const TensorProduct& product, Stamp stamp) {
  TensorMemory& memory = block.tensor;
  const uint32_t line = product.line;
  for (uint32_t c = product.a_column; c < product.a_column + K_BYTES / 4; ++c) {
    check_complete(memory, c, line);
    for (uint32_t q = 0; q < TensorMemory::QUARTERS; ++q) {
      check_known(block, memory.writes[q * MOST + c], "write", c, line);
    }
    for (uint32_t i = 0; i < ROWS; ++i) {
      if (memory.is_written[i * MOST + c]) continue;
      abandon_tensor(line, 0, format("a product reads column %u of tensor memory, and nothing has "
                                     "written it", c - memory.first));
    }
    memory.factor_reads[c] = stamp;
  }
}

template <class Value>
void multiply(Block& block, const TensorProduct& product) {
  TensorMemory& memory = block.tensor;
  const uint32_t n = product.n(), columns = product.columns();
  const uint32_t pair = product.is_scaled && product.scales.groups > 1 ? 2 : 1;
  const uint32_t steps = K_BYTES / element_bytes_of(product.kind.a_type) * pair;
  const auto decoded = [&](int type, const unsigned char* from, uint32_t k, Value& to) {
    if (pair == 2) to = Value(E2m1::decode(*from >> (k % 2 * 4) & 15));
    else decode(type, from, to);
  };
  std::vector<Value> b(steps * n), sums(n);
  for (uint32_t k = 0; k < steps; ++k) {
    for (uint32_t j = 0; j < n; ++j) {
      const int type = product.kind.b_type;
      decoded(type, element(block, product.b, j, k / pair, type), k, b[k * n + j]);
    }
  }
  const uint32_t group = product.is_scaled ? steps / uint32_t(product.scales.groups) : steps;
  const auto scale = [&](uint32_t address, uint32_t row, uint32_t k) {
    if (!product.is_scaled) return Value(1);
    return Value(scale_at(memory, product.scales, address + row / ROWS * SCALE_COLUMNS, row % ROWS,
                          k / group));
  };
  for (uint32_t k = 0; k < steps && product.is_scaled; k += group) {
    for (uint32_t j = 0; j < n; ++j) {
      const Value own = scale(product.scales.b_address, j, k);
      for (uint32_t g = k; g < k + group; ++g) b[g * n + j] *= own;
    }
  }
  for (uint32_t i = 0; i < product.rows; ++i) {
    const auto cells = [&](uint32_t j) {
      return &memory.cells[(i + j / columns * product.rows) * MOST + product.column];
    };
    for (uint32_t j = 0; j < n; j += columns) {
      std::memcpy(&sums[j], cells(j), columns * sizeof(Value));
    }
    if (product.kind.sets) std::fill(sums.begin(), sums.end(), Value(0));
    for (uint32_t k = 0; k < steps; ++k) {
      Value a;
      const int type = product.kind.a_type;
      const auto* held = reinterpret_cast<const unsigned char*>(
          &memory.cells[i * MOST + product.a_column]);
      decoded(type, product.a.end ? element(block, product.a, i, k / pair, type)
                                  : held + k * element_bytes_of(type), k, a);
      if (product.is_scaled) a *= scale(product.scales.a_address, i, k);
      const Value* row = &b[k * n];
      for (uint32_t j = 0; j < n; ++j) sums[j] += a * row[j];
    }
    for (uint32_t j = 0; j < n; j += columns) {
      std::memcpy(cells(j), &sums[j], columns * sizeof(Value));
    }
  }
}

}  // namespace

void leave_tensor_memory(Thread& me, uint32_t line) {
  if (!me.tensor_line) return;
  report_tensor(line, me.tensor_line,
                format("threads meet without tcgen05_before behind line %u, which uses tensor memory",
                       me.tensor_line));
  me.tensor_line = 0;
}

void meet_tensor_memory(Thread& me, uint32_t line) { me.met_line = line; }

void complete_products(const BulkCopy& arrival) {
  Block& block = *arrival.from;
  TensorMemory& memory = block.tensor;
  for (; memory.computed < arrival.position; ++memory.computed) {
    const TensorProduct product = memory.products.front();
    memory.products.pop_front();
    if (product.is_copy) copy_scales(block, product);
    else if (product.kind.d_type == TSIM_I32) multiply<uint32_t>(block, product);
    else multiply<float>(block, product);
    for (uint32_t j = 0; j < product.columns(); ++j) {
      --memory.under_way[product.column + j];
    }
  }
  Mbarrier& barrier = *block.mbarriers.find(arrival.barrier);
  if (block.checks_for(TSIM_CHECK_RACE)) {
    block.clock.learn(barrier.released, memory.agent, arrival.time);
  }
  arrive_later(block, barrier, arrival.released, arrival.line);
}

void check_tensor_memory_at_exit(Block& block) {
  const TensorMemory& memory = block.tensor;
  if (!memory.columns || memory.freed_by == TensorMemory::ALL) return;
  report_tensor(memory.line, 0,
                format("the block ends and has not freed %u columns of tensor memory",
                       memory.columns));
}

}  // namespace tsim

using namespace tsim;

namespace {
void start_product(unsigned address, const tsim_operand* a, unsigned a_address,
                   const tsim_operand* b, const tsim_product* kind, int rows,
                   const tsim_scales* scales, unsigned line);
}  // namespace

extern "C" {

unsigned tsim_tensor_take(unsigned columns, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  TensorMemory& memory = block.tensor;
  me.line = line;
  me.tensor_line = line;
  if (columns < 32 || columns > MOST || (columns & (columns - 1))) {
    refuse(line, format("%u columns of tensor memory: a power of two from 32 to 512", columns));
  }
  const uint32_t lane = 1u << me.lane;
  if (memory.columns && (memory.taken_by & lane || memory.warp != me.warp)) {
    abandon_tensor(line, memory.line,
                   format("columns of tensor memory are taken after line %u gave up the right to",
                          memory.line));
  }
  const bool is_first = !memory.taken_by;
  memory.taken_by |= lane;
  if (!is_first) return ~0u;
  memory.columns = columns;
  memory.first = MOST - columns;   // others may have the ones before
  memory.warp = me.warp;
  memory.line = line;
  memory.cells.assign(size_t(ROWS) * MOST, 0.0f);
  std::memset(memory.cells.data(), 0xff, memory.cells.size() * sizeof(float));
  memory.is_written.assign(size_t(ROWS) * MOST, 0);
  memory.writes.assign(size_t(TensorMemory::QUARTERS) * MOST, 0);
  memory.reads.assign(size_t(TensorMemory::WARPS) * MOST, 0);
  std::memset(memory.under_way, 0, sizeof memory.under_way);
  std::memset(memory.factor_reads, 0, sizeof memory.factor_reads);
  memory.agent = block.agents.take(block, TSIM_TENSOR_PRODUCT, 0, me.id);
  return memory.first;
}

void tsim_tensor_free(unsigned address, unsigned columns, unsigned line) {
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
  for (uint32_t c = memory.first; c < memory.first + columns && !memory.freed_by; ++c) {
    check_complete(memory, c, line);
    for (uint32_t q = 0; q < TensorMemory::QUARTERS; ++q) {
      check_known(block, memory.writes[q * MOST + c], "write", c, line);
    }
    for (int w = 0; w < block.warp_count; ++w) {
      check_known(block, memory.reads[size_t(w) * MOST + c], "read", c, line);
    }
  }
  memory.freed_by |= lane;
}

void tsim_tensor_move(const tsim_registers* registers, unsigned address, unsigned columns,
                      int is_load, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  TensorMemory& memory = block.tensor;
  me.line = line;
  check_fenced(me, line);
  const uint32_t first = own_columns(memory, address, columns, line);
  const uint32_t quarter = uint32_t(me.warp) % TensorMemory::QUARTERS;
  const uint32_t lane = quarter * 32 + uint32_t(me.lane);
  const Stamp stamp = make_stamp(block.clock.advance(me.who), uint32_t(me.who), 0, line);
  const uint32_t bytes = columns * sizeof(float);
  float* cells = &memory.cells[lane * MOST + first];
  uint8_t* is_written = &memory.is_written[lane * MOST + first];
  for (uint32_t j = 0; j < columns; ++j) {
    const uint32_t c = first + j;
    check_complete(memory, c, line);
    check_known(block, memory.writes[quarter * MOST + c], "write", c, line);
    if (is_load) {
      if (!is_written[j]) {
        abandon_tensor(line, 0, format("column %u of tensor memory is read, and nothing has "
                                       "written it", c - memory.first));
      }
      memory.reads[size_t(me.warp) * MOST + c] = stamp;
      continue;
    }
    for (int w = int(quarter); w < block.warp_count; w += int(TensorMemory::QUARTERS)) {
      check_known(block, memory.reads[size_t(w) * MOST + c], "read", c, line);
    }
    check_known(block, memory.factor_reads[c], "read", c, line);
    memory.writes[quarter * MOST + c] = stamp;
    is_written[j] = 1;
  }
  if (is_load) std::memcpy(write_registers(*registers, bytes, line), cells, bytes);
  else std::memcpy(cells, read_registers(*registers, bytes, line), bytes);
  me.tensor_line = line;
}

void tsim_tensor_fence(int is_after, unsigned line) {
  Thread& me = *current_thread;
  me.line = line;
  (is_after ? me.met_line : me.tensor_line) = 0;
}

void tsim_tensor_product(unsigned address, const tsim_operand* a, unsigned a_address,
                         const tsim_operand* b, const tsim_product* kind, int rows, unsigned line) {
  start_product(address, a, a_address, b, kind, rows, nullptr, line);
}

void tsim_tensor_scaled_product(unsigned address, const tsim_operand* a, const tsim_operand* b,
                                const tsim_product* kind, const tsim_scales* scales,
                                unsigned line) {
  if (!has_scaled_product(*kind, *scales)) {
    refuse(line, "scaled products are of 8-bit floats with one of the four scales of a row, or of "
                 "pairs of 4-bit ones along K with the first or last two, or with all");
  }
  start_product(address, a, 0, b, kind, int(ROWS), scales, line);
}

void tsim_tensor_scales(unsigned address, const tsim_shared* from, int type, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  TensorMemory& memory = block.tensor;
  me.line = line;
  check_fenced(me, line);
  const tsim_operand operand = {*from, 0, 0, 8 * SCALE_BYTES, 0};
  TensorProduct copy{matrix_of(block, operand, true, line), Matrix{}, 0, tsim_product{}, ROWS,
                     own_columns(memory, address, SCALE_COLUMNS, line), line};
  copy.kind.columns = SCALE_COLUMNS;
  copy.kind.a_type = type;
  copy.is_copy = true;
  const Stamp stamp = make_stamp(block.clock.tick(), uint32_t(memory.agent), STAMP_PROXY, line);
  for (uint32_t c = copy.column; c < copy.column + SCALE_COLUMNS; ++c) {
    claim_column(block, c, stamp, line);
    check_in_order(memory, c, copy.shape(), line);
    for (uint32_t i = 0; i < ROWS; ++i) memory.is_written[i * MOST + c] = 1;
  }
  read_matrix(block, Observer{block.clock, me.who}, copy.a, SCALE_ROWS, SCALE_BYTES, stamp);
  memory.products.push_back(copy);
  memory.own[me.id] = {++memory.issued, stamp_time(stamp)};
}

}  // extern "C"

namespace {

void start_product(unsigned address, const tsim_operand* a, unsigned a_address,
                   const tsim_operand* b, const tsim_product* kind, int rows,
                   const tsim_scales* scales, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  TensorMemory& memory = block.tensor;
  me.line = line;
  check_fenced(me, line);
  if (!scales && !has_product(*kind)) {
    refuse(line, "no product in tensor memory of such element types and orders");
  }
  TensorProduct product{a ? matrix_of(block, *a, !kind->a_across, line) : Matrix{},
                        matrix_of(block, *b, !kind->b_across, line), 0, *kind, uint32_t(rows), 0,
                        line};
  if (!a) product.a_column = own_columns(memory, a_address, K_BYTES / 4, line);
  product.column = own_columns(memory, address, product.columns(), line);
  const uint32_t time = block.clock.tick();
  const Stamp stamp = make_stamp(time, uint32_t(memory.agent), STAMP_PROXY, line);
  for (uint32_t j = 0; j < product.columns(); ++j) {
    const uint32_t c = product.column + j;
    claim_column(block, c, stamp, line);
    check_known(block, memory.factor_reads[c], "read", c, line);
    check_in_order(memory, c, product.shape(), line);
    for (uint32_t i = 0; i < ROWS; ++i) {
      uint8_t& is_written = memory.is_written[i * MOST + c];
      if (!is_written && !kind->sets) {
        abandon_tensor(line, 0, format("a product adds to column %u of tensor memory, and nothing "
                                       "has written it", c - memory.first));
      }
      is_written = 1;
    }
  }
  const Observer by{block.clock, me.who};
  const uint32_t bytes = element_bytes_of(kind->a_type), k = K_BYTES / bytes;
  const auto read = [&](const Matrix& matrix, uint32_t extent) {
    if (matrix.is_along_k) read_matrix(block, by, matrix, extent, K_BYTES, stamp);
    else read_matrix(block, by, matrix, k, extent * bytes, stamp);
  };
  if (a) read(product.a, product.rows);
  else read_factor(block, product, stamp);
  read(product.b, product.n());
  if (scales) {
    product.is_scaled = true;
    product.scales = *scales;
    product.scales.a_address = own_columns(memory, scales->a_address, SCALE_COLUMNS, line);
    const uint32_t count = scale_columns(product.n());
    product.scales.b_address = own_columns(memory, scales->b_address, count, line);
    read_scales(block, product.scales.a_address, SCALE_COLUMNS, stamp, line);
    read_scales(block, product.scales.b_address, count, stamp, line);
  }
  memory.products.push_back(product);
  memory.own[me.id] = {++memory.issued, time};
  ++block.statistics.products;
}

}  // namespace
