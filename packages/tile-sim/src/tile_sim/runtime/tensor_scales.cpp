// Scales of groups along K in tensor memory: how they come there, and who reads them.
#include <cstring>

#include "block.h"
#include "engine.h"
#include "numbers.h"
#include "tensor_memory.h"

namespace tsim {

namespace {
constexpr uint32_t LANES = TensorMemory::LANES, WIDTH = TensorMemory::COLUMNS;
}  // namespace

// Scales of 128 rows are four columns: that of row r and group g is byte g of column r / 32, in lane
// r % 32 of every quarter.
uint32_t scale_columns(uint32_t rows) { return (rows + LANES - 1) / LANES * SCALE_COLUMNS; }

float scale_at(const TensorMemory& memory, uint32_t column, uint32_t row, int chosen) {
  unsigned char codes[SCALE_COLUMNS];
  const float* cell = &memory.cells[row % SCALE_ROWS * WIDTH + column + row / SCALE_ROWS];
  std::memcpy(codes, cell, sizeof codes);
  return float(narrow_to_float(codes[chosen], 8, 0, 127, -1));
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

void copy_scales(Block& block, const TensorProduct& copy) {
  for (uint32_t row = 0; row < LANES; ++row) {
    const unsigned char* from =
        block.arena + copy.a.chunk(row % SCALE_ROWS, 0) + row / SCALE_ROWS * SCALE_COLUMNS;
    for (uint32_t q = 0; q < TensorMemory::QUARTERS; ++q) {
      const uint32_t lane = q * SCALE_ROWS + row % SCALE_ROWS;
      float* cell = &block.tensor.cells[lane * WIDTH + copy.column + row / SCALE_ROWS];
      std::memcpy(cell, from, SCALE_COLUMNS);
    }
  }
}

}  // namespace tsim
