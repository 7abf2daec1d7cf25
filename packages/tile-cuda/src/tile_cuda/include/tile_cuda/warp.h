// Exchange between the 32 threads of a warp; all of them take part.
#pragma once
#include "tile_cuda/arithmetic.h"
#include "tile_warp_values.h"

namespace tile {

constexpr u32 all_lanes = 0xffffffffu;

// Values travel as 32-bit or 64-bit words.
#define TILE_SHUFFLE(NAME, INTRINSIC)                                                        \
  template <class T>                                                                         \
  TILE_DEVICE T NAME(T value, int by, int width = 32) {                                      \
    using U = bits_of<T>;                                                                    \
    if constexpr (sizeof(T) == 8) {                                                          \
      return bitcast<T>(INTRINSIC(all_lanes, bitcast<u64>(value), by, width));               \
    } else {                                                                                 \
      const u32 word = bitcast<U>(value);                                                    \
      return bitcast<T>(static_cast<U>(INTRINSIC(all_lanes, word, by, width)));              \
    }                                                                                        \
  }
TILE_SHUFFLE(shfl_xor, __shfl_xor_sync)
TILE_SHUFFLE(shfl_down, __shfl_down_sync)
TILE_SHUFFLE(shfl_up, __shfl_up_sync)
TILE_SHUFFLE(shfl_idx, __shfl_sync)
#undef TILE_SHUFFLE

template <class T>
TILE_DEVICE int any(T condition) { return __any_sync(all_lanes, cast<bool>(condition)); }
template <class T>
TILE_DEVICE int all(T condition) { return __all_sync(all_lanes, cast<bool>(condition)); }
template <class T>
TILE_DEVICE u32 ballot(T condition) { return __ballot_sync(all_lanes, cast<bool>(condition)); }
TILE_DEVICE u32 activemask() { return __activemask(); }

// The lanes that hold the same value as this one, or all lanes if all do and else none.
template <class T>
TILE_DEVICE u32 match_any(T value) {
  const u32 lanes = __match_any_sync(all_lanes, matchable(value));
  return value != value ? 0u : lanes;
}
template <class T>
TILE_DEVICE u32 match_all(T value) {
  int same_everywhere;
  const u32 lanes = __match_all_sync(all_lanes, matchable(value), &same_everywhere);
  return value != value ? 0u : lanes;
}

// Integers of up to 32 bits: one instruction from sm_80 on.
constexpr bool has_redux = arch >= 800;
template <reduction KIND, class W>
TILE_DEVICE W warp_reduce_word(W value) {
#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 800
  if constexpr (KIND == reduction::sum) {
    return __reduce_add_sync(all_lanes, value);
  } else if constexpr (KIND == reduction::max) {
    return __reduce_max_sync(all_lanes, value);
  } else if constexpr (KIND == reduction::min) {
    return __reduce_min_sync(all_lanes, value);
  } else if constexpr (KIND == reduction::bitand_) {
    return static_cast<W>(__reduce_and_sync(all_lanes, static_cast<u32>(value)));
  } else {
    return static_cast<W>(__reduce_or_sync(all_lanes, static_cast<u32>(value)));
  }
#else
  return value;  // not reached: see has_redux
#endif
}

// Sums of floats of 16 bits and fewer are kept in float32.
template <reduction KIND, class T>
TILE_DEVICE T warp_reduce(T value) {
  if constexpr (is_half<T> || is_narrow<T>) {
    return cast<T>(warp_reduce<KIND>(to_float(value)));
  } else if constexpr (has_redux && !is_float<T> && sizeof(T) <= 4) {
    using W = typename when_else<is_signed<T>, int, u32>::type;
    return static_cast<T>(warp_reduce_word<KIND>(static_cast<W>(value)));
  } else {
    TILE_UNROLL
    for (int by = 16; by > 0; by /= 2) value = combine<KIND>(value, shfl_xor(value, by));
    return value;
  }
}

template <class T>
TILE_DEVICE T warp_reduce_sum(T x) { return warp_reduce<reduction::sum>(x); }
template <class T>
TILE_DEVICE T warp_reduce_max(T x) { return warp_reduce<reduction::max>(x); }
template <class T>
TILE_DEVICE T warp_reduce_min(T x) { return warp_reduce<reduction::min>(x); }
template <class T>
TILE_DEVICE T warp_reduce_bitand(T x) { return warp_reduce<reduction::bitand_>(x); }
template <class T>
TILE_DEVICE T warp_reduce_bitor(T x) { return warp_reduce<reduction::bitor_>(x); }

}  // namespace tile
