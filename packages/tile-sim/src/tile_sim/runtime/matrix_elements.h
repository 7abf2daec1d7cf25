// Elements of matrices that are multiplied in float32: from registers to numbers, and back.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#if defined(__FMA__)
#include <immintrin.h>
#endif

#include "numbers.h"

namespace tsim {

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
// The same to nearest even, as AMD's libraries round for xf32.
struct Xf32 {
  using Bits = uint32_t;
  static float decode(Bits x) {
    const bool is_finite = (x & 0x7f800000) != 0x7f800000;
    return bits_of<float>(is_finite ? (x + 0xfff + (x >> 13 & 1)) & ~0x1fffu : x);
  }
};
struct Float {
  using Bits = uint32_t;
  static float decode(Bits x) { return bits_of<float>(x); }
  static Bits encode(float x) { return bits_of<uint32_t>(x); }
};

// All numbers of a format of 8 bits, computed once.
template <int EXPONENT, int MANTISSA, int BIAS, int CODES>
struct ByteFloat {
  using Bits = uint8_t;
  struct Table {
    float values[256];
    Table() {
      for (uint32_t code = 0; code < 256; ++code) {
        values[code] = float(narrow_to_float(code, EXPONENT, MANTISSA, BIAS, CODES));
      }
    }
  };
  static float decode(Bits x) {
    static const Table table;
    return table.values[x];
  }
};
using E4m3 = ByteFloat<4, 3, 7, 1>;
using E4m3Fnuz = ByteFloat<4, 3, 8, 2>;
using E5m2Fnuz = ByteFloat<5, 2, 16, 2>;
struct E5m2 {
  using Bits = uint8_t;
  static float decode(Bits x) { return half_to_float(uint16_t(x << 8)); }
};

// A lane's elements as floats.
template <class T, int COUNT>
inline void unpack(const unsigned char* registers, float* to) {
  typename T::Bits bits[COUNT];
  std::memcpy(bits, registers, sizeof bits);
  for (int i = 0; i < COUNT; ++i) to[i] = T::decode(bits[i]);
}
#if defined(__F16C__) && defined(__AVX2__)
template <>
inline void unpack<Half, 8>(const unsigned char* registers, float* to) {
  halves_to_floats(reinterpret_cast<const uint16_t*>(registers), to);
}
template <>
inline void unpack<Half, 4>(const unsigned char* registers, float* to) {
  uint64_t bits;
  std::memcpy(&bits, registers, sizeof bits);
  _mm_storeu_ps(to, _mm_cvtph_ps(_mm_cvtsi64_si128(int64_t(bits))));
}
#endif

// One row of COLUMNS sums: d += a * b, with one rounding for each product and sum.
template <int K, int COLUMNS>
inline void add_products(const float* a, const float (*b)[COLUMNS], float* d) {
#if defined(__FMA__)
  constexpr int vectors = COLUMNS / 8;
  __m256 sums[vectors];
  for (int v = 0; v < vectors; ++v) sums[v] = _mm256_load_ps(d + 8 * v);
  for (int k = 0; k < K; ++k) {
    const __m256 factor = _mm256_set1_ps(a[k]);
    for (int v = 0; v < vectors; ++v) {
      sums[v] = _mm256_fmadd_ps(factor, _mm256_load_ps(b[k] + 8 * v), sums[v]);
    }
  }
  for (int v = 0; v < vectors; ++v) _mm256_store_ps(d + 8 * v, sums[v]);
#else
  for (int k = 0; k < K; ++k) {
    for (int n = 0; n < COLUMNS; ++n) d[n] = std::fma(a[k], b[k][n], d[n]);
  }
#endif
}

}  // namespace tsim
