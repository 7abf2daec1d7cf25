// Products of doubles, and Volta's products of halves by pairs of quads.
#include <cmath>

#include "matrix_product.h"

namespace tsim {
namespace {

void multiply_doubles(const Operands& operands) {
  double a[8][4], b[4][8];
  for (int lane = 0; lane < WARP; ++lane) {
    a[lane / 4][lane % 4] = double_at(operands.lanes[lane]->a, 0);
    b[lane % 4][lane / 4] = double_at(operands.lanes[lane]->b, 0);
  }
  for (int lane = 0; lane < WARP; ++lane) {
    for (int i = 0; i < 2; ++i) {
      double sum = double_at(operands.lanes[lane]->d, i);
      for (int k = 0; k < 4; ++k) sum = std::fma(a[lane / 4][k], b[k][lane % 4 * 2 + i], sum);
      std::memcpy(operands.lanes[lane]->d + 8 * i, &sum, 8);
    }
  }
}

// Lanes 4q to 4q+3 and 16 more compute one 8 x 8 x 4 product; a warp computes four.
struct QuadPair {
  static int lane(int quad, int member, int half) { return 4 * quad + member + 16 * half; }
  // Element i of `member`: its index along the free dimension (m or n) and along k.
  static void place(bool along_k, int member, int half, int i, int& free, int& k) {
    free = (along_k ? member : i) + 4 * half;
    k = along_k ? i : member;
  }
  static void place_float(int member, int half, int i, int& m, int& n) {
    m = (member & 1) + (i & 2) + 4 * half;
    n = (i & 4) + (member & 2) + (i & 1);
  }
};

template <bool FLOAT_RESULT>
float result_at(const unsigned char* registers, int i) {
  if (FLOAT_RESULT) {
    float x;
    std::memcpy(&x, registers + 4 * i, 4);
    return x;
  }
  uint16_t bits;
  std::memcpy(&bits, registers + 2 * i, 2);
  return half_to_float(bits);
}

template <bool FLOAT_RESULT>
void put_result(unsigned char* registers, int i, float x) {
  if (FLOAT_RESULT) {
    std::memcpy(registers + 4 * i, &x, 4);
    return;
  }
  const uint16_t bits = float_to_half(x);
  std::memcpy(registers + 2 * i, &bits, 2);
}

template <bool FLOAT_RESULT>
void multiply_quad_pair(const Operands& operands, int quad) {
  float a[8][4], b[4][8];
  const int columns = operands.lanes[0]->columns;
  const bool a_along_k = !(columns & TSIM_A_BY_COLUMNS);
  const bool b_along_k = (columns & TSIM_B_BY_COLUMNS) != 0;
  for (int member = 0; member < 4; ++member) {
    for (int half = 0; half < 2; ++half) {
      const Product& p = *operands.lanes[QuadPair::lane(quad, member, half)];
      for (int i = 0; i < 4; ++i) {
        int free, k;
        QuadPair::place(a_along_k, member, half, i, free, k);
        a[free][k] = result_at<false>(p.a, i);
        QuadPair::place(b_along_k, member, half, i, free, k);
        b[k][free] = result_at<false>(p.b, i);
      }
    }
  }
  for (int member = 0; member < 4; ++member) {
    for (int half = 0; half < 2; ++half) {
      const Product& p = *operands.lanes[QuadPair::lane(quad, member, half)];
      for (int i = 0; i < 8; ++i) {
        int m = member + 4 * half, n = i;
        if (FLOAT_RESULT) QuadPair::place_float(member, half, i, m, n);
        float sum = result_at<FLOAT_RESULT>(p.d, i);
        for (int k = 0; k < 4; ++k) sum = std::fma(a[m][k], b[k][n], sum);
        put_result<FLOAT_RESULT>(p.d, i, sum);
      }
    }
  }
}

template <bool FLOAT_RESULT>
void multiply_quad_pairs(const Operands& operands) {
  for (int quad = 0; quad < 4; ++quad) multiply_quad_pair<FLOAT_RESULT>(operands, quad);
}

}  // namespace

ProductKind find_double_product(const Product& p) {
  const bool is_double = p.a_type == TSIM_F64 && p.b_type == TSIM_F64 && p.d_type == TSIM_F64;
  if (!is_double || p.shape != shape_of(8, 8, 4)) return {};
  return {multiply_doubles, 8, 8, 16};
}

ProductKind find_quad_pair_product(const Product& p) {
  if (p.shape != shape_of(8, 8, 4) || p.a_type != TSIM_F16 || p.b_type != TSIM_F16) return {};
  if (p.d_type == TSIM_F32) return {multiply_quad_pairs<true>, 8, 8, 32};
  if (p.d_type == TSIM_F16) return {multiply_quad_pairs<false>, 8, 8, 16};
  return {};
}

}  // namespace tsim
