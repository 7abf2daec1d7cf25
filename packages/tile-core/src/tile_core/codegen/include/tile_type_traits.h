// What templates ask about element types, the same on all GPUs: included where the types of
// tile_types.h, `half_t` and `bfloat16_t` are known.
#pragma once

namespace tile {

template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

// False, but only known once a template is used: makes a static_assert wait for a user.
template <class... T>
constexpr bool never = false;

template <bool CONDITION, class T>
struct when;
template <class T>
struct when<true, T> {
  using type = T;
};

template <bool CONDITION, class A, class B>
struct when_else {
  using type = A;
};
template <class A, class B>
struct when_else<false, A, B> {
  using type = B;
};

template <class T>
constexpr bool is_narrow = false;
template <int E, int M, int B, codes C>
constexpr bool is_narrow<narrow_float<E, M, B, C>> = true;
template <>
inline constexpr bool is_narrow<e8m0> = true;

template <class T>
constexpr bool is_half = same<T, half_t> || same<T, bfloat16_t>;
template <class T>
constexpr bool is_float = same<T, float> || same<T, double> || is_half<T> || is_narrow<T>;
template <class T>
constexpr bool is_int4 = same<T, i4> || same<T, u4>;
template <class T>
constexpr bool is_signed = static_cast<T>(-1) < static_cast<T>(0);

// The value behind what an expression gives: itself, unless it is a stand-in for its value.
template <class T>
TILE_INLINE T value_of(T x) {
  return x;
}

}  // namespace tile
