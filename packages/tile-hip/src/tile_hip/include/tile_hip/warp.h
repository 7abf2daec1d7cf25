// Exchange between the 64 threads of a wave; all of them take part.
#pragma once
#include "tile_hip/arithmetic.h"
#include "tile_warp_values.h"

namespace tile {

constexpr int wave = 64;

// This thread's number in its wave.
TILE_DEVICE int lane_index() {
  return static_cast<int>(__builtin_amdgcn_mbcnt_hi(~0u, __builtin_amdgcn_mbcnt_lo(~0u, 0u)));
}

// The word of lane `from`, through the paths of shared memory (which is not touched).
TILE_DEVICE u32 permuted(u32 word, int from) {
  return static_cast<u32>(__builtin_amdgcn_ds_bpermute(from * 4, static_cast<int>(word)));
}

// Data parallel primitives: operands that come from other lanes of the same row of 16.
// 0x100 + n: from n lanes up; 0x110 + n: from n lanes down; 0x120 + n: rotated; below 0x100: the
// four lanes of a quad. With nothing to keep, the compiler makes it part of the instruction that
// takes the result.
template <int CONTROL>
TILE_DEVICE u32 from_row(u32 word) {
  return static_cast<u32>(
      __builtin_amdgcn_update_dpp(0, static_cast<int>(word), CONTROL, 0xf, 0xf, true));
}
// The same in the second and the fourth quad of a row; elsewhere `old`.
template <int CONTROL>
TILE_DEVICE u32 from_row_in_odd_quads(u32 old, u32 word) {
  return static_cast<u32>(__builtin_amdgcn_update_dpp(static_cast<int>(old), static_cast<int>(word),
                                                      CONTROL, 0xf, 0xa, false));
}
constexpr int quad(int a, int b, int c, int d) { return a | b << 2 | c << 4 | d << 6; }

#if defined(__gfx950__)
// Exchange of rows, or halves of the wave, without shared memory's paths.
TILE_DEVICE u32 from_other_half(u32 word) {
  const auto both = __builtin_amdgcn_permlane32_swap(word, word, false, false);
  return lane_index() < 32 ? both[1] : both[0];
}
TILE_DEVICE u32 from_next_row(u32 word) {
  const auto both = __builtin_amdgcn_permlane16_swap(word, word, false, false);
  return (lane_index() & 16) == 0 ? both[1] : both[0];
}
#else
TILE_DEVICE u32 from_other_half(u32 word) { return permuted(word, lane_index() ^ 32); }
TILE_DEVICE u32 from_next_row(u32 word) {
  return static_cast<u32>(__builtin_amdgcn_ds_swizzle(static_cast<int>(word), 0x401f));
}
#endif

// The word of the lane whose number differs in the bits of `by`.
TILE_DEVICE u32 exchanged(u32 word, int by) {
  if (__builtin_constant_p(by)) {
    if (by == 0) return word;
    if (by == 1) return from_row<quad(1, 0, 3, 2)>(word);
    if (by == 2) return from_row<quad(2, 3, 0, 1)>(word);
    if (by == 3) return from_row<quad(3, 2, 1, 0)>(word);
    if (by == 4) return from_row_in_odd_quads<0x114>(from_row<0x104>(word), word);
    if (by == 7) return from_row<0x141>(word);   // half a row mirrored
    if (by == 8) return from_row<0x128>(word);   // a row rotated by its half
    if (by == 15) return from_row<0x140>(word);  // a row mirrored
    if (by == 16) return from_next_row(word);
    if (by == 32) return from_other_half(word);
  }
  return permuted(word, lane_index() ^ by);
}

// Values travel as words of 32 bits, one or two.
template <class T, class F>
TILE_DEVICE T by_words(T value, F move) {
  if constexpr (sizeof(T) == 8) {
    const u64 bits = bits_as<u64>(value);
    const u32 low = move(static_cast<u32>(bits)), high = move(static_cast<u32>(bits >> 32));
    return bits_as<T>(static_cast<u64>(high) << 32 | low);
  } else {
    using U = bits_of<T>;
    return bits_as<T>(static_cast<U>(move(static_cast<u32>(bits_as<U>(value)))));
  }
}

// Segments of `width` lanes exchange among themselves; a lane without a partner keeps its value.
template <class T>
TILE_DEVICE T shfl_xor(T value, int by, int width = wave) {
  if (width == wave || (__builtin_constant_p(by) && by < width)) {
    return by_words(value, [=](u32 word) { return exchanged(word, by); });
  }
  const int lane = lane_index(), from = lane ^ by, end = (lane | (width - 1)) + 1;
  return by_words(value, [=](u32 word) { return permuted(word, from < end ? from : lane); });
}
template <class T>
TILE_DEVICE T shfl_down(T value, int by, int width = wave) {
  const int lane = lane_index(), within = (lane & (width - 1)) + by;
  const int from = within < width ? lane + by : lane;
  return by_words(value, [=](u32 word) { return permuted(word, from); });
}
template <class T>
TILE_DEVICE T shfl_up(T value, int by, int width = wave) {
  const int lane = lane_index(), within = (lane & (width - 1)) - by;
  const int from = within >= 0 ? lane - by : lane;
  return by_words(value, [=](u32 word) { return permuted(word, from); });
}
template <class T>
TILE_DEVICE T shfl_idx(T value, int lane, int width = wave) {
  const int from = (lane_index() & ~(width - 1)) | (lane & (width - 1));
  if (__builtin_constant_p(lane) && width == wave) {
    return by_words(value, [=](u32 word) {
      return static_cast<u32>(__builtin_amdgcn_readlane(static_cast<int>(word), lane & 63));
    });
  }
  return by_words(value, [=](u32 word) { return permuted(word, from); });
}

TILE_DEVICE u64 activemask() { return lanes_where(true); }
template <class T>
TILE_DEVICE u64 ballot(T condition) {
  return lanes_where(cast<bool>(condition));
}
template <class T>
TILE_DEVICE int any(T condition) {
  return lanes_where(cast<bool>(condition)) != 0;
}
template <class T>
TILE_DEVICE int all(T condition) {
  return lanes_where(!cast<bool>(condition)) == 0;
}

TILE_DEVICE u32 first_lanes(u32 value) {
  return static_cast<u32>(__builtin_amdgcn_readfirstlane(static_cast<int>(value)));
}
TILE_DEVICE u64 first_lanes(u64 value) {
  return static_cast<u64>(first_lanes(static_cast<u32>(value >> 32))) << 32 |
         first_lanes(static_cast<u32>(value));
}
// The lanes that hold the same value as this one. One value at a time: that of the first lane
// which has not found its own yet.
template <class T>
TILE_DEVICE u64 match_any(T value) {
  const auto mine = matchable(value);
  u64 found = 0;
  bool searches = value == value;
  while (searches) {
    if (first_lanes(mine) == mine) {
      found = lanes_where(true);
      searches = false;
    }
  }
  return found;
}
// All lanes if all hold the same value, else none.
template <class T>
TILE_DEVICE u64 match_all(T value) {
  const auto mine = matchable(value);
  const bool differs = first_lanes(mine) != mine || value != value;
  return lanes_where(differs) == 0 ? activemask() : 0;
}

// Sums of floats of 16 bits and fewer are kept in float32. Once halves of a row agree, lanes 4 up
// hold what lanes 4 apart hold, and a rotation does for an exchange. `width` is 64, or 32 for the
// two halves of a wave apart.
template <reduction KIND, class T>
TILE_DEVICE T warp_reduce(T value, int width) {
  if constexpr (is_half<T> || is_narrow<T>) {
    return cast<T>(warp_reduce<KIND>(to_float(value), width));
  } else {
    if (width > 32) value = combine<KIND>(value, shfl_xor(value, 32));
    value = combine<KIND>(value, shfl_xor(value, 16));
    value = combine<KIND>(value, shfl_xor(value, 8));
    value = combine<KIND>(
        value, by_words(value, [](u32 word) { return from_row<0x124>(word); }));
    value = combine<KIND>(value, shfl_xor(value, 2));
    return combine<KIND>(value, shfl_xor(value, 1));
  }
}

template <class T>
TILE_DEVICE T warp_reduce_sum(T x, int width = wave) {
  return warp_reduce<reduction::sum>(x, width);
}
template <class T>
TILE_DEVICE T warp_reduce_max(T x, int width = wave) {
  return warp_reduce<reduction::max>(x, width);
}
template <class T>
TILE_DEVICE T warp_reduce_min(T x, int width = wave) {
  return warp_reduce<reduction::min>(x, width);
}
template <class T>
TILE_DEVICE T warp_reduce_bitand(T x, int width = wave) {
  return warp_reduce<reduction::bitand_>(x, width);
}
template <class T>
TILE_DEVICE T warp_reduce_bitor(T x, int width = wave) {
  return warp_reduce<reduction::bitor_>(x, width);
}

}  // namespace tile
