// What programs wish the second-level cache to do with the bytes of an access: there is no cache.
#pragma once
#include "tile_sim/pointers.h"

namespace tile {

enum hint { no_hint, evict_first, evict_last, evict_normal };

// Only accesses of global memory have wishes, and only those that there are.
template <hint WISH, class Place>
constexpr void check_hint() {
  static_assert(WISH >= no_hint && WISH <= evict_normal, "there is no such wish for the cache");
  static_assert(WISH == no_hint || __is_same(Place, tsim_global),
                "a wish for the cache goes with global memory");
}

}  // namespace tile
