// Element types as numbers.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__F16C__) && defined(__AVX2__)
#include <immintrin.h>
#endif

namespace tsim {

template <class To, class From>
inline To bits_of(const From& x) {
  static_assert(sizeof(To) == sizeof(From), "the types differ in size");
  To result;
  std::memcpy(&result, &x, sizeof result);
  return result;
}

float half_to_float(uint16_t bits);
uint16_t float_to_half(float x);

inline float bfloat16_to_float(uint16_t bits) { return bits_of<float>(uint32_t(bits) << 16); }
uint16_t float_to_bfloat16(float x);

// The number that a narrow float's code stands for. `codes` are those of tile::codes; -1 is e8m0.
double narrow_to_float(uint32_t code, int exponent, int mantissa, int bias, int codes);
uint32_t float_to_narrow(double x, int exponent, int mantissa, int bias, int codes, bool saturate);

// Eight consecutive values.
inline void halves_to_floats(const uint16_t* from, float* to) {
#if defined(__F16C__) && defined(__AVX2__)
  _mm256_storeu_ps(to, _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from))));
#else
  for (int i = 0; i < 8; ++i) to[i] = half_to_float(from[i]);
#endif
}

}  // namespace tsim
