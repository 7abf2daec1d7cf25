// Copies of a wave from global to shared memory that run beside it, on AMD's machines.
#pragma once
#include "tile_sim/pointers.h"

namespace tile {

// Starts a copy by all 64 lanes: BYTES of lane l (4, or 16) go to `to` + l * BYTES, from element
// `index` behind `tensor`; zeros where `predicate` is false. `to` and `tensor` are one for all. An
// index of 32 bits is one whose byte 32 bits reach.
template <int BYTES, class T, class S, class I>
TILE_HOST void lds_load(const sptr<T>& to, const gptr<S>& tensor, I index, bool predicate = true,
                        unsigned line = __builtin_LINE()) {
  static_assert(BYTES == 4 || BYTES == 16, "a lane copies 4 or 16 bytes");
  tsim_lds_load(&to, &tensor, (long long)index * (long long)sizeof(S), BYTES, predicate,
                sizeof(I) <= 4, line);
}

// Until at most LEFT copies of this wave are under way. Other waves learn of them by a barrier.
template <int LEFT>
TILE_HOST void lds_wait(unsigned line = __builtin_LINE()) {
  static_assert(LEFT >= 0 && LEFT < 64, "machines count to 63");
  tsim_lds_wait(LEFT, line);
}

}  // namespace tile
