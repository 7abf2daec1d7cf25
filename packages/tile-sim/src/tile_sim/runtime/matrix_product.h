// Operands of warp matrix products: which lane holds which element.
#pragma once

#include <cstdint>
#include <cstring>

#include "numbers.h"
#include "tile_sim/device_abi.h"

namespace tsim {

constexpr int WARP = 32;

struct Product {
  unsigned char* d;
  const unsigned char* a;
  const unsigned char* b;
  int shape, d_type, a_type, b_type, columns;
};

// The operands of all lanes, for the product of one kind that they agreed on.
struct Operands {
  const Product* lanes[WARP];
};

using Multiply = void (*)(const Operands&);

// The implementation for a combination; null if no machine has it. `a_bytes`, `b_bytes` and
// `d_bytes` become the sizes of each lane's registers.
struct ProductKind {
  Multiply multiply;
  uint32_t a_bytes, b_bytes, d_bytes;
};
ProductKind find_float_product(const Product& product);
ProductKind find_integer_product(const Product& product);
ProductKind find_double_product(const Product& product);
ProductKind find_quad_pair_product(const Product& product);

inline double double_at(const unsigned char* registers, int i) {
  double x;
  std::memcpy(&x, registers + 8 * i, 8);
  return x;
}

constexpr int shape_of(int m, int n, int k) { return m << 16 | n << 8 | k; }

// Fragments of m x 8 products, by the PTX manual ("Matrix fragments for mma"): lane = 4 * group +
// member; a register holds PER_REGISTER elements that are neighbours along k.
template <int M, int PER_REGISTER>
struct Fragments {
  static constexpr int rows_per_k = M / 8;   // registers that differ in the row
  // Element i of a lane's part of A: its row and its k.
  static int a_row(int lane, int i) { return lane / 4 + 8 * (i / PER_REGISTER % rows_per_k); }
  static int a_k(int lane, int i) {
    return lane % 4 * PER_REGISTER + i % PER_REGISTER +
           4 * PER_REGISTER * (i / PER_REGISTER / rows_per_k);
  }
  static int b_k(int lane, int i) {
    return lane % 4 * PER_REGISTER + i % PER_REGISTER + 4 * PER_REGISTER * (i / PER_REGISTER);
  }
  static int b_column(int lane) { return lane / 4; }
  static int d_row(int lane, int i) { return lane / 4 + 8 * (i / 2); }
  static int d_column(int lane, int i) { return lane % 4 * 2 + i % 2; }
};

}  // namespace tsim
