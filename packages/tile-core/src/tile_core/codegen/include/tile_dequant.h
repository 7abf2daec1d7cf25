// Eight 4-bit numbers from four bytes (low half first) to eight 16-bit floats, in order. Included
// where words of memory are known, and
//
//   picked_bytes(low, high, …)   bytes of two words by number, the lowest first: 0 to 3 of `low`,
//                                4 to 7 of `high`
//   masked_xor(a, mask, with)    (a & mask) ^ with
//   fma_pair(T(), a, b, c)       a * b + c on two float16 or bfloat16 in a word; exact here
//
// A pair comes from one byte: its halves become mantissa bits of two floats of known exponent,
// and one multiply-add takes the exponent away again: about 1.5 instructions per number.
#pragma once

namespace tile {

// float16: byte i in both halves of a word. 0x6400 is 1024, in steps of 1; the upper number
// stands four bits higher and counts in steps of 16. Signed numbers have their sign bit
// inverted, which adds 8.
template <bool SIGNED>
TILE_INLINE void dequant_int4(half_t* result, u32 w) {
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 both = picked_bytes(w, 0, i, 4, i, 4);
    const u32 biased = masked_xor(both, 0x00f0000fu, SIGNED ? 0x64806408u : 0x64006400u);
    // low: x - 1024 (- 8); high: x / 16 - 64 (- 8)
    const u32 offset = SIGNED ? 0xd480e408u : 0xd400e400u;
    set_word(result, i, fma_pair(half_t(), biased, 0x2c003c00u, offset));
  }
}

// bfloat16: 0x4300 is 128, in steps of 1; there is room for one number only.
template <bool SIGNED>
TILE_INLINE void dequant_int4(bfloat16_t* result, u32 w) {
  const u32 upper = w >> 4;
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 both = picked_bytes(w, upper, i, i, 4 + i, 4 + i);
    const u32 biased = masked_xor(both, 0x000f000fu, SIGNED ? 0x43084308u : 0x43004300u);
    const u32 offset = SIGNED ? 0xc308c308u : 0xc300c300u;
    set_word(result, i, fma_pair(bfloat16_t(), biased, 0x3f803f80u, offset));
  }
}

template <class T, class P>
TILE_INLINE void dequant_i4(T* result, P packed) {
  dequant_int4<true>(result, word(packed, 0));
}
template <class T, class P>
TILE_INLINE void dequant_u4(T* result, P packed) {
  dequant_int4<false>(result, word(packed, 0));
}

// float4_e2m1fn: sign and the other three bits go to their places in the wide format; the
// product with a power of two turns one bias into the other and is exact.
template <class T, class P>
TILE_INLINE void dequant_e2m1(T* result, P packed) {
  constexpr bool is_f16 = same<T, half_t>;
  const u32 w = word(packed, 0);
  u32 pair[4];  // numbers i and i + 4
  TILE_UNROLL
  for (int i = 0; i < 4; ++i) {
    const u32 t = w << (12 - 4 * i);
    const u32 code = (t & 0x80008000u) | ((t & 0x70007000u) >> (is_f16 ? 3 : 6));
    pair[i] = fma_pair(T(), code, is_f16 ? 0x74007400u : 0x7e807e80u, 0x80008000u);
  }
  set_word(result, 0, picked_bytes(pair[0], pair[1], 0, 1, 4, 5));
  set_word(result, 1, picked_bytes(pair[2], pair[3], 0, 1, 4, 5));
  set_word(result, 2, picked_bytes(pair[0], pair[1], 2, 3, 6, 7));
  set_word(result, 3, picked_bytes(pair[2], pair[3], 2, 3, 6, 7));
}

}  // namespace tile
