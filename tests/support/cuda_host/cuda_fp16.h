// The words of CUDA that the arithmetic half of the device header uses, for an ordinary compiler:
// conversions follow the PTX manual, "Data Movement and Conversion Instructions: cvt".
#pragma once
#include <cfenv>
#include <climits>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <algorithm>

#define __device__
#define __forceinline__ inline
#define __global__
#define __shared__
#define __launch_bounds__(threads, blocks)
#define __align__(n) __attribute__((aligned(n)))

using std::max;
using std::min;

struct __half {
  unsigned short bits;
  __half() = default;
  explicit __half(float x) {
    const _Float16 h = (_Float16)x;
    memcpy(&bits, &h, 2);
  }
  explicit operator float() const {
    _Float16 h;
    memcpy(&h, &bits, 2);
    return (float)h;
  }
};

inline float __int_as_float(int x) { float f; memcpy(&f, &x, 4); return f; }
inline double __longlong_as_double(long long x) { double f; memcpy(&f, &x, 8); return f; }

inline float __double2float_rz(double x) {
  const int before = fegetround();
  fesetround(FE_TOWARDZERO);
  volatile float y = (float)*(volatile double*)&x;
  fesetround(before);
  return y;
}

template <class T, class S>
T truncated(S x, T of_nan) {
  if (x != x) return of_nan;
  const S whole = std::trunc(x);
  const S limit = std::ldexp(S(1), 8 * sizeof(T) - (T(-1) < T(0)));
  if (whole >= limit) return T(-1) < T(0) ? T(~(1ull << (8 * sizeof(T) - 1))) : T(-1);
  if (T(-1) < T(0) ? whole < -limit : whole < 0) return T(-1) < T(0) ? T(1ull << (8 * sizeof(T) - 1)) : T(0);
  return (T)whole;
}
inline int __float2int_rz(float x) { return truncated<int>(x, 0); }
inline unsigned __float2uint_rz(float x) { return truncated<unsigned>(x, 0u); }
inline long long __float2ll_rz(float x) { return truncated<long long>(x, LLONG_MIN); }
inline unsigned long long __float2ull_rz(float x) { return truncated<unsigned long long>(x, 1ull << 63); }
inline int __double2int_rz(double x) { return truncated<int>(x, INT_MIN); }
inline unsigned __double2uint_rz(double x) { return truncated<unsigned>(x, 1u << 31); }
inline long long __double2ll_rz(double x) { return truncated<long long>(x, LLONG_MIN); }
inline unsigned long long __double2ull_rz(double x) { return truncated<unsigned long long>(x, 1ull << 63); }
inline int __float2int_rn(float x) { return (int)std::rint(x); }

inline float __half2float(__half x) { return (float)x; }
inline __half __float2half_rn(float x) { return __half(x); }
inline __half __double2half(double x) {
  const _Float16 h = (_Float16)x;
  __half y;
  memcpy(&y.bits, &h, 2);
  return y;
}
inline __half __hmul(__half a, __half b) { return __half((float)a * (float)b); }
inline __half __hsub(__half a, __half b) { return __half((float)a - (float)b); }
inline __half __habs(__half a) { return __half(std::fabs((float)a)); }
inline __half __hmin(__half a, __half b) { return __half(std::fmin((float)a, (float)b)); }
inline __half __hmax(__half a, __half b) { return __half(std::fmax((float)a, (float)b)); }
inline bool operator!=(__half a, __half b) { return (float)a != (float)b; }

inline int __popc(unsigned x) { return __builtin_popcount(x); }
inline int __popcll(unsigned long long x) { return __builtin_popcountll(x); }
inline int __clz(int x) { return x ? __builtin_clz(x) : 32; }
inline int __clzll(long long x) { return x ? __builtin_clzll(x) : 64; }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __ffsll(long long x) { return __builtin_ffsll(x); }
inline unsigned __cvta_generic_to_shared(const void* p) { return (unsigned)(uintptr_t)p; }

struct uint2 { unsigned x, y; };
struct alignas(16) uint4 { unsigned x, y, z, w; };
