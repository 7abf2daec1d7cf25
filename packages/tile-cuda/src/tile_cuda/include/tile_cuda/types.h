// Element types, pointers, registers and what decorates kernels.
#pragma once

#ifdef __CUDACC_RTC__
// NVRTC has no <stdint.h>; texts that users add to a kernel expect its names.
using int8_t = signed char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long long;
using uint64_t = unsigned long long;
#else
#include <stdint.h>
#endif
#include <cuda_bf16.h>
#include <cuda_fp16.h>

#define TILE_DEVICE __device__ __forceinline__
#define TILE_INLINE TILE_DEVICE
// A kernel whose blocks have `threads` threads, `blocks` of which shall fit one multiprocessor.
#define TILE_KERNEL(threads, blocks) extern "C" __global__ __launch_bounds__(threads, blocks)
// Blocks that run side by side and reach each other's shared memory.
#define TILE_CLUSTER(x, y, z) __cluster_dims__(x, y, z)
// A parameter: how asynchronous copies see a tensor.
#define TILE_TENSOR_MAP(name) const __grid_constant__ tile::tensor_map name
#define TILE_UNROLL _Pragma("unroll")
#define TILE_NO_UNROLL _Pragma("unroll 1")
// On the host this lists a kernel for the launcher; the driver finds kernels by name.
#define TILE_EXPORT(kernel)

#define TILE_INFINITY __int_as_float(0x7f800000)
#define TILE_NAN __int_as_float(0x7fffffff)

#include "tile_types.h"

using half_t = __half;
using bfloat16_t = __nv_bfloat16;

#include "tile_type_traits.h"
#include "tile_plain_pointers.h"

namespace tile {

// Kernel parameters: memory that no other parameter of the kernel overlaps.
template <class T>
using gptr = T* __restrict__;

// Those of kernels that signal: others may write there while the kernel runs, and read.
template <class T>
using live_gptr = T*;

// The block's shared memory.
template <class T>
using sptr = T*;

// `N` values in the registers of one thread; constant indices only, once loops are unrolled.
template <class T, int N>
using frag __attribute__((aligned(16))) = T[N];

// A tensor in the form that cuTensorMapEncodeTiled of the driver gives it.
struct alignas(128) tensor_map {
  u64 words[16];
};

// The block's arena: sized by the launch, aligned for every kind of access.
extern __shared__ __align__(1024) unsigned char arena[];

// `count` elements of the arena from `offset` bytes on.
template <class T>
TILE_DEVICE sptr<T> smem(u32 offset, u32 count) {
  return reinterpret_cast<T*>(arena + offset);
}

// Memory at an address given as a number.
template <class T>
TILE_DEVICE T* at(u64 address) {
  return reinterpret_cast<T*>(address);
}
template <class T>
TILE_DEVICE T* at(void* address) {
  return static_cast<T*>(address);
}

#ifdef __CUDA_ARCH__
constexpr int arch = __CUDA_ARCH__;  // 800 for sm_80
#else
constexpr int arch = 9999;  // the host half of nvcc: parsed, never run
#endif

}  // namespace tile
