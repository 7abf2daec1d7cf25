// Products whose sums are in tensor memory: 128 lanes of 512 columns, 32 bits each.
//
// One thread starts a product and goes on; that it is done is told by an arrival at a barrier.
// Warp w of a block reaches lanes 32 * (w % 4) to 32 * (w % 4) + 31.
#pragma once
#include "tile_sim/wgmma.h"

namespace tile {

template <int COLUMNS>
TILE_HOST void tcgen05_alloc(const sptr<u64>& place, unsigned line = __builtin_LINE()) {
  const unsigned address = tsim_tensor_take(COLUMNS, 1, line);
  if (address != ~0u) place[index_at{0, line}] = u64(address);
}
template <int COLUMNS>
TILE_HOST void tcgen05_alloc_pair(const sptr<u64>& place, unsigned line = __builtin_LINE()) {
  const unsigned address = tsim_tensor_take(COLUMNS, 2, line);
  if (address != ~0u) place[index_at{0, line}] = u64(address);
}
TILE_HOST int tcgen05_base(const sptr<u64>& place, unsigned line = __builtin_LINE()) {
  return (int)(u64)place[index_at{0, line}];
}
template <int COLUMNS>
TILE_HOST void tcgen05_free(int base, unsigned line = __builtin_LINE()) {
  tsim_tensor_free((unsigned)base, COLUMNS, 1, line);
}
template <int COLUMNS>
TILE_HOST void tcgen05_free_pair(int base, unsigned line = __builtin_LINE()) {
  tsim_tensor_free((unsigned)base, COLUMNS, 2, line);
}

TILE_HOST void tcgen05_before(unsigned line = __builtin_LINE()) { tsim_tensor_fence(0, line); }
TILE_HOST void tcgen05_after(unsigned line = __builtin_LINE()) { tsim_tensor_fence(1, line); }

template <int COUNT, class D>
TILE_HOST void tcgen05_load(D&& d, int base, int column, unsigned line = __builtin_LINE()) {
  const auto r = as_registers(d);
  tsim_tensor_move(&r, (unsigned)(base + column), COUNT, 1, line);
}
template <int COUNT, class D>
TILE_HOST void tcgen05_store(D&& d, int base, int column, unsigned line = __builtin_LINE()) {
  const auto r = as_registers(d);
  tsim_tensor_move(&r, (unsigned)(base + column), COUNT, 0, line);
}

// As `wgmma_operand`; only their encoding differs.
template <int SWIZZLE, int LEADING, int STRIDE, int NEXT = 0, int PART = 1 << 16, int FAR = 0,
          class T>
TILE_HOST auto tcgen05_operand(const sptr<T>& shared, int units) {
  return wgmma_operand<SWIZZLE, LEADING, STRIDE, NEXT, PART, FAR>(shared, units);
}

// 8-bit integers have sums of 32 bits, others floats.
template <class A>
struct sums_of { using type = float; };
template <>
struct sums_of<i8> { using type = i32; };
template <>
struct sums_of<u8> { using type = i32; };

template <int M, int N, int TA, int TB, int STEPS, class A, class B>
TILE_HOST void tcgen05_multiply(int base, int column, const A& a, const B& b, int sets,
                                unsigned line) {
  static_assert(M == 128 ? N % 16 == 0 && 16 <= N && N <= 256
                : M == 256 ? N % 32 == 0 && 32 <= N && N <= 256
                           : M == 64 && (N == 64 || N == 128 || N == 256),
                "128 rows of 16 to 256 columns, 256 of 32 to 256, or 64 of 64, 128 or 256");
  using left_type = typename A::element;
  for (int k = 0; k < STEPS; ++k) {
    const tsim_product product =
        product_of<N, TA, TB, typename sums_of<left_type>::type, left_type, typename B::element>(
            k ? 0 : sets);
    const tsim_operand left = a.at(k), right = b.at(k);
    tsim_tensor_product((unsigned)(base + column), &left, 0, &right, &product, M, line);
  }
}
template <int M, int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_HOST void tcgen05_mma(int base, int column, const A& a, const B& b,
                           unsigned line = __builtin_LINE()) {
  tcgen05_multiply<M, N, TA, TB, STEPS>(base, column, a, b, 0, line);
}
template <int M, int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_HOST void tcgen05_mma_set(int base, int column, const A& a, const B& b,
                               unsigned line = __builtin_LINE()) {
  tcgen05_multiply<M, N, TA, TB, STEPS>(base, column, a, b, 1, line);
}
template <int N, int TB, int STEPS, class B>
TILE_HOST void tcgen05_multiply_ts(int base, int column, int a_column, const B& b, int sets,
                                   unsigned line) {
  static_assert(N % 16 == 0 && 16 <= N && N <= 256, "16 to 256 columns");
  using type = typename B::element;
  for (int k = 0; k < STEPS; ++k) {
    const tsim_product product =
        product_of<N, 0, TB, typename sums_of<type>::type, type, type>(k ? 0 : sets);
    const tsim_operand right = b.at(k);
    tsim_tensor_product((unsigned)(base + column), nullptr, (unsigned)(base + a_column + 8 * k),
                        &right, &product, 128, line);
  }
}
template <int N, int TB, int STEPS = 1, class B>
TILE_HOST void tcgen05_mma_ts(int base, int column, int a_column, const B& b,
                              unsigned line = __builtin_LINE()) {
  tcgen05_multiply_ts<N, TB, STEPS>(base, column, a_column, b, 0, line);
}
template <int N, int TB, int STEPS = 1, class B>
TILE_HOST void tcgen05_mma_ts_set(int base, int column, int a_column, const B& b,
                                  unsigned line = __builtin_LINE()) {
  tcgen05_multiply_ts<N, TB, STEPS>(base, column, a_column, b, 1, line);
}
template <class S>
TILE_HOST void tcgen05_scales(int base, int column, const sptr<S>& scales,
                              unsigned line = __builtin_LINE()) {
  const tsim_shared place = scales;
  tsim_tensor_scales((unsigned)(base + column), &place, type_code<S>, line);
}
template <int M, int N, int TA, int TB, int STEPS, int GROUPS, class A, class B>
TILE_HOST void tcgen05_multiply_scaled(int base, int column, const A& a, const B& b, int a_scales,
                                       int b_scales, int first, int sets, unsigned line) {
  static_assert(M == 128 && N % 16 == 0 && 16 <= N && N <= 256, "128 rows of 16 to 256 columns");
  for (int k = 0; k < STEPS; ++k) {
    const tsim_product product =
        product_of<N, TA, TB, float, typename A::element, typename B::element>(k ? 0 : sets);
    const tsim_operand left = a.at(k), right = b.at(k);
    const tsim_scales scales = {(unsigned)(base + a_scales), (unsigned)(base + b_scales),
                                first + k * GROUPS, GROUPS};
    tsim_tensor_scaled_product((unsigned)(base + column), &left, &right, &product, &scales, line);
  }
}
template <int M, int N, int TA, int TB, int STEPS = 1, int GROUPS = 1, class A, class B>
TILE_HOST void tcgen05_mma_scaled(int base, int column, const A& a, const B& b, int a_scales,
                                  int b_scales, int first, unsigned line = __builtin_LINE()) {
  tcgen05_multiply_scaled<M, N, TA, TB, STEPS, GROUPS>(base, column, a, b, a_scales, b_scales, first,
                                                       0, line);
}
template <int M, int N, int TA, int TB, int STEPS = 1, int GROUPS = 1, class A, class B>
TILE_HOST void tcgen05_mma_scaled_set(int base, int column, const A& a, const B& b, int a_scales,
                                      int b_scales, int first, unsigned line = __builtin_LINE()) {
  tcgen05_multiply_scaled<M, N, TA, TB, STEPS, GROUPS>(base, column, a, b, a_scales, b_scales, first,
                                                       1, line);
}
TILE_HOST void tcgen05_commit(const sptr<u64>& bar, unsigned line = __builtin_LINE()) {
  tsim_tensor_commit(&bar, 1, line);
}

// Pairs of blocks: each has 128 of 256 rows, and half of the columns of `b`.
template <int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_HOST void tcgen05_mma_pair(int base, int column, const A& a, const B& b,
                                unsigned line = __builtin_LINE()) {
  tcgen05_multiply<256, N, TA, TB, STEPS>(base, column, a, b, 0, line);
}
template <int N, int TA, int TB, int STEPS = 1, class A, class B>
TILE_HOST void tcgen05_mma_pair_set(int base, int column, const A& a, const B& b,
                                    unsigned line = __builtin_LINE()) {
  tcgen05_multiply<256, N, TA, TB, STEPS>(base, column, a, b, 1, line);
}
TILE_HOST void tcgen05_commit_pair(const sptr<u64>& bar, unsigned line = __builtin_LINE()) {
  tsim_tensor_commit(&bar, 2, line);
}
TILE_HOST void tcgen05_tell_first(const sptr<u64>& bar, unsigned line = __builtin_LINE()) {
  tsim_mbarrier_arrive(&bar, tsim_cluster_rank() & ~1, line);
}

}  // namespace tile
