// Copies from global to shared memory that run while the thread goes on (sm_80 and newer).
// Older architectures copy at once: then a commit or a wait has nothing to do.
#pragma once
#include "tile_cuda/memory.h"

namespace tile {

// Copy 4, 8 or 16 bytes; where `predicate` is false write zeros and read nothing.
template <int BYTES, hint HINT = no_hint, class T, class U>
TILE_DEVICE void cp_async(T* shared, const U* global, bool predicate = true) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16,
                "tile::cp_async: a copy has 4, 8 or 16 bytes");
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  const u32 to = shared_address(shared);
  const u64 from = __cvta_generic_to_global(global);
  const u32 size = predicate ? BYTES : 0;
  if constexpr (BYTES == 16 && HINT != no_hint) {
    asm volatile("cp.async.cg.shared.global.L2::cache_hint.L2::128B [%0], [%1], 16, %2, %3;" ::"r"(
                     to),
                 "l"(from), "r"(size), "l"(cache_policy<HINT>())
                 : "memory");
  } else if constexpr (HINT != no_hint) {
    asm volatile("cp.async.ca.shared.global.L2::cache_hint.L2::128B [%0], [%1], %2, %3, %4;" ::"r"(
                     to),
                 "l"(from), "n"(BYTES), "r"(size), "l"(cache_policy<HINT>())
                 : "memory");
  } else if constexpr (BYTES == 16) {
    asm volatile("cp.async.cg.shared.global.L2::128B [%0], [%1], 16, %2;" ::"r"(to), "l"(from),
                 "r"(size)
                 : "memory");
  } else {
    asm volatile("cp.async.ca.shared.global.L2::128B [%0], [%1], %2, %3;" ::"r"(to), "l"(from),
                 "n"(BYTES), "r"(size)
                 : "memory");
  }
#else
  using V = typename vector_of<BYTES>::type;
  V value{};
  if (predicate) value = *reinterpret_cast<const V*>(global);
  *reinterpret_cast<V*>(shared) = value;
#endif
}

// Close this thread's group of copies.
TILE_DEVICE void cp_async_commit() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.commit_group;" ::: "memory");
#endif
}

// Wait until at most PENDING of this thread's groups are under way.
template <int PENDING>
TILE_DEVICE void cp_async_wait() {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  asm volatile("cp.async.wait_group %0;" ::"n"(PENDING) : "memory");
#endif
}

}  // namespace tile
