// What programs ask the second-level cache to do with the bytes of an access: there is no cache.
#pragma once
#include "tile_sim/pointers.h"

namespace tile {

enum hint { no_hint, evict_first, evict_last, evict_normal };

// Only accesses of global memory have hints, and only those that there are.
template <hint HINT, class Place>
constexpr void check_hint() {
  static_assert(HINT >= no_hint && HINT <= evict_normal, "there is no such cache hint");
  static_assert(HINT == no_hint || __is_same(Place, tsim_global),
                "a cache hint goes with global memory");
}

}  // namespace tile
