// Products of warpgroups, computed: 64 x N x 32 bytes at a time, summed in the order of k.
#include <cmath>
#include <cstring>
#include <vector>

#if defined(__FMA__) && defined(__AVX2__)
#include <immintrin.h>
#define TSIM_AVX2 1
#endif

#include "block.h"
#include "matrix_product.h"
#include "wgmma.h"

namespace tsim {
namespace {

constexpr int ROWS = 64;
constexpr int MOST_COLUMNS = 256;
constexpr int CHUNK = 16;
constexpr int MOST_K = 32;

// Elements as they are multiplied: floats, or integers of 32 bits.
template <class Value>
struct Factors {
  alignas(32) Value a[ROWS][MOST_K];
  alignas(32) Value b[MOST_K][MOST_COLUMNS];
};

}  // namespace

float float_of(int type, const unsigned char* from) {
  uint16_t half;
  uint32_t word;
  switch (type) {
    case TSIM_F16:
      std::memcpy(&half, from, 2);
      return half_to_float(half);
    case TSIM_BF16:
      std::memcpy(&half, from, 2);
      return bfloat16_to_float(half);
    case TSIM_F32:   // tf32: the lower bits are not looked at
      std::memcpy(&word, from, 4);
      return bits_of<float>(word & ~0x1fffu);
    case TSIM_E4M3:
      return float(narrow_to_float(*from, 4, 3, 7, 1));
    default:         // e5m2 is the upper half of a half
      return half_to_float(uint16_t(*from << 8));
  }
}

namespace {

void decode(int type, const unsigned char* from, int count, float* to) {
  if (type == TSIM_F16 && count == 8) {
    uint16_t halves[8];
    std::memcpy(halves, from, sizeof halves);
    halves_to_floats(halves, to);
    return;
  }
  const int size = CHUNK / count;
  for (int i = 0; i < count; ++i) to[i] = float_of(type, from + i * size);
}

void decode(int type, const unsigned char* from, int count, int32_t* to) {
  for (int i = 0; i < count; ++i) {
    to[i] = type == TSIM_I8 ? int32_t(int8_t(from[i])) : int32_t(from[i]);
  }
}

int element_bytes(int type) {
  switch (type) {
    case TSIM_F32:
      return 4;
    case TSIM_F16:
    case TSIM_BF16:
      return 2;
    default:
      return 1;
  }
}

template <class Value>
void read_a(const Block& block, const GroupProduct& product, Factors<Value>& f) {
  const int type = product.kind.a_type, count = CHUNK / element_bytes(type);
  const int k = int(K_BYTES) / element_bytes(type);
  Value part[CHUNK];
  if (product.a.is_along_k) {
    for (int row = 0; row < ROWS; ++row) {
      for (int half = 0; half < 2; ++half) {
        decode(type, block.arena + product.a.chunk(uint32_t(row), uint32_t(half * CHUNK)), count,
               f.a[row] + half * count);
      }
    }
    return;
  }
  for (int i = 0; i < k; ++i) {
    for (int row = 0; row < ROWS; row += count) {
      const uint32_t along = uint32_t(row / count * CHUNK);
      decode(type, block.arena + product.a.chunk(uint32_t(i), along), count, part);
      for (int j = 0; j < count; ++j) f.a[row + j][i] = part[j];
    }
  }
}

template <int PER_REGISTER, class Value>
void place_registers(const GroupProduct& product, Factors<Value>& f) {
  using F = Fragments<16, PER_REGISTER>;
  for (int t = 0; t < WARPGROUP; ++t) {
    const auto* bytes = reinterpret_cast<const unsigned char*>(product.a_registers[t]);
    Value part[CHUNK];
    constexpr int count = 4 * PER_REGISTER;
    decode(product.kind.a_type, bytes, count, part);
    for (int i = 0; i < count; ++i) {
      f.a[t / WARP * 16 + F::a_row(t % WARP, i)][F::a_k(t % WARP, i)] = part[i];
    }
  }
}

template <class Value>
void read_a_registers(const GroupProduct& product, Factors<Value>& f) {
  switch (element_bytes(product.kind.a_type)) {
    case 4:
      return place_registers<1>(product, f);
    case 2:
      return place_registers<2>(product, f);
    default:
      return place_registers<4>(product, f);
  }
}

// Eight columns of eight k: rows become columns.
void transpose(const float (*from)[8], float (*to)[MOST_COLUMNS]) {
#ifdef TSIM_AVX2
  __m256 r[8], t[8];
  for (int i = 0; i < 8; ++i) r[i] = _mm256_loadu_ps(from[i]);
  for (int i = 0; i < 8; i += 2) {
    t[i] = _mm256_unpacklo_ps(r[i], r[i + 1]);
    t[i + 1] = _mm256_unpackhi_ps(r[i], r[i + 1]);
  }
  for (int i = 0; i < 8; i += 4) {
    r[i] = _mm256_shuffle_ps(t[i], t[i + 2], 0x44);
    r[i + 1] = _mm256_shuffle_ps(t[i], t[i + 2], 0xee);
    r[i + 2] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0x44);
    r[i + 3] = _mm256_shuffle_ps(t[i + 1], t[i + 3], 0xee);
  }
  for (int i = 0; i < 4; ++i) {
    _mm256_storeu_ps(to[i], _mm256_permute2f128_ps(r[i], r[i + 4], 0x20));
    _mm256_storeu_ps(to[i + 4], _mm256_permute2f128_ps(r[i], r[i + 4], 0x31));
  }
#else
  for (int i = 0; i < 8; ++i) {
    for (int j = 0; j < 8; ++j) to[j][i] = from[i][j];
  }
#endif
}

template <class Value>
void read_b(const Block& block, const GroupProduct& product, Factors<Value>& f) {
  const int type = product.kind.b_type, count = CHUNK / element_bytes(type);
  const int k = int(K_BYTES) / element_bytes(type), columns = product.kind.columns;
  if (!product.b.is_along_k) {
    for (int i = 0; i < k; ++i) {
      for (int column = 0; column < columns; column += count) {
        const uint32_t along = uint32_t(column / count * CHUNK);
        decode(type, block.arena + product.b.chunk(uint32_t(i), along), count, f.b[i] + column);
      }
    }
    return;
  }
  for (int half = 0; half < 2; ++half) {
    for (int column = 0; column < columns; column += 8) {
      Value part[8][CHUNK];
      for (int j = 0; j < 8; ++j) {
        decode(type,
               block.arena + product.b.chunk(uint32_t(column + j), uint32_t(half * CHUNK)),
               count, part[j]);
      }
      if constexpr (sizeof(Value) == 4 && Value(0.5f) != Value(0)) {
        if (count == 8) {
          float eight[8][8];
          for (int j = 0; j < 8; ++j) std::memcpy(eight[j], part[j], sizeof eight[j]);
          transpose(eight, reinterpret_cast<float(*)[MOST_COLUMNS]>(&f.b[half * 8][column]));
          continue;
        }
      }
      for (int j = 0; j < 8; ++j) {
        for (int i = 0; i < count; ++i) f.b[half * count + i][column + j] = part[j][i];
      }
    }
  }
}

// Four rows of sums, each product and sum rounded once.
void add_rows(const Factors<float>& f, int k, int row, int columns, float* sums) {
#ifdef TSIM_AVX2
  for (int n = 0; n < columns; n += 8) {
    __m256 s[4];
    for (int i = 0; i < 4; ++i) s[i] = _mm256_loadu_ps(sums + (row + i) * columns + n);
    for (int j = 0; j < k; ++j) {
      const __m256 b = _mm256_load_ps(&f.b[j][n]);
      for (int i = 0; i < 4; ++i) s[i] = _mm256_fmadd_ps(_mm256_set1_ps(f.a[row + i][j]), b, s[i]);
    }
    for (int i = 0; i < 4; ++i) _mm256_storeu_ps(sums + (row + i) * columns + n, s[i]);
  }
#else
  for (int i = row; i < row + 4; ++i) {
    for (int j = 0; j < k; ++j) {
      for (int n = 0; n < columns; ++n) {
        sums[i * columns + n] = std::fma(f.a[i][j], f.b[j][n], sums[i * columns + n]);
      }
    }
  }
#endif
}

void add_rows(const Factors<int32_t>& f, int k, int row, int columns, int32_t* sums) {
  for (int i = row; i < row + 4; ++i) {
    for (int j = 0; j < k; ++j) {
      const uint32_t a = uint32_t(f.a[i][j]);
      for (int n = 0; n < columns; ++n) {
        uint32_t sum = uint32_t(sums[i * columns + n]) + a * uint32_t(f.b[j][n]);
        sums[i * columns + n] = int32_t(sum);
      }
    }
  }
}

template <class Value>
void multiply(Block& block, const GroupProduct& product) {
  // Too large for the stack of a thread.
  static thread_local std::unique_ptr<Factors<Value>> factors;
  if (!factors) factors = std::make_unique<Factors<Value>>();
  Sums& sums = *product.sums;
  const int columns = product.kind.columns;
  const size_t count = size_t(ROWS * columns);
  if (product.kind.sets) std::memset(sums.values.data(), 0, count * sizeof(float));
  if (product.a.end) read_a(block, product, *factors);
  else read_a_registers(product, *factors);
  read_b(block, product, *factors);
  const int k = int(K_BYTES) / element_bytes(product.kind.a_type);
  auto* values = reinterpret_cast<Value*>(sums.values.data());
  for (int row = 0; row < ROWS; row += 4) add_rows(*factors, k, row, columns, values);
  if (product.kind.d_type != TSIM_F16) return;
  for (float& x : sums.values) x = half_to_float(float_to_half(x));
}

}  // namespace

void compute(Block& block, const GroupProduct& product) {
  if (product.sums->is_integer) multiply<int32_t>(block, product);
  else multiply<float>(block, product);
}

// Register 4j + 2h + e of a lane: row t / 4 + 8h of its warp's 16, column 8j + t % 4 * 2 + e.
void Sums::take(int lane, const unsigned char* registers, bool is_half) {
  const int row = lane / 32 * 16 + lane % 32 / 4, column = lane % 4 * 2;
  for (int i = 0; i < columns / 2; ++i) {
    float& to = values[size_t((row + i / 2 % 2 * 8) * columns + i / 4 * 8 + column + i % 2)];
    if (is_half) {
      uint16_t half;
      std::memcpy(&half, registers + 2 * i, 2);
      to = half_to_float(half);
    } else {
      std::memcpy(&to, registers + 4 * i, 4);
    }
  }
}

void Sums::give(int lane, unsigned char* registers, const unsigned char* flags,
                bool is_half) const {
  const int row = lane / 32 * 16 + lane % 32 / 4, column = lane % 4 * 2;
  const int size = is_half ? 2 : 4;
  for (int i = 0; i < columns / 2; ++i) {
    if (flags[size * i] != TSIM_SUMMED) continue;   // the thread has written it, and was told
    const float x = values[size_t((row + i / 2 % 2 * 8) * columns + i / 4 * 8 + column + i % 2)];
    if (is_half) {
      const uint16_t half = float_to_half(x);
      std::memcpy(registers + 2 * i, &half, 2);
    } else {
      std::memcpy(registers + 4 * i, &x, 4);
    }
  }
}

}  // namespace tsim
