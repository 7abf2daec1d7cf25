// Fragments of matrices: loads from shared memory and products of a warp.
//
// Registers hold what the PTX manual says, values of one 32-bit register adjacent, registers in
// order. Which combinations of shape and element types exist is the runtime's knowledge.
#pragma once
#include "tile_sim/pointers.h"

namespace tile {

template <class T>
constexpr int type_code = -1;
template <> constexpr int type_code<bool> = TSIM_BOOL;
template <> constexpr int type_code<i8> = TSIM_I8;
template <> constexpr int type_code<u8> = TSIM_U8;
template <> constexpr int type_code<i16> = TSIM_I16;
template <> constexpr int type_code<u16> = TSIM_U16;
template <> constexpr int type_code<i32> = TSIM_I32;
template <> constexpr int type_code<u32> = TSIM_U32;
template <> constexpr int type_code<i64> = TSIM_I64;
template <> constexpr int type_code<u64> = TSIM_U64;
template <> constexpr int type_code<long> = TSIM_I64;
template <> constexpr int type_code<unsigned long> = TSIM_U64;
template <> constexpr int type_code<half_t> = TSIM_F16;
template <> constexpr int type_code<bfloat16_t> = TSIM_BF16;
template <> constexpr int type_code<float> = TSIM_F32;
template <> constexpr int type_code<double> = TSIM_F64;
template <> constexpr int type_code<e4m3> = TSIM_E4M3;
template <> constexpr int type_code<e5m2> = TSIM_E5M2;
template <> constexpr int type_code<e4m3_fnuz> = TSIM_E4M3_FNUZ;
template <> constexpr int type_code<e5m2_fnuz> = TSIM_E5M2_FNUZ;

// `MATRICES` matrices of 8 rows of 16 bytes; lane 8 * i + r gives the address of row r of matrix
// i, lane l receives the l-th pair of 16-bit elements of each matrix (transposed: of its columns).
template <int MATRICES, bool TRANSPOSED, class To, class S>
TILE_HOST void load_matrix(To&& to, const sptr<S>& row, unsigned line) {
  const tsim_registers r = as_registers(to);
  tsim_load_matrix(&r, &row, MATRICES, TRANSPOSED, line);
}

template <class To, class S>
TILE_HOST void ldmatrix_x1(To&& to, const sptr<S>& row, unsigned line = __builtin_LINE()) {
  load_matrix<1, false>(to, row, line);
}
template <class To, class S>
TILE_HOST void ldmatrix_x2(To&& to, const sptr<S>& row, unsigned line = __builtin_LINE()) {
  load_matrix<2, false>(to, row, line);
}
template <class To, class S>
TILE_HOST void ldmatrix_x4(To&& to, const sptr<S>& row, unsigned line = __builtin_LINE()) {
  load_matrix<4, false>(to, row, line);
}
template <class To, class S>
TILE_HOST void ldmatrix_x1_trans(To&& to, const sptr<S>& row, unsigned line = __builtin_LINE()) {
  load_matrix<1, true>(to, row, line);
}
template <class To, class S>
TILE_HOST void ldmatrix_x2_trans(To&& to, const sptr<S>& row, unsigned line = __builtin_LINE()) {
  load_matrix<2, true>(to, row, line);
}
template <class To, class S>
TILE_HOST void ldmatrix_x4_trans(To&& to, const sptr<S>& row, unsigned line = __builtin_LINE()) {
  load_matrix<4, true>(to, row, line);
}

// The way back: the lanes' words into the rows whose addresses are given.
template <int MATRICES, bool TRANSPOSED, class S, class From>
TILE_HOST void store_matrix(const sptr<S>& row, From&& from, unsigned line) {
  const tsim_registers r = as_registers(from);
  tsim_store_matrix(&row, &r, MATRICES, TRANSPOSED, line);
}
template <class S, class From>
TILE_HOST void stmatrix_x1(const sptr<S>& row, From&& from, unsigned line = __builtin_LINE()) {
  store_matrix<1, false>(row, from, line);
}
template <class S, class From>
TILE_HOST void stmatrix_x2(const sptr<S>& row, From&& from, unsigned line = __builtin_LINE()) {
  store_matrix<2, false>(row, from, line);
}
template <class S, class From>
TILE_HOST void stmatrix_x4(const sptr<S>& row, From&& from, unsigned line = __builtin_LINE()) {
  store_matrix<4, false>(row, from, line);
}
template <class S, class From>
TILE_HOST void stmatrix_x1_trans(const sptr<S>& row, From&& from,
                                 unsigned line = __builtin_LINE()) {
  store_matrix<1, true>(row, from, line);
}
template <class S, class From>
TILE_HOST void stmatrix_x2_trans(const sptr<S>& row, From&& from,
                                 unsigned line = __builtin_LINE()) {
  store_matrix<2, true>(row, from, line);
}
template <class S, class From>
TILE_HOST void stmatrix_x4_trans(const sptr<S>& row, From&& from,
                                 unsigned line = __builtin_LINE()) {
  store_matrix<4, true>(row, from, line);
}

// d += a * b. Floats are summed in float32 (float64 for doubles) in the order of k.
template <int M, int N, int K, class D, class A, class B>
TILE_HOST void multiply(const regs<D>& d, const regs<A>& a, const regs<B>& b, int columns,
                        unsigned line) {
  tsim_mma(&d, &a, &b, M << 16 | N << 8 | K, type_code<D>, type_code<A>, type_code<B>, columns,
           line);
}

template <class D, class A, class B>
TILE_HOST void mma_m8n8k4(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<8, 8, 4>(as_registers(d), as_registers(a), as_registers(b), TSIM_B_BY_COLUMNS, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m8n8k4_row_row(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<8, 8, 4>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m8n8k4_col_col(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<8, 8, 4>(as_registers(d), as_registers(a), as_registers(b),
                    TSIM_A_BY_COLUMNS | TSIM_B_BY_COLUMNS, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m8n8k4_col_row(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<8, 8, 4>(as_registers(d), as_registers(a), as_registers(b), TSIM_A_BY_COLUMNS, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m8n8k16(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<8, 8, 16>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m8n8k32(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<8, 8, 32>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m16n8k4(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<16, 8, 4>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m16n8k8(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<16, 8, 8>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m16n8k16(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<16, 8, 16>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m16n8k32(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<16, 8, 32>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}
template <class D, class A, class B>
TILE_HOST void mma_m16n8k64(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  multiply<16, 8, 64>(as_registers(d), as_registers(a), as_registers(b), 0, line);
}

}  // namespace tile
