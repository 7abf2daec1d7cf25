// Arithmetic beyond C's operators, for all element types.
#pragma once
#include "tile_sim/cast.h"

namespace tile {

template <bool CONDITION, class T>
struct when;
template <class T>
struct when<true, T> {
  using type = T;
};

// What functions of floats compute in.
template <class T>
TILE_HOST float to_float(T x) { return static_cast<float>(to_double(x)); }

}  // namespace tile

#include "tile_narrow_operators.h"

namespace tile {
template <class T>
TILE_HOST typename when<is_narrow<T>, T>::type operator-(T a) {
  return cast<T>(-to_float(a));
}

// The smaller and the larger; a number rather than NaN.
template <class T>
TILE_HOST T min(T a, T b) {
  if constexpr (is_float<T>) return a != a ? b : b < a ? b : a;
  else return b < a ? b : a;
}
template <class T>
TILE_HOST T max(T a, T b) {
  if constexpr (is_float<T>) return a != a ? b : a < b ? b : a;
  else return a < b ? b : a;
}

// The smaller and the larger; NaN if either is.
template <class T>
TILE_HOST T min_nan(T a, T b) {
  if constexpr (is_float<T>) return a != a ? a : b != b ? b : min(a, b);
  else return min(a, b);
}
template <class T>
TILE_HOST T max_nan(T a, T b) {
  if constexpr (is_float<T>) return a != a ? a : b != b ? b : max(a, b);
  else return max(a, b);
}

// The float itself; the optimizer does not see where it comes from.
template <class T>
TILE_HOST T opaque(T x) {
  return x;
}

template <class T>
TILE_HOST T abs(T x) {
  if constexpr (same<T, double>) return __builtin_fabs(x);
  else if constexpr (is_float<T>) return cast<T>(__builtin_fabsf(to_float(x)));
  else return static_cast<T>(is_signed<T> && x < T(0) ? -x : x);
}

// Quotient rounded down, and the remainder that goes with it. The lowest number over -1 is itself
// again, without a remainder, as on GPUs; this machine would trap. A division by zero is reported.
template <class T>
TILE_HOST bool overflows(T a, T b) {
  constexpr T lowest = is_signed<T> ? static_cast<T>(u64(1) << (8 * sizeof(T) - 1)) : T(0);
  return is_signed<T> && b == static_cast<T>(-1) && a == lowest;
}
template <class T>
TILE_HOST void refuse_zero(T b, unsigned line) {
  if (__builtin_expect(b == T(0), 0)) tsim_undefined("an integer is divided by zero", line);
}
template <class T>
TILE_HOST T floordiv(T a, T b, unsigned line = __builtin_LINE()) {
  if constexpr (same<T, double>) {
    return __builtin_floor(a / b);
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_floorf(to_float(a) / to_float(b)));
  } else {
    refuse_zero(b, line);
    if (overflows(a, b)) return a;
    const T quotient = static_cast<T>(a / b);
    const bool is_rounded_up = is_signed<T> && quotient * b != a && (a < T(0)) != (b < T(0));
    return static_cast<T>(quotient - is_rounded_up);
  }
}
template <class T>
TILE_HOST T floormod(T a, T b, unsigned line = __builtin_LINE()) {
  if constexpr (same<T, double>) {
    return a - __builtin_floor(a / b) * b;
  } else if constexpr (is_float<T>) {
    const float x = to_float(a), y = to_float(b);
    return cast<T>(x - __builtin_floorf(x / y) * y);
  } else {
    refuse_zero(b, line);
    if (overflows(a, b)) return T(0);
    const T rest = static_cast<T>(a % b);
    const bool is_of_other_sign = is_signed<T> && rest != T(0) && (rest < T(0)) != (b < T(0));
    return is_of_other_sign ? static_cast<T>(rest + b) : rest;
  }
}

// Quotient rounded toward zero, and the remainder that goes with it.
template <class T>
TILE_HOST T truncdiv(T a, T b, unsigned line = __builtin_LINE()) {
  if constexpr (same<T, double>) {
    return __builtin_trunc(a / b);
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_truncf(to_float(a) / to_float(b)));
  } else {
    refuse_zero(b, line);
    return overflows(a, b) ? a : static_cast<T>(a / b);
  }
}
template <class T>
TILE_HOST T truncmod(T a, T b, unsigned line = __builtin_LINE()) {
  if constexpr (same<T, double>) {
    return __builtin_fmod(a, b);
  } else if constexpr (is_float<T>) {
    return cast<T>(__builtin_fmodf(to_float(a), to_float(b)));
  } else {
    refuse_zero(b, line);
    return overflows(a, b) ? T(0) : static_cast<T>(a % b);
  }
}

// The bits of an integer, within the width of its type.
template <class T>
TILE_HOST u64 bit_pattern(T x) {
  if constexpr (is_int4<T>) return x.bits & 15u;
  else return static_cast<u64>(x) & (~0ull >> (64 - 8 * sizeof(T)));
}
template <class T>
TILE_HOST int popcount(T x) { return __builtin_popcountll(bit_pattern(x)); }
template <class T>
TILE_HOST int clz(T x) {
  constexpr int width = is_int4<T> ? 4 : 8 * sizeof(T);
  const u64 bits = bit_pattern(x);
  return bits ? __builtin_clzll(bits) - (64 - width) : width;
}
template <class T>
TILE_HOST int ffs(T x) { return __builtin_ffsll(static_cast<i64>(bit_pattern(x))); }

// The sum of four products of the bytes of two words, added to c.
template <class BYTE>
TILE_HOST int dot_bytes(u32 a, u32 b, int c) {
  u32 sum = static_cast<u32>(c);
  for (int i = 0; i < 32; i += 8) {
    sum += static_cast<u32>(static_cast<int>(static_cast<BYTE>(a >> i)) *
                            static_cast<int>(static_cast<BYTE>(b >> i)));
  }
  return static_cast<int>(sum);
}
TILE_HOST int dp4a(int a, int b, int c) {
  return dot_bytes<i8>(static_cast<u32>(a), static_cast<u32>(b), c);
}

// Four elements as a word: of registers, of memory, of a value on the stack.
template <class T>
TILE_HOST u32 word_of(const regs<T>& r, unsigned line) {
  u32 word;
  __builtin_memcpy(&word, tsim_read_registers(&r, 4, line), 4);
  return word;
}
template <class T, class Place>
TILE_HOST u32 word_of(const pointer<T, Place>& p, unsigned line) {
  touch_read(p, 4, line);
  u32 word;
  __builtin_memcpy(&word, p.address, 4);
  return word;
}

// *d += a[0] * b[0] + … + a[3] * b[3]
template <class T>
TILE_HOST void dp4a(int* d, const regs<T>& a, const regs<T>& b, unsigned line = __builtin_LINE()) {
  *d = dot_bytes<T>(word_of(a, line), word_of(b, line), *d);
}
template <class T>
TILE_HOST void add_dot(const regs<int>& d, const regs<T>& a, const regs<T>& b, unsigned line) {
  d[index_at(0, line)] = dot_bytes<T>(word_of(a, line), word_of(b, line), d[index_at(0, line)]);
}
// The same for everything that has elements, arrays of registers among them.
template <class D, class A, class B>
TILE_HOST void dp4a(D&& d, A&& a, B&& b, unsigned line = __builtin_LINE()) {
  add_dot(as_registers(d), as_registers(a), as_registers(b), line);
}
template <class T, class Place>
TILE_HOST int dp4a(const pointer<T, Place>& a, const pointer<T, Place>& b, int c,
                   unsigned line = __builtin_LINE()) {
  return dot_bytes<typename without_const<T>::type>(word_of(a, line), word_of(b, line), c);
}

}  // namespace tile
