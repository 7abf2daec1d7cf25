// Printing, and assertions, the same on all GPUs that have C's printf: included where `to_float`
// and `trap`, which stops the kernel, are known.
#pragma once

namespace tile {

// Values as C passes them to functions of any number of arguments.
template <class T>
TILE_INLINE auto printable(T x) {
  if constexpr (is_half<T> || is_narrow<T> || same<T, float>) {
    return static_cast<double>(to_float(x));
  } else {
    return x;
  }
}

template <class... T>
TILE_INLINE int print(const char* format, T... values) {
  return ::printf(format, printable(value_of(values))...);
}

// Stop the kernel, and every later call on the device, unless `condition` holds.
TILE_INLINE void assert_that(bool condition, const char* text) {
  if (condition) return;
  ::printf("%s (block %d, %d, %d, thread %d, %d, %d)\n", text, (int)blockIdx.x, (int)blockIdx.y,
           (int)blockIdx.z, (int)threadIdx.x, (int)threadIdx.y, (int)threadIdx.z);
  trap();
}

}  // namespace tile
