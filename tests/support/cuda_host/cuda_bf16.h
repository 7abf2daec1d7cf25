// bfloat16 of CUDA for an ordinary compiler.
#pragma once
#include "cuda_fp16.h"

struct __nv_bfloat16 {
  unsigned short bits;
};

inline __nv_bfloat16 __float2bfloat16_rn(float x) {
  unsigned u;
  memcpy(&u, &x, 4);
  if (x != x) return {0x7fff};
  return {(unsigned short)((u + 0x7fffu + (u >> 16 & 1)) >> 16)};
}
inline float __bfloat162float(__nv_bfloat16 x) {
  const unsigned u = (unsigned)x.bits << 16;
  float f;
  memcpy(&f, &u, 4);
  return f;
}
// Through 80 bits: exact, and an odd last bit before the second rounding.
template <class T>
__nv_bfloat16 integer_to_bfloat16(T x) {
  const long double exact = (long double)x;
  const int before = fegetround();
  fesetround(FE_TOWARDZERO);
  volatile float down = (float)*(volatile const long double*)&exact;
  fesetround(before);
  float f = down;
  unsigned u;
  memcpy(&u, &f, 4);
  if ((long double)f != exact) u |= 1;
  memcpy(&f, &u, 4);
  return __float2bfloat16_rn(f);
}
inline __nv_bfloat16 __ll2bfloat16_rn(long long x) { return integer_to_bfloat16(x); }
inline __nv_bfloat16 __ull2bfloat16_rn(unsigned long long x) { return integer_to_bfloat16(x); }
inline __nv_bfloat16 __habs(__nv_bfloat16 a) { return {(unsigned short)(a.bits & 0x7fff)}; }
inline __nv_bfloat16 __hmin(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __float2bfloat16_rn(std::fmin(__bfloat162float(a), __bfloat162float(b)));
}
inline __nv_bfloat16 __hmax(__nv_bfloat16 a, __nv_bfloat16 b) {
  return __float2bfloat16_rn(std::fmax(__bfloat162float(a), __bfloat162float(b)));
}
inline bool operator!=(__nv_bfloat16 a, __nv_bfloat16 b) { return __bfloat162float(a) != __bfloat162float(b); }
