// Products of floats of 8 to 32 bits, summed in float32 in the order of k.
#include <cmath>

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "matrix_product.h"

namespace tsim {
namespace {

struct Half {
  using Bits = uint16_t;
  static float decode(Bits x) { return half_to_float(x); }
  static Bits encode(float x) { return float_to_half(x); }
};
struct Bfloat16 {
  using Bits = uint16_t;
  static float decode(Bits x) { return bfloat16_to_float(x); }
};
// float32 rounded to 10 bits of mantissa, halves away from zero, as cvt.rna.tf32 does.
struct Tf32 {
  using Bits = uint32_t;
  static float decode(Bits x) {
    const bool is_finite = (x & 0x7f800000) != 0x7f800000;
    return bits_of<float>(is_finite ? (x + 0x1000) & ~0x1fffu : x);
  }
};
struct Float {
  using Bits = uint32_t;
  static float decode(Bits x) { return bits_of<float>(x); }
  static Bits encode(float x) { return bits_of<uint32_t>(x); }
};
struct E4m3 {
  using Bits = uint8_t;
  static float decode(Bits x) { return float(narrow_to_float(x, 4, 3, 7, 1)); }
};
struct E5m2 {
  using Bits = uint8_t;
  static float decode(Bits x) { return half_to_float(uint16_t(x << 8)); }
};

// A lane's elements as floats.
template <class T, int COUNT>
void unpack(const unsigned char* registers, float* to) {
  typename T::Bits bits[COUNT];
  std::memcpy(bits, registers, sizeof bits);
  for (int i = 0; i < COUNT; ++i) to[i] = T::decode(bits[i]);
}
#if defined(__F16C__) && defined(__AVX2__)
template <>
void unpack<Half, 8>(const unsigned char* registers, float* to) {
  halves_to_floats(reinterpret_cast<const uint16_t*>(registers), to);
}
template <>
void unpack<Half, 4>(const unsigned char* registers, float* to) {
  uint64_t bits;
  std::memcpy(&bits, registers, sizeof bits);
  _mm_storeu_ps(to, _mm_cvtph_ps(_mm_cvtsi64_si128(int64_t(bits))));
}
#endif

// One row of sums: d += a * b, with one rounding for each product and sum.
template <int K>
void add_products(const float* a, const float (*b)[8], float* d) {
#if defined(__FMA__)
  __m256 sums = _mm256_load_ps(d);
  for (int k = 0; k < K; ++k) {
    sums = _mm256_fmadd_ps(_mm256_set1_ps(a[k]), _mm256_load_ps(b[k]), sums);
  }
  _mm256_store_ps(d, sums);
#else
  for (int k = 0; k < K; ++k) {
    for (int n = 0; n < 8; ++n) d[n] = std::fma(a[k], b[k][n], d[n]);
  }
#endif
}

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
  for (int m = 0; m < M; ++m) add_products<K>(a[m], b, d[m]);
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
