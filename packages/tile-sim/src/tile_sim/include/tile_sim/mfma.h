// Products of AMD's matrix cores, by all 64 lanes of a wave.
//
// R x R x K is the shape of one instruction, R = 32 or 16; a call is PACK of them, with successive
// k. L = K * R / 64 elements of A and of B are one lane's per instruction:
//   A: row l % R of lane l, k = PACK * L * (l / R) + e for e in [0, PACK * L); B: column l % R;
//   D: row l % R; register r is column 8 * (r / 4) + 4 * (l / 32) + r % 4 for R = 32, column
//   4 * (l / 16) + r for R = 16, column 4 * r + l / 16 for doubles.
// Instruction p takes elements [p * L, (p + 1) * L). Element e of A is in register AS * e, of B in
// BS * e, and register r of D is in DS * r: between them lie those of other products. Which element
// types go with which shape is the runtime's knowledge: those of all machines, so that each machine
// has a part of them.
#pragma once
#include "tile_sim/matrix.h"

namespace tile {

// d += a * b. Floats are summed in float32 (float64 for doubles), instruction by instruction and in
// the order of k; floats that the instruction takes as xf32 are rounded first.
template <int R, int K, int PACK, int DS, int AS, int BS, class D, class A, class B>
TILE_HOST void multiply_wave(const regs<D>& d, const regs<A>& a, const regs<B>& b, unsigned line) {
  static_assert(PACK >= 1 && PACK <= 16, "a call is 1 to 16 instructions");
  static_assert(DS >= 1 && AS >= 1 && BS >= 1, "strides are positive");
  static constexpr tsim_wave_product kind = {
      R << 16 | R << 8 | K, PACK, DS, AS, BS, type_code<D>, type_code<A>, type_code<B>};
  tsim_mfma(&d, &a, &b, &kind, line);
}

#define TSIM_MFMA(R, K)                                                                      \
  template <int PACK = 1, int DS = 1, int AS = 1, int BS = 1, class D, class A, class B>     \
  TILE_HOST void mfma_##R##x##R##x##K(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) { \
    multiply_wave<R, K, PACK, DS, AS, BS>(as_registers(d), as_registers(a), as_registers(b), \
                                          line);                                             \
  }
TSIM_MFMA(32, 2)
TSIM_MFMA(32, 4)
TSIM_MFMA(32, 8)
TSIM_MFMA(32, 16)
TSIM_MFMA(32, 32)
TSIM_MFMA(16, 4)
TSIM_MFMA(16, 8)
TSIM_MFMA(16, 16)
TSIM_MFMA(16, 32)
TSIM_MFMA(16, 64)
#undef TSIM_MFMA

// Compilers for GPUs move no instruction across; here nothing moves.
TILE_HOST void keep_order() {}

}  // namespace tile
