// Copies from global to shared memory that run beside the threads.
#pragma once
#include "tile_sim/cache_hint.h"

namespace tile {

// Starts a copy of BYTES bytes (4, 8 or 16); zeros where `predicate` is false.
template <int BYTES, hint HINT = no_hint, class T, class S>
TILE_HOST void cp_async(const sptr<T>& to, const gptr<S>& from, bool predicate = true,
                        unsigned line = __builtin_LINE()) {
  check_hint<HINT, tsim_global>();
  static_assert(BYTES == 4 || BYTES == 8 || BYTES == 16, "copies are of 4, 8 or 16 bytes");
  tsim_copy_async(&to, &from, BYTES, predicate, line);
}

// Closes a group: the copies this thread has started since the last one.
TILE_HOST void cp_async_commit(unsigned line = __builtin_LINE()) { tsim_copy_commit(line); }

// Waits until at most the latest PENDING groups of this thread are on their way.
template <int PENDING>
TILE_HOST void cp_async_wait(unsigned line = __builtin_LINE()) {
  tsim_copy_wait(PENDING, line);
}

}  // namespace tile
