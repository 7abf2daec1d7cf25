// mfma of floats of 8 to 32 bits, summed in float32: instruction by instruction, in the order of k.
#include "matrix_elements.h"
#include "matrix_product.h"
#include "mfma.h"

namespace tsim {
namespace {

template <int R, int K, class A, class B>
void multiply(const WaveOperands& operands) {
  constexpr int held = K * R / WAVE;
  alignas(32) float a[R][K], b[K][R], d[R][R];
  WaveSums<R>::gather(operands, d);
  const int pack = operands.lanes[0]->kind->pack;
  for (int p = 0; p < pack; ++p) {
    for (int lane = 0; lane < WAVE; ++lane) {
      const Mfma& own = *operands.lanes[lane];
      const int k = held * (lane / R);
      float part[held];
      unpack<A, held>(own.a + p * held * int(sizeof(typename A::Bits)), &a[lane % R][k]);
      unpack<B, held>(own.b + p * held * int(sizeof(typename B::Bits)), part);
      for (int i = 0; i < held; ++i) b[k + i][lane % R] = part[i];
    }
    for (int row = 0; row < R; ++row) add_products<K, R>(a[row], b, d[row]);
  }
  WaveSums<R>::scatter(d, operands);
}

template <int R, int K, class A, class B>
MfmaKind mfma_kind() {
  constexpr uint32_t held = K * R / WAVE;
  return {multiply<R, K, A, B>, held * sizeof(typename A::Bits), held * sizeof(typename B::Bits),
          R * R / WAVE * 4};
}

// The forms of 16 bits: K is twice as large on gfx950.
template <class T>
MfmaKind of_halves(int shape) {
  if (shape == shape_of(32, 32, 8)) return mfma_kind<32, 8, T, T>();
  if (shape == shape_of(16, 16, 16)) return mfma_kind<16, 16, T, T>();
  if (shape == shape_of(32, 32, 16)) return mfma_kind<32, 16, T, T>();
  if (shape == shape_of(16, 16, 32)) return mfma_kind<16, 32, T, T>();
  return {};
}

MfmaKind of_floats(int shape) {
  if (shape == shape_of(32, 32, 2)) return mfma_kind<32, 2, Float, Float>();
  if (shape == shape_of(16, 16, 4)) return mfma_kind<16, 4, Float, Float>();
  if (shape == shape_of(32, 32, 4)) return mfma_kind<32, 4, Xf32, Xf32>();
  if (shape == shape_of(16, 16, 8)) return mfma_kind<16, 8, Xf32, Xf32>();
  return {};
}

template <class A, class B>
MfmaKind mfma_of_floats(int shape) {
  if (shape == shape_of(32, 32, 16)) return mfma_kind<32, 16, A, B>();
  if (shape == shape_of(16, 16, 32)) return mfma_kind<16, 32, A, B>();
  return {};
}

// Both formats of a machine go together, in any order.
template <class A, class FOUR, class FIVE>
MfmaKind with_bytes(const tsim_wave_product& p, int four, int five) {
  if (p.b_type == four) return mfma_of_floats<A, FOUR>(p.shape);
  if (p.b_type == five) return mfma_of_floats<A, FIVE>(p.shape);
  return {};
}

}  // namespace

MfmaKind find_float_mfma(const tsim_wave_product& p) {
  if (p.d_type != TSIM_F32) return {};
  switch (p.a_type) {
    case TSIM_F16:
      return p.b_type == TSIM_F16 ? of_halves<Half>(p.shape) : MfmaKind{};
    case TSIM_BF16:
      return p.b_type == TSIM_BF16 ? of_halves<Bfloat16>(p.shape) : MfmaKind{};
    case TSIM_F32:
      return p.b_type == TSIM_F32 ? of_floats(p.shape) : MfmaKind{};
    case TSIM_E4M3:
      return with_bytes<E4m3, E4m3, E5m2>(p, TSIM_E4M3, TSIM_E5M2);
    case TSIM_E5M2:
      return with_bytes<E5m2, E4m3, E5m2>(p, TSIM_E4M3, TSIM_E5M2);
    case TSIM_E4M3_FNUZ:
      return with_bytes<E4m3Fnuz, E4m3Fnuz, E5m2Fnuz>(p, TSIM_E4M3_FNUZ, TSIM_E5M2_FNUZ);
    case TSIM_E5M2_FNUZ:
      return with_bytes<E5m2Fnuz, E4m3Fnuz, E5m2Fnuz>(p, TSIM_E4M3_FNUZ, TSIM_E5M2_FNUZ);
    default:
      return {};
  }
}

}  // namespace tsim
