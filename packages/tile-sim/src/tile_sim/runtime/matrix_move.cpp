// ldmatrix and stmatrix: rows of shared memory from and to the registers of matrix products.
#include <cstring>

#include "access.h"
#include "collective.h"
#include "registers.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

// What one lane brings: its registers, and the row whose address it gives.
struct MatrixMove {
  unsigned char* registers;
  unsigned char* row;
  int matrices;
  bool transposed;
};

constexpr int MATRIX_ROWS = 8;
constexpr int ROW_BYTES = 16;

void load_matrices(Warp&, Rendezvous& r) {
  const MatrixMove& first = *static_cast<MatrixMove*>(r.arguments[0]);
  for (int m = 0; m < first.matrices; ++m) {
    uint16_t elements[MATRIX_ROWS][8];
    for (int row = 0; row < MATRIX_ROWS; ++row) {
      const MatrixMove& owner = *static_cast<MatrixMove*>(r.arguments[MATRIX_ROWS * m + row]);
      std::memcpy(elements[row], owner.row, ROW_BYTES);
    }
    for_each_lane<MatrixMove>(r, [&](int lane, MatrixMove& load) {
      const int major = lane / 4, minor = lane % 4 * 2;
      const uint16_t pair[2] = {
          load.transposed ? elements[minor][major] : elements[major][minor],
          load.transposed ? elements[minor + 1][major] : elements[major][minor + 1]};
      std::memcpy(load.registers + 4 * m, pair, sizeof pair);
    });
  }
}

void store_matrices(Warp&, Rendezvous& r) {
  const MatrixMove& first = *static_cast<MatrixMove*>(r.arguments[0]);
  for (int m = 0; m < first.matrices; ++m) {
    uint16_t elements[MATRIX_ROWS][8];
    for_each_lane<MatrixMove>(r, [&](int lane, MatrixMove& store) {
      const int major = lane / 4, minor = lane % 4 * 2;
      uint16_t pair[2];
      std::memcpy(pair, store.registers + 4 * m, sizeof pair);
      for (int i = 0; i < 2; ++i) {
        (store.transposed ? elements[minor + i][major] : elements[major][minor + i]) = pair[i];
      }
    });
    for (int row = 0; row < MATRIX_ROWS; ++row) {
      const MatrixMove& owner = *static_cast<MatrixMove*>(r.arguments[MATRIX_ROWS * m + row]);
      std::memcpy(owner.row, elements[row], ROW_BYTES);
    }
  }
}

// Only the lanes that give the address of a row are asked for one.
void touch_row(const tsim_shared& row, int matrices, Access access, uint32_t line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  if (block.warp_size != 32 || block.warps[size_t(me.warp)].lanes != 0xffffffff) {
    Finding finding;
    finding.kind = TSIM_INVALID;
    finding.line = line;
    report_and_abandon(finding, "ldmatrix or stmatrix in a warp that does not have 32 lanes");
  }
  if (me.lane >= MATRIX_ROWS * matrices) return;
  check_shared_place(block, row, ROW_BYTES, access, line);
  record_shared(block, me, row, ROW_BYTES, access, nullptr, line);
}

}  // namespace

extern "C" {

void tsim_load_matrix(const tsim_registers* to, const tsim_shared* row, int matrices,
                      int transposed, unsigned line) {
  touch_row(*row, matrices, Access::READ, line);
  MatrixMove move{write_registers(*to, uint32_t(4 * matrices), line), row->address, matrices,
                  transposed != 0};
  collective(OP_LOAD_MATRIX, ~0ull, &move, line, load_matrices);
}

void tsim_store_matrix(const tsim_shared* row, const tsim_registers* from, int matrices,
                       int transposed, unsigned line) {
  touch_row(*row, matrices, Access::WRITE, line);
  read_registers(*from, uint32_t(4 * matrices), line);
  MatrixMove move{from->values + from->offset, row->address, matrices, transposed != 0};
  collective(OP_STORE_MATRIX, ~0ull, &move, line, store_matrices);
}

}  // extern "C"
