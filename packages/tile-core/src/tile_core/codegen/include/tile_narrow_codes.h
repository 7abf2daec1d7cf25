// Floats of 8 bits and fewer from and to float32 by integer arithmetic, the same on all GPUs:
// included where `bitcast` and `nearest_integer`, a float32 rounded to an int, are known.
#pragma once

namespace tile {

// 2 to the power of `n`, normal numbers only.
TILE_INLINE constexpr float power_of_two(int n) {
  float value = 1.0f;
  for (int i = 0; i < n; ++i) value *= 2.0f;
  for (int i = 0; i > n; --i) value *= 0.5f;
  return value;
}

template <int E, int M, int B, codes C>
struct narrow_facts {
  static constexpr int width = 1 + E + M;
  static constexpr u32 sign = 1u << (width - 1);
  static constexpr u32 magnitude = sign - 1;
  static constexpr u32 infinity = ((1u << E) - 1) << M;  // where the format has one
  static constexpr u32 largest = C == codes::ieee ? infinity - 1
                                 : C == codes::fn ? magnitude - 1
                                                  : magnitude;
  static constexpr u32 nan = C == codes::ieee   ? infinity | (1u << (M - 1))
                             : C == codes::fn   ? magnitude
                             : C == codes::fnuz ? sign
                                                : largest;
  // What overflows to beyond `largest`, if it does not saturate.
  static constexpr u32 overflow = C == codes::ieee ? infinity : nan;
};

template <int E, int M, int B, codes C>
TILE_INLINE float decode(narrow_float<E, M, B, C> x) {
  using F = narrow_facts<E, M, B, C>;
  const u32 magnitude = x.bits & F::magnitude;
  // Subnormal codes count in units of the smallest one; others are shifted into place.
  const float small = static_cast<float>(magnitude) * power_of_two(1 - B - M);
  const u32 normal = (magnitude << (23 - M)) + (static_cast<u32>(127 - B) << 23);
  u32 value = magnitude >> M ? normal : bitcast<u32>(small);
  if (C == codes::ieee && magnitude >= F::infinity) {
    value = 0x7f800000u | (magnitude - F::infinity ? 0x400000u : 0u);
  }
  if (C == codes::fn && magnitude == F::magnitude) value = 0x7fc00000u;
  if (C == codes::fnuz && x.bits == F::sign) return bitcast<float>(0x7fc00000u);
  return bitcast<float>(value | (x.bits & F::sign) << (32 - F::width));
}

// Rounds to nearest even; beyond the largest number it stays there if SATURATE.
template <bool SATURATE, int E, int M, int B, codes C>
TILE_INLINE void encode(narrow_float<E, M, B, C>& result, float x) {
  using F = narrow_facts<E, M, B, C>;
  const u32 bits = bitcast<u32>(x);
  const u32 magnitude = bits & 0x7fffffffu;
  u32 code;
  if (magnitude < static_cast<u32>(128 - B) << 23) {  // below the smallest normal number
    const float units = bitcast<float>(magnitude) * power_of_two(B - 1 + M);
    code = static_cast<u32>(nearest_integer(units));
  } else {
    const u32 even = (magnitude >> (23 - M)) & 1;
    code = (magnitude + ((1u << (22 - M)) - 1) + even) >> (23 - M);
    code -= static_cast<u32>(127 - B) << M;
    const bool is_infinite = magnitude == 0x7f800000u;
    if (code > F::largest || is_infinite) {
      code = SATURATE || C == codes::finite ? F::largest : F::overflow;
    }
  }
  const bool is_nan = magnitude > 0x7f800000u;
  if (is_nan) code = F::nan;
  const bool signless = C == codes::fnuz && (code == 0 || code == F::nan);
  const bool positive = signless || (C == codes::finite && is_nan);
  if (!positive) code |= bits >> (32 - F::width) & F::sign;
  result.bits = static_cast<u8>(code);
}

TILE_INLINE float decode(e8m0 x) {
  const u32 code = x.bits;
  const u32 value = code == 255 ? 0x7fc00000u : code == 0 ? 0x00400000u : code << 23;
  return bitcast<float>(value);
}

template <bool SATURATE>
TILE_INLINE void encode(e8m0& result, float x) {
  const u32 bits = bitcast<u32>(x);
  const u32 exponent = bits >> 23 & 0xff, rest = bits & 0x7fffffu;
  u32 code = exponent + (rest >= 0x400000u);  // the middle goes up
  if (exponent == 0) code = rest >= 0x600000u;  // between 2^-127 and 2^-126
  if (code > 254) code = SATURATE ? 254 : 255;
  const bool is_number = bits <= 0x7f800000u || bits == 0x80000000u;
  result.bits = static_cast<u8>(is_number ? code : 255);
}

}  // namespace tile
