// ldmatrix: rows of shared memory into the registers that matrix products read.
#include <cstring>

#include "access.h"
#include "collective.h"
#include "registers.h"
#include "tile_sim/device_abi.h"

using namespace tsim;

namespace {

struct MatrixLoad {
  unsigned char* registers;
  const unsigned char* row;
  int matrices;
  bool transposed;
};

constexpr int ROWS = 8;
constexpr int ROW_BYTES = 16;

void load_matrices(Warp&, Rendezvous& r) {
  const MatrixLoad& first = *static_cast<MatrixLoad*>(r.arguments[0]);
  for (int m = 0; m < first.matrices; ++m) {
    uint16_t elements[ROWS][8];
    for (int row = 0; row < ROWS; ++row) {
      const MatrixLoad& owner = *static_cast<MatrixLoad*>(r.arguments[ROWS * m + row]);
      std::memcpy(elements[row], owner.row, ROW_BYTES);
    }
    for_each_lane<MatrixLoad>(r, [&](int lane, MatrixLoad& load) {
      const int major = lane / 4, minor = lane % 4 * 2;
      const uint16_t pair[2] = {
          load.transposed ? elements[minor][major] : elements[major][minor],
          load.transposed ? elements[minor + 1][major] : elements[major][minor + 1]};
      std::memcpy(load.registers + 4 * m, pair, sizeof pair);
    });
  }
}

}  // namespace

extern "C" void tsim_load_matrix(const tsim_registers* to, const tsim_shared* row, int matrices,
                                 int transposed, unsigned line) {
  Block& block = *current_block;
  Thread& me = *current_thread;
  if (block.warp_size != 32 || block.warps[size_t(me.warp)].lanes != 0xffffffff) {
    Finding finding;
    finding.kind = TSIM_INVALID;
    finding.line = line;
    report_and_abandon(finding, "ldmatrix in a warp that does not have 32 lanes");
  }
  // Only the lanes that give the address of a row are asked for one.
  if (me.lane < ROWS * matrices) {
    check_shared_place(block, *row, ROW_BYTES, Access::READ, line);
    record_shared(block, me, *row, ROW_BYTES, Access::READ, nullptr, line);
  }
  MatrixLoad load{write_registers(*to, uint32_t(4 * matrices), line), row->address, matrices,
                  transposed != 0};
  collective(OP_LOAD_MATRIX, ~0ull, &load, line, load_matrices);
}
