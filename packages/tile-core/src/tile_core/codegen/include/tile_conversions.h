// Conversions: `tile::cast<T>(x)` for all pairs of element types, the same on all GPUs.
//
// Float to integer truncates, saturates and takes NaN to 0; integers wrap; a number is true
// unless it is zero; every rounding is once, to nearest even; narrow floats saturate.
//
// Included where are known:
//
//   to_float(x)                 any number that float32 holds
//   to_odd_float(x)             float64 such that rounding once more gives what one rounding would
//   truncated<T>(x)             float32 or float64 to an integer of at least 32 bits: saturated,
//                               NaN is 0
//   to_half(x), to_bfloat16(x), to_narrow<T, SATURATE>(x), value_of(x)
#pragma once

namespace tile {

// A saturated 32-bit integer in a type of at most 32 bits.
template <class T>
TILE_INLINE T narrowed(int x) {
  if constexpr (sizeof(T) == 4) {
    return static_cast<T>(x);
  } else {
    constexpr int low = is_signed<T> ? -(1 << (8 * sizeof(T) - 1)) : 0;
    constexpr int high = low + (1 << (8 * sizeof(T))) - 1;
    const int above = low > x ? low : x;
    return static_cast<T>(above < high ? above : high);
  }
}

template <class T, class S>
TILE_INLINE T float_to_integer(S x) {
  if constexpr (!same<S, double> && !same<S, float>) {
    return float_to_integer<T>(to_float(x));
  } else if constexpr (sizeof(T) == 8 || same<T, u32>) {
    return truncated<T>(x);
  } else {
    return narrowed<T>(truncated<int>(x));
  }
}

template <class T, bool SATURATE, class S>
TILE_INLINE T convert(S x) {
  if constexpr (same<T, S>) {
    return x;
  } else if constexpr (same<T, half_t>) {
    return to_half(x);
  } else if constexpr (is_int4<S>) {
    return convert<T, SATURATE>(static_cast<i16>(static_cast<int>(x)));
  } else if constexpr (is_int4<T>) {
    if constexpr (is_float<S>) {
      constexpr int low = same<T, i4> ? -8 : 0;
      const int whole = float_to_integer<int>(x), above = low > whole ? low : whole;
      return T(above < low + 15 ? above : low + 15);
    } else {
      return T(static_cast<int>(x));
    }
  } else if constexpr (same<T, bool>) {
    if constexpr (is_half<S> || is_narrow<S>) {
      return to_float(x) != 0.0f;
    } else {
      return x != S(0);
    }
  } else if constexpr (is_narrow<T>) {
    if constexpr (same<S, double> || same<S, i32> || same<S, u32>) {
      return to_narrow<T, SATURATE>(to_odd_float(static_cast<double>(x)));
    } else {
      return to_narrow<T, SATURATE>(to_float(x));
    }
  } else if constexpr (same<T, bfloat16_t>) {
    return to_bfloat16(x);
  } else if constexpr (is_half<S> || is_narrow<S>) {
    if constexpr (is_float<T>) {
      return static_cast<T>(to_float(x));
    } else {
      return float_to_integer<T>(x);
    }
  } else if constexpr (is_float<S> && !is_float<T>) {
    return float_to_integer<T>(x);
  } else {
    return static_cast<T>(x);
  }
}

template <class T, class S>
TILE_INLINE T cast(S x) {
  return convert<T, true>(value_of(x));
}

// As `cast`, but narrow floats overflow to infinity or NaN, whichever the type has.
template <class T, class S>
TILE_INLINE T cast_unsaturated(S x) {
  return convert<T, false>(value_of(x));
}

}  // namespace tile
