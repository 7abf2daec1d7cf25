// Exchange between the threads of a warp; all of them take part.
#pragma once
#include "tile_sim/arithmetic.h"

namespace tile {

// Values travel as words of 64 bits.
template <class T>
TILE_HOST u64 as_word(const T& x) {
  u64 word = 0;
  __builtin_memcpy(&word, &x, sizeof(T));
  return word;
}
template <class T>
TILE_HOST T shuffle(int kind, T value, int by, int width, unsigned line) {
  const u64 word = tsim_shuffle(kind, as_word(value), by, width, line);
  T result;
  __builtin_memcpy(&result, &word, sizeof(T));
  return result;
}

// Segments of `width` lanes exchange among themselves; 0 is the whole warp.
template <class T>
TILE_HOST T shfl_xor(T value, int by, int width = 0, unsigned line = __builtin_LINE()) {
  return shuffle(TSIM_SHUFFLE_XOR, value, by, width, line);
}
template <class T>
TILE_HOST T shfl_down(T value, int by, int width = 0, unsigned line = __builtin_LINE()) {
  return shuffle(TSIM_SHUFFLE_DOWN, value, by, width, line);
}
template <class T>
TILE_HOST T shfl_up(T value, int by, int width = 0, unsigned line = __builtin_LINE()) {
  return shuffle(TSIM_SHUFFLE_UP, value, by, width, line);
}
template <class T>
TILE_HOST T shfl_idx(T value, int lane, int width = 0, unsigned line = __builtin_LINE()) {
  return shuffle(TSIM_SHUFFLE_INDEX, value, lane, width, line);
}

// The value that all lanes of the warp have.
template <class T>
TILE_HOST T uniform(T value, unsigned line = __builtin_LINE()) {
  tsim_uniform(as_word(value), line);
  return value;
}

// A bit for each lane of a warp.
template <int LANES>
struct lane_bits {
  using type = u32;
};
template <>
struct lane_bits<64> {
  using type = u64;
};
using lane_mask = lane_bits<TILE_WARP_SIZE>::type;

TILE_HOST u64 lanes_where(bool condition, unsigned line) { return tsim_ballot(condition, line); }

template <class T>
TILE_HOST int any(T condition, unsigned line = __builtin_LINE()) {
  return lanes_where(cast<bool>(condition), line) != 0;
}
template <class T>
TILE_HOST int all(T condition, unsigned line = __builtin_LINE()) {
  return lanes_where(!cast<bool>(condition), line) == 0;
}
template <class T>
TILE_HOST lane_mask ballot(T condition, unsigned line = __builtin_LINE()) {
  return (lane_mask)lanes_where(cast<bool>(condition), line);
}
TILE_HOST lane_mask activemask(unsigned line = __builtin_LINE()) {
  return (lane_mask)tsim_active_lanes(line);
}

// The lanes that hold the same value as this one, or all lanes if all do and else none. Floats
// compare as numbers: a zero has one sign; NaN equals nothing.
template <class T>
TILE_HOST u64 matchable(T value) {
  if constexpr (is_float<T>) return bits_as<u64>(to_double(value) + 0.0);
  else return (u64)value;
}
template <class T>
TILE_HOST lane_mask match_any(T value, unsigned line = __builtin_LINE()) {
  const u64 lanes = tsim_match_any(matchable(value), line);
  return value != value ? 0u : (lane_mask)lanes;
}
template <class T>
TILE_HOST lane_mask match_all(T value, unsigned line = __builtin_LINE()) {
  const u64 lanes = tsim_match_all(matchable(value), line);
  return value != value ? 0u : (lane_mask)lanes;
}

// Pairs of lanes combine, at half the distance each time, as the device does. Sums of floats of
// 16 bits and fewer are kept in float32. `width` lanes, neighbours, have a result of their own.
template <class T, class F>
TILE_HOST T warp_reduce(T value, F combine, int width, unsigned line) {
  if constexpr (is_half<T> || is_narrow<T>) {
    return cast<T>(warp_reduce(to_float(value), combine, width, line));
  } else {
    for (int by = width / 2; by > 0; by /= 2) {
      value = combine(value, shuffle(TSIM_SHUFFLE_XOR, value, by, 0, line));
    }
    return value;
  }
}
template <class T>
TILE_HOST T warp_reduce_sum(T x, int width = TILE_WARP_SIZE, unsigned line = __builtin_LINE()) {
  return warp_reduce(x, [](auto a, auto b) { return static_cast<decltype(a)>(a + b); }, width, line);
}
template <class T>
TILE_HOST T warp_reduce_max(T x, int width = TILE_WARP_SIZE, unsigned line = __builtin_LINE()) {
  return warp_reduce(x, [](auto a, auto b) { return max(a, b); }, width, line);
}
template <class T>
TILE_HOST T warp_reduce_min(T x, int width = TILE_WARP_SIZE, unsigned line = __builtin_LINE()) {
  return warp_reduce(x, [](auto a, auto b) { return min(a, b); }, width, line);
}
template <class T>
TILE_HOST T warp_reduce_bitand(T x, int width = TILE_WARP_SIZE, unsigned line = __builtin_LINE()) {
  return warp_reduce(x, [](auto a, auto b) { return static_cast<decltype(a)>(a & b); }, width, line);
}
template <class T>
TILE_HOST T warp_reduce_bitor(T x, int width = TILE_WARP_SIZE, unsigned line = __builtin_LINE()) {
  return warp_reduce(x, [](auto a, auto b) { return static_cast<decltype(a)>(a | b); }, width, line);
}

}  // namespace tile
