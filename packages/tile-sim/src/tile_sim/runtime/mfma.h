// Products of AMD's matrix cores: D[R x R] += A[R x K] @ B[K x R], R = 32 or 16, by 64 lanes.
//
// One rule says which lane has what ("AMD matrix instruction calculator"). Lanes form 64 / R
// groups, and each lane has L = K * R / 64 elements of A and of B per instruction: of row, or
// column, l % R. A call executes several instructions; what the groups have lies side by side
// along k.
#pragma once

#include <cstdint>
#include <cstring>

#include "tile_sim/device_abi.h"

namespace tsim {

constexpr int WAVE = 64;

// One lane's part.
struct Mfma {
  unsigned char* d;
  const unsigned char* a;
  const unsigned char* b;
  const tsim_wave_product* kind;
};

struct WaveOperands {
  const Mfma* lanes[WAVE];
};

// The implementation for a combination, null if no machine has it; `a_bytes` and `b_bytes` are
// those of one lane and one instruction.
struct MfmaKind {
  void (*multiply)(const WaveOperands&);
  uint32_t a_bytes, b_bytes, d_bytes;
};
MfmaKind find_float_mfma(const tsim_wave_product& product);
MfmaKind find_integer_mfma(const tsim_wave_product& product);
MfmaKind find_double_mfma(const tsim_wave_product& product);

// Where the sums of a lane are. The operands of the instruction are swapped: a lane has columns
// side by side of one row.
template <int R>
struct WaveSums {
  static constexpr int count = R * R / WAVE;
  static constexpr int runs = count / 4;
  static int row(int lane) { return lane % R; }
  // The first of four columns.
  static int column(int lane, int run) { return 4 * (run * (WAVE / R) + lane / R); }

  template <class Value>
  static void gather(const WaveOperands& operands, Value (*d)[R]) {
    for (int lane = 0; lane < WAVE; ++lane) {
      for (int run = 0; run < runs; ++run) {
        std::memcpy(&d[row(lane)][column(lane, run)], operands.lanes[lane]->d + 16 * run, 16);
      }
    }
  }
  template <class Value>
  static void scatter(const Value (*d)[R], const WaveOperands& operands) {
    for (int lane = 0; lane < WAVE; ++lane) {
      for (int run = 0; run < runs; ++run) {
        std::memcpy(operands.lanes[lane]->d + 16 * run, &d[row(lane)][column(lane, run)], 16);
      }
    }
  }
};

}  // namespace tsim
