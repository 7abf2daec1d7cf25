// Printing, and assertions.
#pragma once
#include "tile_cuda/cast.h"

namespace tile {

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
  return ::printf(format, printable(values)...);
}

// Stop the kernel, and every later call on the device, unless `condition` holds.
TILE_DEVICE void assert_that(bool condition, const char* text) {
  if (condition) return;
  ::printf("%s (block %d, %d, %d, thread %d, %d, %d)\n", text, blockIdx.x, blockIdx.y, blockIdx.z,
           threadIdx.x, threadIdx.y, threadIdx.z);
  __trap();
}

}  // namespace tile
