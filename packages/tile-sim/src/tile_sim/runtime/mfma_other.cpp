// mfma of integers, which wrap in 32 bits, and of doubles.
#include <cmath>

#include "matrix_product.h"
#include "mfma.h"

namespace tsim {
namespace {

template <int R, int K>
void multiply_bytes(const WaveOperands& operands) {
  constexpr int held = K * R / WAVE;
  uint32_t a[R][K], b[K][R], d[R][R];
  WaveSums<R>::gather(operands, d);
  const int pack = operands.lanes[0]->kind->pack;
  for (int p = 0; p < pack; ++p) {
    for (int lane = 0; lane < WAVE; ++lane) {
      const Mfma& own = *operands.lanes[lane];
      for (int i = 0; i < held; ++i) {
        const int k = held * (lane / R) + i, at = p * held + i;
        a[lane % R][k] = uint32_t(int32_t(int8_t(own.a[at])));
        b[k][lane % R] = uint32_t(int32_t(int8_t(own.b[at])));
      }
    }
    for (int row = 0; row < R; ++row) {
      for (int k = 0; k < K; ++k) {
        for (int n = 0; n < R; ++n) d[row][n] += a[row][k] * b[k][n];
      }
    }
  }
  WaveSums<R>::scatter(d, operands);
}

// Its sums lie differently: register r of lane l is column 4 * r + l / 16 of row l % 16.
void multiply_doubles(const WaveOperands& operands) {
  constexpr int R = 16, K = 4;
  const int pack = operands.lanes[0]->kind->pack;
  for (int p = 0; p < pack; ++p) {
    double a[R][K], b[K][R];
    for (int lane = 0; lane < WAVE; ++lane) {
      a[lane % R][lane / R] = double_at(operands.lanes[lane]->a, p);
      b[lane / R][lane % R] = double_at(operands.lanes[lane]->b, p);
    }
    for (int lane = 0; lane < WAVE; ++lane) {
      for (int r = 0; r < 4; ++r) {
        double sum = double_at(operands.lanes[lane]->d, r);
        for (int k = 0; k < K; ++k) {
          sum = std::fma(a[lane % R][k], b[k][4 * r + lane / R], sum);
        }
        std::memcpy(operands.lanes[lane]->d + 8 * r, &sum, 8);
      }
    }
  }
}

template <int R, int K>
MfmaKind mfma_of_bytes() {
  constexpr uint32_t held = K * R / WAVE;
  return {multiply_bytes<R, K>, held, held, R * R / WAVE * 4};
}

}  // namespace

// Of gfx90a, gfx942 and gfx950: K doubles each time.
MfmaKind find_integer_mfma(const tsim_wave_product& p) {
  if (p.d_type != TSIM_I32 || p.a_type != TSIM_I8 || p.b_type != TSIM_I8) return {};
  if (p.shape == shape_of(32, 32, 8)) return mfma_of_bytes<32, 8>();
  if (p.shape == shape_of(16, 16, 16)) return mfma_of_bytes<16, 16>();
  if (p.shape == shape_of(32, 32, 16)) return mfma_of_bytes<32, 16>();
  if (p.shape == shape_of(16, 16, 32)) return mfma_of_bytes<16, 32>();
  if (p.shape == shape_of(32, 32, 32)) return mfma_of_bytes<32, 32>();
  if (p.shape == shape_of(16, 16, 64)) return mfma_of_bytes<16, 64>();
  return {};
}

MfmaKind find_double_mfma(const tsim_wave_product& p) {
  const bool is_double = p.d_type == TSIM_F64 && p.a_type == TSIM_F64 && p.b_type == TSIM_F64;
  if (!is_double || p.shape != shape_of(16, 16, 4)) return {};
  return {multiply_doubles, 8, 8, 32};
}

}  // namespace tsim
