// Floats of 8 bits by instruction, where an architecture has one, or by way of float16.
#pragma once
#include "tile_hip/narrow.h"

namespace tile {

// How the unit for conversions serves a type. It has two formats, those of the matrix unit: one
// with 3 bits of mantissa and one with 2. On gfx942 a code means half of what it means without
// "fnuz"; the unit gives the same code for half the number, if neither NaN nor the sign of zero
// are asked of it.
struct no_unit {
  static constexpr bool encodes = false, decodes = false;
};
template <bool IS_FP8, int LARGEST, bool IS_HALVED>
struct by_unit {
  static constexpr bool encodes = true, decodes = !IS_HALVED, is_fp8 = IS_FP8;
  static constexpr bool is_halved = IS_HALVED;
  static constexpr float largest = static_cast<float>(LARGEST);
};
template <class T>
struct unit_of : no_unit {};
#if defined(__gfx942__)
template <>
struct unit_of<e4m3_fnuz> : by_unit<true, 240, false> {};
template <>
struct unit_of<e5m2_fnuz> : by_unit<false, 57344, false> {};
template <>
struct unit_of<e4m3> : by_unit<true, 448, true> {};
template <>
struct unit_of<e5m2> : by_unit<false, 57344, true> {};
#elif defined(__gfx950__)
template <>
struct unit_of<e4m3> : by_unit<true, 448, false> {};
template <>
struct unit_of<e5m2> : by_unit<false, 57344, false> {};
#endif

#if defined(__gfx942__) || defined(__gfx950__)
template <bool IS_FP8>
TILE_DEVICE u32 code_by_unit(float x) {
  if constexpr (IS_FP8) {
    return static_cast<u32>(__builtin_amdgcn_cvt_pk_fp8_f32(x, 0.0f, 0, false)) & 0xff;
  } else {
    return static_cast<u32>(__builtin_amdgcn_cvt_pk_bf8_f32(x, 0.0f, 0, false)) & 0xff;
  }
}
// Beyond the largest number the instruction gives NaN or infinity: it is not asked about those.
template <class T>
TILE_DEVICE T encode_by_unit(float x) {
  using U = unit_of<T>;
  const float clamped = __builtin_amdgcn_fmed3f(x, U::largest, -U::largest);
  if constexpr (U::is_halved) {
    const u32 code = x != x ? (U::is_fp8 ? 0x7fu : 0x7eu) : code_by_unit<U::is_fp8>(clamped * 0.5f);
    return {static_cast<u8>(code | (bits_as<u32>(x) >> 24 & 0x80u))};
  } else {
    return {static_cast<u8>(code_by_unit<U::is_fp8>(x != x ? x : clamped))};
  }
}
template <class T>
TILE_DEVICE float decode_by_unit(T x) {
  if constexpr (unit_of<T>::is_fp8) {
    return __builtin_amdgcn_cvt_f32_fp8(x.bits, 0);
  } else {
    return __builtin_amdgcn_cvt_f32_bf8(x.bits, 0);
  }
}
#endif

// Every number of these is a float16. e5m2 is the upper half of one; the bits of those with 3 bits
// of mantissa, moved to their places, are one that is too small by a power of two.
template <class T>
constexpr bool is_half_number = same<T, e4m3> || same<T, e4m3_fnuz> || same<T, e5m2>;
template <class T>
TILE_DEVICE half_t decode_half(T x) {
  const u32 bits = x.bits;
  if constexpr (same<T, e5m2>) {
    return bits_as<half_t>(static_cast<u16>(bits << 8));
  } else {
    constexpr bool is_fn = same<T, e4m3>;
    const half_t scale = static_cast<half_t>(is_fn ? 256.0f : 128.0f);
    const u32 moved = (bits & 0x80u) << 8 | (bits & 0x7fu) << 7;
    const half_t number = bits_as<half_t>(static_cast<u16>(moved)) * scale;
    const bool is_nan = is_fn ? (bits & 0x7f) == 0x7f : bits == 0x80;
    return is_nan ? bits_as<half_t>(static_cast<u16>(0x7fff)) : number;
  }
}

template <class T>
TILE_DEVICE float from_narrow(T x) {
#if defined(__gfx942__) || defined(__gfx950__)
  if constexpr (unit_of<T>::decodes) return decode_by_unit(x);
#endif
  if constexpr (is_half_number<T>) {
    return static_cast<float>(decode_half(x));
  } else {
    return decode(x);
  }
}

template <class T, bool SATURATE = true>
TILE_DEVICE T to_narrow(float x) {
#if defined(__gfx942__) || defined(__gfx950__)
  if constexpr (SATURATE && unit_of<T>::encodes) return encode_by_unit<T>(x);
#endif
  T result;
  encode<SATURATE>(result, x);
  return result;
}

}  // namespace tile
