// What programs ask the second-level cache to do with the bytes of an access.
#pragma once
#include "tile_cuda/bits.h"

namespace tile {

// How soon bytes are given up for others: before all, after all, or like any.
enum hint { no_hint, evict_first, evict_last, evict_normal };

// What instructions take for a hint: the assembler knows its bits, so no instruction makes it.
template <hint HINT>
TILE_DEVICE u64 cache_policy() {
  u64 policy;
  if constexpr (HINT == evict_first) {
    asm("createpolicy.fractional.L2::evict_first.b64 %0, 1.0;" : "=l"(policy));
  } else if constexpr (HINT == evict_last) {
    asm("createpolicy.fractional.L2::evict_last.b64 %0, 1.0;" : "=l"(policy));
  } else {
    static_assert(HINT == evict_normal, "tile::cache_policy: there is no such wish");
    asm("createpolicy.fractional.L2::evict_normal.b64 %0, 1.0;" : "=l"(policy));
  }
  return policy;
}

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
// Vectors of global memory that go with a hint.
template <hint HINT>
TILE_DEVICE u32 hinted_load(const u32* memory) {
  u32 value;
  asm volatile("ld.global.L2::cache_hint.b32 %0, [%1], %2;"
               : "=r"(value)
               : "l"(__cvta_generic_to_global(memory)), "l"(cache_policy<HINT>())
               : "memory");
  return value;
}
template <hint HINT>
TILE_DEVICE uint2 hinted_load(const uint2* memory) {
  uint2 value;
  asm volatile("ld.global.L2::cache_hint.v2.b32 {%0, %1}, [%2], %3;"
               : "=r"(value.x), "=r"(value.y)
               : "l"(__cvta_generic_to_global(memory)), "l"(cache_policy<HINT>())
               : "memory");
  return value;
}
template <hint HINT>
TILE_DEVICE uint4 hinted_load(const uint4* memory) {
  uint4 value;
  asm volatile("ld.global.L2::cache_hint.v4.b32 {%0, %1, %2, %3}, [%4], %5;"
               : "=r"(value.x), "=r"(value.y), "=r"(value.z), "=r"(value.w)
               : "l"(__cvta_generic_to_global(memory)), "l"(cache_policy<HINT>())
               : "memory");
  return value;
}
template <hint HINT>
TILE_DEVICE void hinted_store(u32* memory, u32 value) {
  asm volatile("st.global.L2::cache_hint.b32 [%0], %2, %1;" ::"l"(__cvta_generic_to_global(memory)),
               "l"(cache_policy<HINT>()), "r"(value)
               : "memory");
}
template <hint HINT>
TILE_DEVICE void hinted_store(uint2* memory, uint2 value) {
  asm volatile("st.global.L2::cache_hint.v2.b32 [%0], {%2, %3}, %1;" ::"l"(
                   __cvta_generic_to_global(memory)),
               "l"(cache_policy<HINT>()), "r"(value.x), "r"(value.y)
               : "memory");
}
template <hint HINT>
TILE_DEVICE void hinted_store(uint4* memory, uint4 value) {
  asm volatile("st.global.L2::cache_hint.v4.b32 [%0], {%2, %3, %4, %5}, %1;" ::"l"(
                   __cvta_generic_to_global(memory)),
               "l"(cache_policy<HINT>()), "r"(value.x), "r"(value.y), "r"(value.z), "r"(value.w)
               : "memory");
}
#endif

// Memory as one vector and back, with a hint where the architecture and the size have one.
template <hint HINT, class V>
TILE_DEVICE V read_vector(const V* memory) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (HINT != no_hint && sizeof(V) >= 4) return hinted_load<HINT>(memory);
#endif
  return *memory;
}
template <hint HINT, class V>
TILE_DEVICE void write_vector(V* memory, V value) {
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 800
  if constexpr (HINT != no_hint && sizeof(V) >= 4) return hinted_store<HINT>(memory, value);
#endif
  *memory = value;
}

}  // namespace tile
