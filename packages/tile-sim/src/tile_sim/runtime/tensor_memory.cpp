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
    if (stamp_who(written) != stamp_who(stamp)) check_known(block, written, "write", c, line);
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

// Steps of a product, of bytes that are elements or pairs of these.
struct Steps {
  explicit Steps(const TensorProduct& product)
      : in_byte(product.is_scaled && product.scales.groups > 1 ? 2 : 1),
        count(K_BYTES / element_bytes_of(product.kind.a_type) * in_byte),
        group(product.is_scaled ? count / uint32_t(product.scales.groups) : count) {}

  template <class Value>
  void decoded(int type, const unsigned char* from, uint32_t k, Value& to) const {
    if (in_byte == 2) to = Value(E2m1::decode(*from >> (k % 2 * 4) & 15));
    else decode(type, from, to);
  }
  uint32_t in_byte, count, group;
};

float scale_of(const TensorMemory& memory, const TensorProduct& product, uint32_t address,
               uint32_t row, uint32_t group) {
  return scale_at(memory, product.scales, address + row / ROWS * SCALE_COLUMNS, row % ROWS, group);
}

// The second operand, by k. Each block of a pair has half of its columns.
template <class Value>
std::vector<Value> second_operand(const Block& block, const TensorProduct& product) {
  const Steps steps(product);
  const uint32_t n = product.n(), own = product.other ? n / 2 : n;
  const int type = product.kind.b_type;
  std::vector<Value> b(steps.count * n);
  for (uint32_t k = 0; k < steps.count; ++k) {
    for (uint32_t j = 0; j < n; ++j) {
      const Block& holder = j < own ? block : *product.other;
      const auto* from = element(holder, product.b, j % own, k / steps.in_byte, type);
      steps.decoded(type, from, k, b[k * n + j]);
    }
  }
  for (uint32_t k = 0; k < steps.count && product.is_scaled; k += steps.group) {
    for (uint32_t j = 0; j < n; ++j) {
      const auto scale = Value(
          scale_of(block.tensor, product, product.scales.b_address, j, k / steps.group));
      for (uint32_t g = k; g < k + steps.group; ++g) b[g * n + j] *= scale;
    }
  }
  return b;
}

// The rows of a block, by the second operand.
template <class Value>
void multiply_rows(Block& block, const TensorProduct& product, const std::vector<Value>& b) {
  TensorMemory& memory = block.tensor;
  const Steps steps(product);
  const uint32_t n = product.n(), columns = product.columns();
  std::vector<Value> sums(n);
  for (uint32_t i = 0; i < product.rows; ++i) {
    const auto cells = [&](uint32_t j) {
      return &memory.cells[(i + j / columns * product.rows) * MOST + product.column];
    };
    for (uint32_t j = 0; j < n; j += columns) {
      std::memcpy(&sums[j], cells(j), columns * sizeof(Value));
    }
    if (product.kind.sets) std::fill(sums.begin(), sums.end(), Value(0));
    for (uint32_t k = 0; k < steps.count; ++k) {
      Value a;
      const int type = product.kind.a_type;
      const auto* held = reinterpret_cast<const unsigned char*>(
          &memory.cells[i * MOST + product.a_column]);
      steps.decoded(type, product.a.end ? element(block, product.a, i, k / steps.in_byte, type)
                                        : held + k * element_bytes_of(type), k, a);
      if (product.is_scaled) {
        a *= Value(scale_of(memory, product, product.scales.a_address, i, k / steps.group));
      }
      const Value* row = &b[k * n];
      for (uint32_t j = 0; j < n; ++j) sums[j] += a * row[j];
    }
    for (uint32_t j = 0; j < n; j += columns) {
      std::memcpy(cells(j), &sums[j], columns * sizeof(Value));
    }
  }
}

template <class Value>
void multiply(Block& block, const TensorProduct& product) {
  const std::vector<Value> b = second_operand<Value>(block, product);
  multiply_rows(block, product, b);
  if (product.other) multiply_rows(*product.other, product, b);
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
      if (product.other) --product.other->tensor.under_way[product.column + j];
    }
  }
  Mbarrier& barrier = *arrival.told->mbarriers.find(arrival.barrier);
  if (block.checks_for(TSIM_CHECK_RACE)) {
    block.clock.learn(barrier.released, memory.agent, arrival.time);
  }
  arrive_later(*arrival.told, barrier, arrival.released, arrival.line);
}

}  // namespace tsim

using namespace tsim;

namespace {
void start_product(unsigned address, const tsim_operand* a, unsigned a_address,
                   const tsim_operand* b, const tsim_product* kind, int rows,
                   const tsim_scales* scales, unsigned line);
}  // namespace

extern "C" {

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

// A product adds to sums of a block, or sets them.
void claim_sums(Block& owner, const TensorProduct& product, Stamp stamp) {
  TensorMemory& memory = owner.tensor;
  const uint32_t line = product.line;
  for (uint32_t j = 0; j < product.columns(); ++j) {
    const uint32_t c = product.column + j;
    claim_column(owner, c, stamp, line);
    check_known(owner, memory.factor_reads[c], "read", c, line);
    check_in_order(memory, c, product.shape(), line);
    for (uint32_t i = 0; i < ROWS; ++i) {
      uint8_t& is_written = memory.is_written[i * MOST + c];
      if (!is_written && !product.kind.sets) {
        abandon_tensor(line, 0, format("a product adds to column %u of tensor memory, and nothing "
                                       "has written it", c - memory.first));
      }
      is_written = 1;
    }
  }
}

// It reads tiles in the shared memory of a block, of which both of a pair have half of the second.
void read_tiles(Block& owner, const TensorProduct& product, Stamp stamp) {
  const Observer by{owner.clock, current_thread->who};
  const uint32_t bytes = element_bytes_of(product.kind.a_type), k = K_BYTES / bytes;
  const auto read = [&](const Matrix& matrix, uint32_t extent) {
    if (matrix.is_along_k) read_matrix(owner, by, matrix, extent, K_BYTES, stamp);
    else read_matrix(owner, by, matrix, k, extent * bytes, stamp);
  };
  if (product.a.end) read(product.a, product.rows);
  read(product.b, product.other ? product.n() / 2 : product.n());
}

// The first block of a pair starts products, once the other one has taken its columns.
Block& other_for_product(Block& block, uint32_t line) {
  if (block.rank & 1) {
    abandon_tensor(line, block.tensor.line,
                   format("block %d of the cluster starts a product of a pair: the first one does",
                          block.rank));
  }
  Block& other = other_of_pair(block, line);
  check_taken(block, other, line);
  return other;
}

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
                        matrix_of(block, *b, !kind->b_across, line), 0, *kind,
                        std::min(uint32_t(rows), ROWS), 0, line};
  if (rows == 2 * int(ROWS)) product.other = &other_for_product(block, line);
  if (!a) product.a_column = own_columns(memory, a_address, K_BYTES / 4, line);
  product.column = own_columns(memory, address, product.columns(), line);
  check_group(memory, product.other ? 2 : 1, "product", line);
  if (product.other) own_columns(product.other->tensor, address, product.columns(), line);
  const uint32_t time = block.clock.tick();
  const Stamp stamp = make_stamp(time, uint32_t(memory.agent), STAMP_PROXY, line);
  claim_sums(block, product, stamp);
  if (product.other) claim_sums(*product.other, product, stamp);
  if (!a) read_factor(block, product, stamp);
  read_tiles(block, product, stamp);
  if (product.other) {
    read_tiles(*product.other, product, stamp);
    note_visit(*product.other, stamp);
  }
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
