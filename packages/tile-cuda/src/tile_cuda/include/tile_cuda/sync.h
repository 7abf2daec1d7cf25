// Barriers of the block and the warp, and fences.
#pragma once
#include "tile_cuda/types.h"

namespace tile {

// All threads of the block.
TILE_DEVICE void sync() { __syncthreads(); }

// All threads of the warp; orders their accesses of memory.
TILE_DEVICE void sync_warp(u32 mask = 0xffffffffu) { __syncwarp(mask); }

// `threads` threads at barrier `id`, 0 to 15; constants keep the other barriers free.
TILE_DEVICE void bar_sync(int id, int threads) {
  asm volatile("bar.sync %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// As `bar_sync`, for threads that do not wait.
TILE_DEVICE void bar_arrive(int id, int threads) {
  asm volatile("bar.arrive %0, %1;" ::"r"(id), "r"(threads) : "memory");
}

// Barriers that also count or combine a condition.
TILE_DEVICE int syncthreads_count(bool condition) { return __syncthreads_count(condition); }
TILE_DEVICE int syncthreads_and(bool condition) { return __syncthreads_and(condition); }
TILE_DEVICE int syncthreads_or(bool condition) { return __syncthreads_or(condition); }

// Order this thread's accesses before its later ones: for the block, the device, the system.
TILE_DEVICE void fence_block() { __threadfence_block(); }
TILE_DEVICE void fence() { __threadfence(); }
TILE_DEVICE void fence_system() { __threadfence_system(); }

}  // namespace tile
