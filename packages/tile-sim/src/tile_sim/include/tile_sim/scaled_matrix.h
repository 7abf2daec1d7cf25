// Products of a warp whose groups along K have scales.
//
// `sfa` and `sfb` are words of them, from which the bytes from `byte` on count, in the lanes that
// the manual tells by `lane`. Which combinations of types exist is the runtime's knowledge.
#pragma once
#include "tile_sim/matrix.h"

namespace tile {

template <> constexpr int type_code<e8m0> = TSIM_E8M0;

template <int K, class A, class B, class S, class U>
TILE_HOST void multiply_scaled(const tsim_registers& d, const regs<A>& a, const regs<B>& b,
                               const regs<S>& sfa, const regs<U>& sfb, int a_byte, int a_lane,
                               int b_byte, int b_lane, unsigned line) {
  static_assert(same<S, U>, "scales of both operands have one type");
  const tsim_scaled_product product = {K,      type_code<A>, type_code<B>, type_code<S>,
                                       a_byte, a_lane,       b_byte,       b_lane};
  tsim_mma_scaled(&d, &a, &b, &sfa, &sfb, &product, line);
}

template <class D, class A, class B, class S, class U>
TILE_HOST void mma_scaled_m16n8k32(D&& d, A&& a, B&& b, S&& sfa, U&& sfb, int a_byte, int a_lane,
                                   int b_byte, int b_lane, unsigned line = __builtin_LINE()) {
  multiply_scaled<32>(as_registers(d), as_registers(a), as_registers(b), as_registers(sfa),
                      as_registers(sfb), a_byte, a_lane, b_byte, b_lane, line);
}
template <class D, class A, class B, class S, class U>
TILE_HOST void mma_scaled_m16n8k64(D&& d, A&& a, B&& b, S&& sfa, U&& sfb, int a_byte, int a_lane,
                                   int b_byte, int b_lane, unsigned line = __builtin_LINE()) {
  multiply_scaled<64>(as_registers(d), as_registers(a), as_registers(b), as_registers(sfa),
                      as_registers(sfb), a_byte, a_lane, b_byte, b_lane, line);
}

}  // namespace tile
