// Copies from tensors straight to shared memory, which run while the wave goes on.
#pragma once
#include "tile_hip/memory.h"

#ifndef TILE_BUFFER_DISTANCE
#define TILE_BUFFER_DISTANCE 0
#endif

namespace tile {

// A buffer as its instructions know it: 48 bits of address, bytes, and words of 32 bits without
// swizzle. Source: AMD, "CDNA3 Instruction Set Architecture", 9.1.8, "Buffer Resource".
typedef int buffer __attribute__((vector_size(16)));

TILE_DEVICE int first_lane(u32 word) { return uniform(static_cast<int>(word)); }

constexpr u32 end_of_buffer = 0xfffffff0u;  // what starts here is outside

// `address` is made of what all lanes have in common: kernel parameters, blocks, `uniform`.
TILE_DEVICE buffer buffer_at(u64 address) {
  const int low = static_cast<int>(static_cast<u32>(address));
  const int high = static_cast<int>(address >> 32 & 0xffff);
  return buffer{low, high, static_cast<int>(end_of_buffer), 0x00027000};
}

// Lane l's BYTES from `offset` go to shared memory `to` + l * BYTES; zeros where `offset` is
// outside. The compiler does not look inside: it neither waits for these copies nor keeps the
// distances that the machine asks for. One instruction stands between the change of M0 and its
// use; MORE of them where a vector instruction may just have written the words of the buffer, whose
// use is five behind: that is seen in the assembly, and asked for by TILE_BUFFER_DISTANCE. The
// compiler's own intrinsic is no choice: with it, all copies are waited for before any read of
// shared memory.
template <int BYTES, int MORE>
TILE_DEVICE void copy_to_lds(u32 to, buffer from, u32 offset) {
#define TILE_COPY(LOAD)                                                                     \
  asm volatile("s_mov_b32 m0, %0\n\ts_nop %3\n\t" LOAD " %1, %2, 0 offen lds" ::"s"(base), \
               "v"(offset), "s"(from), "n"(MORE)                                            \
               : "memory")
  const int base = first_lane(to);
  if constexpr (BYTES == 4) {
    TILE_COPY("buffer_load_dword");
  } else {
#if defined(__gfx950__)
    static_assert(BYTES == 16, "tile::lds_load: lanes copy 4 or 16 bytes");
    TILE_COPY("buffer_load_dwordx4");
#else
    static_assert(BYTES == 4, "tile::lds_load of more than 4 bytes a lane needs gfx950");
#endif
  }
#undef TILE_COPY
}

// Lane l's BYTES go to `base` + l * BYTES, from element `index` behind `tensor` on; zeros where
// `predicate` is false. All lanes take part, with one `base` and one `tensor`; complete after
// lds_wait.
//
// An index of 32 bits is one whose byte 32 bits reach, too. Of one of 64 bits nothing is known:
// lanes whose addresses differ only below bit 31 copy together, the others after them. Almost
// always that is one round; more copies than one are waited for as well as one, being older than
// those that may stay under way.
template <int BYTES, class T, class U, class I>
TILE_DEVICE void lds_load(sptr<T> base, const U* tensor, I index, bool predicate = true) {
  const u64 start = (u64)tensor;
  if constexpr (sizeof(I) <= 4) {
    const u32 offset = static_cast<u32>(index) * static_cast<u32>(sizeof(U));
    copy_to_lds<BYTES, TILE_BUFFER_DISTANCE>(shared_address(base), buffer_at(start),
                          predicate ? offset : end_of_buffer);
  } else {
    const i64 byte = predicate ? static_cast<i64>(index) * static_cast<i64>(sizeof(U)) : 0;
    const u64 address = start + static_cast<u64>(byte);
    const u32 window = static_cast<u32>(address >> 31);
    const u32 offset = static_cast<u32>(address) & 0x7fffffffu;
    u64 left = lanes_where(true);
    while (left != 0) {  // alike in all lanes
      const int leader = __builtin_ctzll(left);
      const bool mine = static_cast<int>(window) ==
                        __builtin_amdgcn_readlane(static_cast<int>(window), leader);
      left &= ~lanes_where(mine);
      if (mine) {  // their own: compilers take equal values for one, be it a lane's
        const u64 common = static_cast<u32>(first_lane(window));
        const buffer from = buffer_at(common << 31);
        copy_to_lds<BYTES, 3>(shared_address(base), from, predicate ? offset : end_of_buffer);
      }
    }
  }
}

// Until at most PENDING of this wave's lds_loads are under way.
template <int PENDING>
TILE_DEVICE void lds_wait() {
  static_assert(PENDING >= 0 && PENDING < 64, "tile::lds_wait: up to 63 copies are told apart");
  asm volatile("s_waitcnt vmcnt(%0)" ::"n"(PENDING) : "memory");
}

}  // namespace tile
