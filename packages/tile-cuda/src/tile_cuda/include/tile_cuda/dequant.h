// What 4-bit numbers become floats with.
#pragma once
#include "tile_cuda/cast.h"

namespace tile {

template <u32 TABLE>
TILE_DEVICE u32 lop3(u32 a, u32 b, u32 c) {
  u32 d;
  asm("lop3.b32 %0, %1, %2, %3, %4;" : "=r"(d) : "r"(a), "r"(b), "r"(c), "n"(TABLE));
  return d;
}

TILE_DEVICE u32 picked_bytes(u32 low, u32 high, int a, int b, int c, int d) {
  return __byte_perm(low, high, a | b << 4 | c << 8 | d << 12);
}

TILE_DEVICE u32 masked_xor(u32 a, u32 mask, u32 with) { return lop3<0x6a>(a, mask, with); }

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

}  // namespace tile

#include "tile_dequant.h"
