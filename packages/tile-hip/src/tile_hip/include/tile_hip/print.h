// Printing, and assertions.
#pragma once
#include "tile_hip/cast.h"

#if TILE_BARE
namespace tile {

// printf needs AMD's device libraries, and its runtime on the host.
template <class... T>
TILE_DEVICE int print(const char*, const T&...) {
  static_assert(never<T...>,
                "tile::print needs hiprtc or hipcc: clang alone has no printf for AMD GPUs");
  return 0;
}

// Stop the kernel, and every later call on the device, unless `condition` holds.
TILE_DEVICE void assert_that(bool condition, const char*) {
  if (!condition) __builtin_trap();
}

}  // namespace tile
#else
namespace tile {

TILE_DEVICE void trap() { __builtin_trap(); }

}  // namespace tile

#include "tile_print.h"
#endif
