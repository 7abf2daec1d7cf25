// Scales of groups along K in tensor memory: how they come there, and who reads them.
#include <cstring>

#include "block.h"
#include "engine.h"
#include "numbers.h"
#include "tensor_memory.h"
#include "wgmma.h"

namespace tsim {

namespace {
constexpr uint32_t LANES = TensorMemory::LANES, WIDTH = TensorMemory::COLUMNS;
}  // namespace

// Scales of 128 rows are four columns: that of row r and group g is byte g of column r / 32, in lane
// r % 32 of every quarter.
uint32_t scale_columns(uint32_t rows) { return (rows + LANES - 1) / LANES * SCALE_COLUMNS; }

// Of 8-bit floats, or of pairs of 4-bit ones along K; a step takes scales that follow each other.
bool has_scaled_product(const tsim_product& kind, const tsim_scales& scales) {
  const auto is_narrow = [](int type) { return type == TSIM_E4M3 || type == TSIM_E5M2; };
  const bool is_pair = kind.a_type == TSIM_U8 && kind.b_type == TSIM_U8;
  const bool along_k = !kind.a_across && !kind.b_across;
  const bool fits = scales.groups == 1 ? is_narrow(kind.a_type) && is_narrow(kind.b_type)
                                       : is_pair && along_k &&
                                             (scales.groups == 2 || scales.groups == 4);
  return fits && kind.d_type == TSIM_F32 && scales.chosen >= 0 &&
         scales.chosen % scales.groups == 0 && scales.chosen + scales.groups <= 4;
}

float scale_at(const TensorMemory& memory, const tsim_scales& scales, uint32_t column, uint32_t row,
               uint32_t group) {
  unsigned char codes[SCALE_COLUMNS];
  const float* cell = &memory.cells[row % SCALE_ROWS * WIDTH + column + row / SCALE_ROWS];
  std::memcpy(codes, cell, sizeof codes);
  const unsigned char code = codes[uint32_t(scales.chosen) + group];
  return scales.groups == 4 ? float_of(TSIM_E4M3, &code)
                            : float(narrow_to_float(code, 8, 0, 127, -1));
}

// A product reads scales from now on: those that its thread has copied, or others know of.
void read_scales(Block& block, uint32_t column, uint32_t count, Stamp stamp, uint32_t line) {
  TensorMemory& memory = block.tensor;
  for (uint32_t c = column; c < column + count; ++c) {
    if (memory.under_way[c] && memory.issuer[c] != current_thread->id) {
      abandon_tensor(line, memory.product_line[c],
                     format("a product reads scales that thread %d has copied: only what one "
                            "thread starts comes in order", memory.issuer[c]));
    }
    for (uint32_t i = 0; i < LANES; ++i) {
      if (memory.is_written[i * WIDTH + c]) continue;
      abandon_tensor(line, 0, format("a product reads scales in column %u of tensor memory, and "
                                     "nothing has written it", c - memory.first));
    }
    memory.factor_reads[c] = stamp;
  }
}

// A scale has no sign: instructions do not look at it.
void copy_scales(Block& block, const TensorProduct& copy) {
  bool has_sign = false;
  for (uint32_t row = 0; row < LANES; ++row) {
    const unsigned char* from =
        block.arena + copy.a.chunk(row % SCALE_ROWS, 0) + row / SCALE_ROWS * SCALE_COLUMNS;
    for (uint32_t q = 0; q < TensorMemory::QUARTERS; ++q) {
      const uint32_t lane = q * SCALE_ROWS + row % SCALE_ROWS;
      float* cell = &block.tensor.cells[lane * WIDTH + copy.column + row / SCALE_ROWS];
      std::memcpy(cell, from, SCALE_COLUMNS);
    }
    for (uint32_t g = 0; g < SCALE_COLUMNS && copy.kind.a_type == TSIM_E4M3; ++g) {
      has_sign = has_sign || (from[g] & 0x80);
    }
  }
  if (has_sign) report(finding_at(TSIM_UNDEFINED, copy.line), "a scale is negative");
}

}  // namespace tsim
