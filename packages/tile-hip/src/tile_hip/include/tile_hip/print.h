// Printing, and assertions.
#pragma once
#include "tile_hip/cast.h"

namespace tile {

#if TILE_BARE
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
#else
// Values as C passes them to functions of any number of arguments.
template <class T>
TILE_DEVICE auto printable(T x) {
  if constexpr (is_half<T> || is_narrow<T> || same<T, float>) {
    return static_cast<double>(to_float(x));
  } else {
    return x;
  }
}

template <class... T>
TILE_DEVICE int print(const char* format, T... values) {
  return ::printf(format, printable(value_of(values))...);
}

TILE_DEVICE void assert_that(bool condition, const char* text) {
  if (condition) return;
  ::printf("%s (block %d, %d, %d, thread %d, %d, %d)\n", text, (int)blockIdx.x, (int)blockIdx.y,
           (int)blockIdx.z, (int)threadIdx.x, (int)threadIdx.y, (int)threadIdx.z);
  __builtin_trap();
}
#endif

}  // namespace tile
