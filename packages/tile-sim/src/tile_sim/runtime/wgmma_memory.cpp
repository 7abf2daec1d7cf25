// Operands of products in shared memory: where they lie, and what reading them means.
#include <algorithm>

#include "access.h"
#include "block.h"
#include "cluster.h"
#include "wgmma.h"

namespace tsim {

Matrix Matrix::of(const tsim_operand& operand, uint32_t offset, uint32_t begin, uint32_t end,
                  bool is_along_k) {
  // The lower word of a descriptor, and what its fields hold of it.
  const uint32_t low =
      offset / 16 + (uint32_t(operand.leading) / 16 << 16) + uint32_t(operand.units);
  Matrix matrix;
  matrix.start = (low & 0x3fff) * 16;
  matrix.leading = (low >> 16 & 0x3fff) * 16;
  matrix.stride = (uint32_t(operand.stride) / 16 & 0x3fff) * 16;
  matrix.swizzle = uint32_t(operand.swizzle);
  matrix.begin = begin;
  matrix.end = end;
  matrix.is_along_k = is_along_k;
  return matrix;
}

namespace {

void check_chunk(Block& block, const Matrix& matrix, uint32_t at, uint32_t line) {
  if (!block.checks_for(TSIM_CHECK_BOUNDS)) return;
  if (at >= matrix.begin && at + 16 <= matrix.end) return;
  Finding finding;
  finding.kind = TSIM_OUT_OF_BOUNDS;
  finding.space = TSIM_SHARED;
  finding.line = line;
  finding.actor = TSIM_PRODUCT;
  finding.thread = current_thread->id / WARPGROUP * WARPGROUP;
  finding.offset = uint64_t(int64_t(at) - int64_t(matrix.begin));
  finding.bytes = 16;
  finding.buffer_start = matrix.begin;
  finding.buffer_bytes = matrix.end - matrix.begin;
  report_and_abandon(finding, format("a read of 16 bytes at byte %lld of a buffer of %u bytes in "
                                     "shared memory",
                                     (long long)finding.offset, matrix.end - matrix.begin));
}

}  // namespace

void read_matrix(Block& block, const Observer& by, const Matrix& matrix, uint32_t rows,
                 uint32_t bytes_along, Stamp stamp) {
  const uint32_t line = stamp_line(stamp);
  for (uint32_t row = 0; row < rows; ++row) {
    for (uint32_t along = 0; along < bytes_along; along += 16) {
      const uint32_t at = matrix.chunk(row, along);
      check_chunk(block, matrix, at, line);
      if (!block.checks_for(CHECKS_OF_SHADOW)) continue;
      block.shadow.read_by_engine(block, by, at, 16, stamp);
    }
  }
}

namespace {

// Eight rows of 16 bytes are read at a time, best in one turn.
void add_transactions(const Matrix& matrix, uint32_t rows, uint32_t bytes_along, LineCount& cost) {
  constexpr uint32_t GROUPS_OF_BANKS = 8, CHUNK = 16;
  for (uint32_t row = 0; row < rows; row += GROUPS_OF_BANKS) {
    for (uint32_t along = 0; along < bytes_along; along += CHUNK) {
      uint64_t in_group[GROUPS_OF_BANKS] = {};
      for (uint32_t i = 0; i < GROUPS_OF_BANKS; ++i) {
        ++in_group[matrix.chunk(row + i, along) / CHUNK % GROUPS_OF_BANKS];
      }
      cost.taken += *std::max_element(in_group, in_group + GROUPS_OF_BANKS);
      ++cost.ideal;
      cost.bytes += GROUPS_OF_BANKS * CHUNK;
    }
  }
}

}  // namespace

Matrix matrix_of(Block& block, const tsim_operand& operand, bool is_along_k, uint32_t line) {
  const uint32_t offset = own_offset(operand.place, line);
  const uint32_t begin = block.arena_offset(operand.place.begin);
  const uint32_t end = block.arena_offset(operand.place.end);
  return Matrix::of(operand, offset, begin, end, is_along_k);
}

void count_operands(Block& block, const GroupProduct& product) {
  if (!block.checks_for(TSIM_COUNT_BANKS)) return;
  const uint32_t columns = uint32_t(product.kind.columns);
  LineCount cost;
  cost.requests = 1;
  if (product.a.end) {
    if (product.a.is_along_k) add_transactions(product.a, 64, K_BYTES, cost);
    else add_transactions(product.a, K_BYTES / 2, 64 * 2, cost);
  }
  if (product.b.is_along_k) add_transactions(product.b, columns, K_BYTES, cost);
  else add_transactions(product.b, K_BYTES / 2, columns * 2, cost);
  block.counters.count({product.line, 0, TSIM_OPERANDS, false}, cost);
}

// All lanes have posted: the engine is reading from now on.
void read_operands(Block& block, const Observer& by, const GroupProduct& product, Stamp stamp) {
  const uint32_t columns = uint32_t(product.kind.columns);
  if (product.a.end) {
    if (product.a.is_along_k) read_matrix(block, by, product.a, 64, K_BYTES, stamp);
    else read_matrix(block, by, product.a, K_BYTES / 2, 64 * 2, stamp);
  }
  if (product.b.is_along_k) read_matrix(block, by, product.b, columns, K_BYTES, stamp);
  else read_matrix(block, by, product.b, K_BYTES / 2, columns * 2, stamp);
}

}  // namespace tsim
