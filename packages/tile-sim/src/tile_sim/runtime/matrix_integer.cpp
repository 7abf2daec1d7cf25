// Products of integers of 4 and 8 bits: exact, and they wrap in 32 bits.
#include "matrix_product.h"

namespace tsim {
namespace {

template <class T, int BITS>
struct Integer {
  static constexpr int bits = BITS;
  static constexpr int per_register = 32 / BITS;
  // Element i of packed registers.
  static uint32_t element(const unsigned char* registers, int i) {
    if (BITS == 8) return uint32_t(int32_t(bits_of<T>(registers[i])));
    const uint32_t code = registers[i / 2] >> (i % 2 * 4) & 15;
    const bool is_negative = T(-1) < T(0) && code & 8;
    return is_negative ? code | ~15u : code;
  }
};
using S8 = Integer<int8_t, 8>;
using U8 = Integer<uint8_t, 8>;
using S4 = Integer<int8_t, 4>;
using U4 = Integer<uint8_t, 4>;

template <int M, int K, class A, class B>
void multiply(const Operands& operands) {
  constexpr int a_count = M * K / WARP, b_count = K * 8 / WARP, d_count = M * 8 / WARP;
  using F = Fragments<M, A::per_register>;
  uint32_t a[M][K], b[K][8], d[M][8];
  for (int lane = 0; lane < WARP; ++lane) {
    const Product& p = *operands.lanes[lane];
    for (int i = 0; i < a_count; ++i) {
      a[F::a_row(lane, i)][F::a_k(lane, i)] = A::element(p.a, i);
    }
    for (int i = 0; i < b_count; ++i) {
      b[F::b_k(lane, i)][F::b_column(lane)] = B::element(p.b, i);
    }
    for (int i = 0; i < d_count; ++i) {
      std::memcpy(&d[F::d_row(lane, i)][F::d_column(lane, i)], p.d + 4 * i, 4);
    }
  }
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < K; ++k) {
      for (int n = 0; n < 8; ++n) d[m][n] += a[m][k] * b[k][n];
    }
  }
  for (int lane = 0; lane < WARP; ++lane) {
    for (int i = 0; i < d_count; ++i) {
      std::memcpy(operands.lanes[lane]->d + 4 * i, &d[F::d_row(lane, i)][F::d_column(lane, i)], 4);
    }
  }
}

template <int M, int K, class A, class B>
ProductKind kind() {
  return {multiply<M, K, A, B>, M * K / WARP * A::bits / 8, K * 8 / WARP * B::bits / 8,
          M * 8 / WARP * 4};
}

template <class A, class B>
ProductKind of_bytes(int shape) {
  if (shape == shape_of(8, 8, 16)) return kind<8, 16, A, B>();
  if (shape == shape_of(16, 8, 16)) return kind<16, 16, A, B>();
  if (shape == shape_of(16, 8, 32)) return kind<16, 32, A, B>();
  return {};
}

}  // namespace

ProductKind find_integer_product(const Product& p) {
  if (p.d_type != TSIM_I32) return {};
  const bool a_signed = p.a_type == TSIM_I8, b_signed = p.b_type == TSIM_I8;
  if ((!a_signed && p.a_type != TSIM_U8) || (!b_signed && p.b_type != TSIM_U8)) return {};
  // Operands of 4 bits come two to a byte.
  if (p.shape == shape_of(8, 8, 32)) {
    if (a_signed) return b_signed ? kind<8, 32, S4, S4>() : kind<8, 32, S4, U4>();
    return b_signed ? kind<8, 32, U4, S4>() : kind<8, 32, U4, U4>();
  }
  if (p.shape == shape_of(16, 8, 64)) {
    if (a_signed) return b_signed ? kind<16, 64, S4, S4>() : kind<16, 64, S4, U4>();
    return b_signed ? kind<16, 64, U4, S4>() : kind<16, 64, U4, U4>();
  }
  if (a_signed) return b_signed ? of_bytes<S8, S8>(p.shape) : of_bytes<S8, U8>(p.shape);
  return b_signed ? of_bytes<U8, S8>(p.shape) : of_bytes<U8, U8>(p.shape);
}

}  // namespace tsim
