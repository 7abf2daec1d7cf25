// Copies from global to shared memory in the words of GPUs that make them while the thread goes
// on. Here they are made at once: then a commit or a wait has nothing to do.
#pragma once
#include "tile_hip/memory.h"

namespace tile {

// Copy 4, 8 or 16 bytes; where `predicate` is false write zeros and read nothing.
template <int BYTES, class T, class U>
TILE_DEVICE void cp_async(sptr<T> shared, const U* global, bool predicate = true) {
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16,
                "tile::cp_async: a copy has 4, 8 or 16 bytes");
  using V = typename access<BYTES>::type;
  V value{};
  if (predicate) value = *accessed<V>(global);
  *accessed<V>(shared) = value;
}
TILE_DEVICE void cp_async_commit() {}
template <int PENDING>
TILE_DEVICE void cp_async_wait() {}

}  // namespace tile
