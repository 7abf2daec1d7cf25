// Barriers of the block and the wave, and fences.
#pragma once
#include "tile_hip/cast.h"

namespace tile {

// All threads of the block. Waits for this wave's accesses of shared memory; stores to global
// memory reach the block in order as it is. Copies from memory to shared memory that are under way
// stay so: see lds_wait.
TILE_DEVICE void sync() {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_s_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// All threads of the wave; orders their accesses of memory.
TILE_DEVICE void sync_warp(u64 mask = ~0ull) {
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "wavefront");
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "wavefront");
}

// Barriers that also count or combine a condition: each wave adds the number of its lanes for
// which it holds. One more barrier keeps the next count off this one.
TILE_DEVICE int syncthreads_count(bool condition) {
  static __shared__ int total;
  const int lanes = __builtin_popcountll(lanes_where(condition));
  const u32 mine = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  const bool is_first = mine == 0;
  if (threadIdx.x == 0 && threadIdx.y == 0 && threadIdx.z == 0) total = 0;
  sync();
  if (is_first) {
    __hip_atomic_fetch_add(&total, lanes, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  }
  sync();
  const int result = total;
  sync();
  return result;
}
TILE_DEVICE int syncthreads_or(bool condition) { return syncthreads_count(condition) != 0; }
TILE_DEVICE int syncthreads_and(bool condition) { return syncthreads_count(!condition) == 0; }

// Barriers for some waves of the block: each is two words of its memory, how many waves came and
// how often it has opened. All lanes of a wave call these together. A wave is on the machine until
// it ends, and those that sleep leave the others their turns, so that all come that are waited for.
TILE_DEVICE void bar_ready(sptr<u32> words, u32 count) {
  const u32 thread = (threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x;
  for (u32 i = thread; i < count; i += blockDim.x * blockDim.y * blockDim.z) words[i] = 0;
  sync();
}

// Tells that this wave has come, after what it did before; the last of them opens the barrier.
TILE_DEVICE void bar_arrive_counted(sptr<u32> words, int number, int threads) {
  TILE_LDS u32* const barrier = words.place + 2 * (number & 15);
  __builtin_amdgcn_fence(__ATOMIC_RELEASE, "workgroup");
  __builtin_amdgcn_wave_barrier();
  const u32 lane = __builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u));
  if (lane == 0) {
    const u32 came = __hip_atomic_fetch_add(barrier, 1u, __ATOMIC_ACQ_REL,
                                            __HIP_MEMORY_SCOPE_WORKGROUP);
    if (came + 1 == static_cast<u32>(threads) / 64) {
      __hip_atomic_store(barrier, 0u, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
      __hip_atomic_fetch_add(barrier + 1, 1u, __ATOMIC_RELEASE, __HIP_MEMORY_SCOPE_WORKGROUP);
    }
  }
}

// The same, and waits until it opens.
TILE_DEVICE void bar_sync_counted(sptr<u32> words, int number, int threads) {
  TILE_LDS u32* const opened = words.place + 2 * (number & 15) + 1;
  // It cannot open without this wave, so that the number of openings stays until it has come.
  const u32 before = __hip_atomic_load(opened, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP);
  bar_arrive_counted(words, number, threads);
  while (__hip_atomic_load(opened, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_WORKGROUP) == before) {
    __builtin_amdgcn_s_sleep(1);
  }
  __builtin_amdgcn_wave_barrier();
  __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "workgroup");
}

// Order this thread's accesses before its later ones: for the block, the device, the system.
TILE_DEVICE void fence_block() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "workgroup"); }
TILE_DEVICE void fence() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, "agent"); }
TILE_DEVICE void fence_system() { __builtin_amdgcn_fence(__ATOMIC_SEQ_CST, ""); }

}  // namespace tile
