// Eight 4-bit numbers from four bytes (low half first) to eight 16-bit floats, in order.
//
// A pair comes from one byte: its halves become mantissa bits of two floats of known exponent,
// and one multiply-add takes the exponent away again: about 1.5 instructions per number.
#pragma once
#include "tile_cuda/cast.h"

namespace tile {

template <u32 TABLE>
TILE_DEVICE u32 lop3(u32 a, u32 b, u32 c) {
  u32 d;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
  return d;
}

// (a & mask) ^ with
TILE_DEVICE u32 masked_xor(u32 a, u32 mask, u32 with) { return lop3<0x6a>(a, mask, with); }

// a * b + c on two float16 or bfloat16 in a word.
TILE_DEVICE u32 fma_pair(half_t, u32 a, u32 b, u32 c) {
  u32 d;
  asm("fma.rn.f16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
}
TILE_DEVICE u32 fma_pair(bfloat16_t, u32 a, u32 b, u32 c) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  u32 d;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(d) : "r"(a), "r"(b), "r"(c));
  return d;
#else
  const float low = fmaf(bitcast<float>(a << 16), bitcast<float>(b << 16), bitcast<float>(c << 16));
  const float high = fmaf(bitcast<float>(a & 0xffff0000u), bitcast<float>(b & 0xffff0000u),
                          bitcast<float>(c & 0xffff0000u));
  return static_cast<u32>(bitcast<u16>(__float2bfloat16_rn(low))) |
         static_cast<u32>(bitcast<u16>(__float2bfloat16_rn(high))) << 16;
#endif
}

// float16: byte i in both halves of a word. 0x6400 is 1024, in steps of 1; the upper number
// stands four bits higher and counts in steps of 16. Signed numbers have their sign bit
// inverted, which adds 8.
template <bool SIGNED>
TILE_DEVICE void dequant_int4(half_t* result, u32 w) {
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 both = __byte_perm(w, 0, i | 0x40 | i << 8 | 0x4000);
    const u32 biased = masked_xor(both, 0x00f0000fu, SIGNED ? 0x64806408u : 0x64006400u);
    // low: x - 1024 (- 8); high: x / 16 - 64 (- 8)
    set_word(result, i, fma_pair(half_t(), biased, 0x2c003c00u, SIGNED ? 0xd480e408u : 0xd400e400u));
  }
}

// bfloat16: 0x4300 is 128, in steps of 1; there is room for one number only.
template <bool SIGNED>
TILE_DEVICE void dequant_int4(bfloat16_t* result, u32 w) {
  const u32 upper = w >> 4;
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 both = __byte_perm(w, upper, i | i << 4 | (4 + i) << 8 | (4 + i) << 12);
    const u32 biased = masked_xor(both, 0x000f000fu, SIGNED ? 0x43084308u : 0x43004300u);
    set_word(result, i, fma_pair(bfloat16_t(), biased, 0x3f803f80u, SIGNED ? 0xc308c308u : 0xc300c300u));
  }
}

template <class T>
TILE_DEVICE void dequant_i4(T* result, const u8* packed) {
  dequant_int4<true>(result, word(packed, 0));
}
template <class T>
TILE_DEVICE void dequant_u4(T* result, const u8* packed) {
  dequant_int4<false>(result, word(packed, 0));
}

// float4_e2m1fn: sign and the other three bits go to their places in the wide format; the
// product with a power of two turns one bias into the other and is exact.
template <class T>
TILE_DEVICE void dequant_e2m1(T* result, const u8* packed) {
  constexpr bool is_f16 = same<T, half_t>;
  const u32 w = word(packed, 0);
  u32 pair[4];  // numbers i and i + 4
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 t = w << (12 - 4 * i);
    const u32 code = (t & 0x80008000u) | ((t & 0x70007000u) >> (is_f16 ? 3 : 6));
    pair[i] = fma_pair(T(), code, is_f16 ? 0x74007400u : 0x7e807e80u, 0x80008000u);
  }
  set_word(result, 0, __byte_perm(pair[0], pair[1], 0x5410));
  set_word(result, 1, __byte_perm(pair[2], pair[3], 0x5410));
  set_word(result, 2, __byte_perm(pair[0], pair[1], 0x7632));
  set_word(result, 3, __byte_perm(pair[2], pair[3], 0x7632));
}

}  // namespace tile
