// Products of a warpgroup: C[64 x N] += A[64 x K] @ B[K x N], under way while threads go on.
//
// Four warps whose first is a multiple of four call these together. K has 32 bytes. B, and A or
// not, are in shared memory. Which types and orders go together is the runtime's knowledge.
#pragma once
#include "tile_sim/matrix.h"

namespace tile {

// An operand in shared memory, 16 * `units` bytes behind a pointer: rows of SWIZZLE bytes (0, 32,
// 64, 128) in groups of eight, LEADING and STRIDE bytes apart, as descriptors have them. Step k of a
// product of several is k % PART * NEXT + k / PART * FAR units on.
template <class T, int NEXT, int PART, int FAR>
struct wgmma_matrix {
  using element = T;
  tsim_operand operand;
  TILE_HOST tsim_operand at(int k) const {
    tsim_operand moved = operand;
    moved.units += k % PART * NEXT + k / PART * FAR;
    return moved;
  }
};
template <int SWIZZLE, int LEADING, int STRIDE, int NEXT = 0, int PART = 1 << 16, int FAR = 0,
          class T>
TILE_HOST wgmma_matrix<typename without_const<T>::type, NEXT, PART, FAR> wgmma_operand(
    const sptr<T>& shared, int units) {
  static_assert(SWIZZLE == 0 || SWIZZLE == 32 || SWIZZLE == 64 || SWIZZLE == 128,
                "rows that are swizzled have 0, 32, 64 or 128 bytes");
  static_assert(LEADING % 16 == 0 && STRIDE % 16 == 0 && LEADING < 262144 && STRIDE < 262144,
                "offsets are multiples of 16 bytes below 262144");
  return {{shared, SWIZZLE, LEADING, STRIDE, units}};
}

// Registers and shared memory that were written may be read by the products that follow.
TILE_HOST void wgmma_fence(unsigned line = __builtin_LINE()) { tsim_wgmma_fence(line); }
// Close the warpgroup's group of products.
TILE_HOST void wgmma_commit(unsigned line = __builtin_LINE()) { tsim_wgmma_commit(line); }
// Until at most PENDING groups are under way.
template <int PENDING>
TILE_HOST void wgmma_wait(unsigned line = __builtin_LINE()) {
  tsim_wgmma_wait(PENDING, line);
}
// Accumulators are where they are: for compilers, which could copy them.
template <int N, class D>
TILE_HOST void wgmma_pin(D&& d, unsigned line = __builtin_LINE()) {
  const auto r = as_registers(d);
  tsim_wgmma_pin(&r, N * (unsigned)r.element_bytes, line);
}

template <int N, int TA, int TB, class D, class A, class B>
constexpr tsim_product product_of(int sets) {
  static_assert(N % 8 == 0 && 8 <= N && N <= 256, "N is a multiple of 8 up to 256");
  return {N, TA, TB, sets, type_code<D>, type_code<A>, type_code<B>};
}

template <int N, int TA, int TB, int STEPS, class D, class A, class B>
TILE_HOST void multiply_group(const regs<D>& d, const A& a, const B& b, int sets, unsigned line) {
  for (int k = 0; k < STEPS; ++k) {
    const tsim_product product =
        product_of<N, TA, TB, D, typename A::element, typename B::element>(k ? 0 : sets);
    const tsim_operand left = a.at(k), right = b.at(k);
    tsim_wgmma(&d, &left, nullptr, &right, &product, line);
  }
}
template <int N, int TB, int STEPS, class D, class A, class B>
TILE_HOST void multiply_group(const regs<D>& d, const regs<A>& a, const B& b, int sets,
                              unsigned line) {
  constexpr int count = 16 / (int)sizeof(A);  // of a thread's elements, in each step
  for (int k = 0; k < STEPS; ++k) {
    const tsim_product product = product_of<N, 0, TB, D, A, typename B::element>(k ? 0 : sets);
    const regs<A> left = a + k * count;
    const tsim_operand right = b.at(k);
    tsim_wgmma(&d, nullptr, &left, &right, &product, line);
  }
}

// d += a @ b, or d = a @ b, over STEPS steps of K; an operand of 16 bits lies along M or N if its T
// is 1, else along K.
template <int N, int TA, int TB, int STEPS = 1, class D, class A, class B>
TILE_HOST void wgmma_ss(D&& d, const A& a, const B& b, unsigned line = __builtin_LINE()) {
  multiply_group<N, TA, TB, STEPS>(as_registers(d), a, b, 0, line);
}
template <int N, int TA, int TB, int STEPS = 1, class D, class A, class B>
TILE_HOST void wgmma_ss_set(D&& d, const A& a, const B& b, unsigned line = __builtin_LINE()) {
  multiply_group<N, TA, TB, STEPS>(as_registers(d), a, b, 1, line);
}
// A from registers: 32 bytes of K for each step, in the order of mma.
template <int N, int TB, int STEPS = 1, class D, class A, class B>
TILE_HOST void wgmma_rs(D&& d, A&& a, const B& b, unsigned line = __builtin_LINE()) {
  multiply_group<N, TB, STEPS>(as_registers(d), as_registers(a), b, 0, line);
}
template <int N, int TB, int STEPS = 1, class D, class A, class B>
TILE_HOST void wgmma_rs_set(D&& d, A&& a, const B& b, unsigned line = __builtin_LINE()) {
  multiply_group<N, TB, STEPS>(as_registers(d), as_registers(a), b, 1, line);
}

// Registers of each thread of the warpgroup, from here on.
template <int R>
TILE_HOST void registers_increase(unsigned line = __builtin_LINE()) {
  tsim_set_registers(R, 1, line);
}
template <int R>
TILE_HOST void registers_decrease(unsigned line = __builtin_LINE()) {
  tsim_set_registers(R, 0, line);
}

// True in one lane of the warp, whose lanes all call it.
TILE_HOST bool elect(unsigned line = __builtin_LINE()) { return tsim_elect(line) != 0; }

}  // namespace tile
