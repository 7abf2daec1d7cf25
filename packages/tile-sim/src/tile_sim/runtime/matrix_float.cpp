// Products of floats of 8 to 32 bits, summed in float32 in the order of k.
#include "matrix_elements.h"
#include "matrix_product.h"

namespace tsim {
namespace {

template <int M, int K, class A, class B, class D>
void multiply(const Operands& operands) {
  constexpr int per_register = 4 / sizeof(typename A::Bits);
  constexpr int a_count = M * K / WARP, b_count = K * 8 / WARP, d_count = M * 8 / WARP;
  using F = Fragments<M, per_register>;
  alignas(32) float a[M][K], b[K][8], d[M][8];
  for (int lane = 0; lane < WARP; ++lane) {
    const Product& p = *operands.lanes[lane];
    float part[16];   // of the largest shape
    unpack<A, a_count>(p.a, part);
#pragma GCC unroll 16
    for (int i = 0; i < a_count; ++i) a[F::a_row(lane, i)][F::a_k(lane, i)] = part[i];
    unpack<B, b_count>(p.b, part);
#pragma GCC unroll 16
    for (int i = 0; i < b_count; ++i) b[F::b_k(lane, i)][F::b_column(lane)] = part[i];
    unpack<D, d_count>(p.d, part);
#pragma GCC unroll 16
    for (int i = 0; i < d_count; ++i) d[F::d_row(lane, i)][F::d_column(lane, i)] = part[i];
  }
  for (int m = 0; m < M; ++m) add_products<K, 8>(a[m], b, d[m]);
  for (int lane = 0; lane < WARP; ++lane) {
    typename D::Bits bits[d_count];
#pragma GCC unroll 16
    for (int i = 0; i < d_count; ++i) {
      bits[i] = D::encode(d[F::d_row(lane, i)][F::d_column(lane, i)]);
    }
    std::memcpy(operands.lanes[lane]->d, bits, sizeof bits);
  }
}

template <int M, int K, class A, class B, class D>
ProductKind kind() {
  return {multiply<M, K, A, B, D>, M * K / WARP * sizeof(typename A::Bits),
          K * 8 / WARP * sizeof(typename B::Bits), M * 8 / WARP * sizeof(typename D::Bits)};
}

template <int K, class A, class B>
ProductKind with_result(int d_type) {
  if (d_type == TSIM_F32) return kind<16, K, A, B, Float>();
  if (d_type == TSIM_F16) return kind<16, K, A, B, Half>();
  return {};
}

template <int K, class A>
ProductKind of_bytes(const Product& p) {
  if (p.b_type == TSIM_E4M3) return with_result<K, A, E4m3>(p.d_type);
  if (p.b_type == TSIM_E5M2) return with_result<K, A, E5m2>(p.d_type);
  return {};
}

template <class A>
ProductKind of_bytes_and_shape(const Product& p) {
  if (p.shape == shape_of(16, 8, 16)) return of_bytes<16, A>(p);
  if (p.shape == shape_of(16, 8, 32)) return of_bytes<32, A>(p);
  return {};
}

}  // namespace

ProductKind find_float_product(const Product& p) {
  const bool is_float32 = p.d_type == TSIM_F32;
  switch (p.a_type) {
    case TSIM_F16:
      if (p.b_type != TSIM_F16) return {};
      if (p.shape == shape_of(16, 8, 8)) return with_result<8, Half, Half>(p.d_type);
      if (p.shape == shape_of(16, 8, 16)) return with_result<16, Half, Half>(p.d_type);
      return {};
    case TSIM_BF16:
      if (p.b_type != TSIM_BF16 || !is_float32) return {};
      if (p.shape == shape_of(16, 8, 8)) return kind<16, 8, Bfloat16, Bfloat16, Float>();
      if (p.shape == shape_of(16, 8, 16)) return kind<16, 16, Bfloat16, Bfloat16, Float>();
      return {};
    case TSIM_F32:
      if (p.b_type != TSIM_F32 || !is_float32) return {};
      if (p.shape == shape_of(16, 8, 4)) return kind<16, 4, Tf32, Tf32, Float>();
      if (p.shape == shape_of(16, 8, 8)) return kind<16, 8, Tf32, Tf32, Float>();
      return {};
    case TSIM_E4M3:
      return of_bytes_and_shape<E4m3>(p);
    case TSIM_E5M2:
      return of_bytes_and_shape<E5m2>(p);
    default:
      return {};
  }
}

}  // namespace tsim
