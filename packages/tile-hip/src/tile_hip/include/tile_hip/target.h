// What decorates functions, and what the toolchain at hand does not define by itself.
//
// The arithmetic of this header is ordinary C++: any compiler takes it, for tests on any machine.
#pragma once

#ifdef __HIP__
#define TILE_ON_GPU 1
#define TILE_LDS __attribute__((address_space(3)))
#define TILE_GLOBAL __attribute__((address_space(1)))
#ifndef __global__
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __host__ __attribute__((host))
#define __constant__ __attribute__((constant))
#endif
#ifndef __launch_bounds__
#define __launch_bounds__(...) __attribute__((launch_bounds(__VA_ARGS__)))
#endif
#ifndef __forceinline__
#define __forceinline__ inline __attribute__((always_inline))
#endif
#define TILE_DEVICE __device__ inline __attribute__((always_inline))
#else
#define TILE_ON_GPU 0
#define TILE_LDS
#define TILE_GLOBAL
#define TILE_DEVICE inline
#endif
#define TILE_INLINE TILE_DEVICE

// A kernel whose blocks have `threads` threads, `blocks` of which shall fit the four SIMDs of one
// compute unit. Waves that share a SIMD's registers with another one have no accumulation
// registers: then matrix instructions leave sums where arithmetic finds them.
#define TILE_KERNEL(threads, blocks)                                                   \
  extern "C" __global__ __attribute__((amdgpu_flat_work_group_size(threads, threads), \
                                       amdgpu_waves_per_eu(((threads) * (blocks) + 255) / 256)))
#define TILE_UNROLL _Pragma("unroll")
#define TILE_NO_UNROLL _Pragma("clang loop unroll(disable)")
// On the host this lists a kernel for the launcher; the driver finds kernels by name.
#define TILE_EXPORT(kernel)

#define TILE_INFINITY __builtin_inff()
#define TILE_NAN __builtin_nanf("")

#if TILE_ON_GPU && !defined(__HIPCC_RTC__)
// Texts that users add to a kernel expect these names.
#include <stdint.h>
using size_t = decltype(sizeof(0));
#endif

// Without AMD's own headers: a clang alone.
#if TILE_ON_GPU && !defined(__HIPCC_RTC__) && !defined(HIP_INCLUDE_HIP_HIP_RUNTIME_H)
#define TILE_BARE 1
#include "tile_hip/places.h"
#else
#define TILE_BARE 0
#endif
