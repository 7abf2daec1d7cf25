// Floats of 8 bits and fewer: from and to float32, by instruction or by integer arithmetic.
#pragma once
#include "tile_cuda/bits.h"

namespace tile {

TILE_DEVICE int nearest_integer(float x) { return __float2int_rn(x); }

}  // namespace tile

#include "tile_narrow_codes.h"

namespace tile {

// Every number of these two is a float16. e5m2 is the upper half of one; the bits of e4m3, moved
// to their places, are one that is too small by 2^8, the difference of the biases.
TILE_DEVICE half_t decode_half(e5m2 x) { return bitcast<half_t>(static_cast<u16>(x.bits << 8)); }
TILE_DEVICE half_t decode_half(e4m3 x) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  u32 pair;
  asm("cvt.rn.f16x2.e4m3x2 %0, %1;" : "=r"(pair) : "h"(static_cast<u16>(x.bits)));
  return bitcast<half_t>(static_cast<u16>(pair));
#else
  const u32 moved = (x.bits & 0x80u) << 8 | (x.bits & 0x7fu) << 7;
  const half_t scale = bitcast<half_t>(static_cast<u16>(0x5c00));  // 256
  const half_t number = __hmul(bitcast<half_t>(static_cast<u16>(moved)), scale);
  const bool is_nan = (x.bits & 0x7f) == 0x7f;
  return is_nan ? bitcast<half_t>(static_cast<u16>(0x7fff)) : number;
#endif
}
TILE_DEVICE float decode(e5m2 x) { return __half2float(decode_half(x)); }
TILE_DEVICE float decode(e4m3 x) { return __half2float(decode_half(x)); }

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
TILE_DEVICE void encode_by_instruction(e4m3& result, float x) {
  u16 pair;
  asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  result.bits = static_cast<u8>(pair);
}
TILE_DEVICE void encode_by_instruction(e5m2& result, float x) {
  u16 pair;
  asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(pair) : "f"(0.0f), "f"(x));
  result.bits = static_cast<u8>(pair);
}
#endif

template <class T, bool SATURATE = true>
TILE_DEVICE T to_narrow(float x) {
  T result;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
  if constexpr (SATURATE && (same<T, e4m3> || same<T, e5m2>)) {
    encode_by_instruction(result, x);
    return result;
  }
#endif
  encode<SATURATE>(result, x);
  return result;
}

}  // namespace tile
