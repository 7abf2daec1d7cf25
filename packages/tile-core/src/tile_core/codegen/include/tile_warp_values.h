// What the threads of a warp compare and combine, the same on all GPUs: included where `bitcast`,
// `to_float`, `min` and `max` are known.
#pragma once

namespace tile {

// Bits that are equal where values are. Floats compare as numbers: a zero has one sign; NaN, whose
// bits equal themselves, is the caller's to tell apart.
template <class T>
TILE_INLINE auto matchable(T value) {
  if constexpr (same<T, double>) {
    return bitcast<u64>(value + 0.0);
  } else if constexpr (is_float<T>) {
    return bitcast<u32>(to_float(value) + 0.0f);
  } else if constexpr (sizeof(T) == 8) {
    return static_cast<u64>(value);
  } else {
    return static_cast<u32>(value);
  }
}

enum class reduction { sum, max, min, bitand_, bitor_ };

template <reduction KIND, class T>
TILE_INLINE T combine(T a, T b) {
  if constexpr (KIND == reduction::sum) {
    return static_cast<T>(a + b);
  } else if constexpr (KIND == reduction::max) {
    return max(a, b);
  } else if constexpr (KIND == reduction::min) {
    return min(a, b);
  } else if constexpr (KIND == reduction::bitand_) {
    return static_cast<T>(a & b);
  } else {
    return static_cast<T>(a | b);
  }
}

}  // namespace tile
