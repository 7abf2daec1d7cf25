// Text and assertions.
#pragma once
#include "tile_sim/pointers.h"

namespace tile {

template <class T>
TILE_HOST u64 printed_bits(T x) {
  if constexpr (is_float<T>) return bits_as<u64>(to_double(x));
  else return (u64)x;
}
TILE_HOST u64 printed_bits(const char* text) { return (u64)(uptr)text; }

template <class T>
constexpr char printed_kind = is_float<T> ? 'f' : is_signed<T> ? 'd' : 'u';
template <>
constexpr char printed_kind<const char*> = 's';
// The type that a value is printed as: what a reference refers to, or itself.
template <class T>
using printed_type = decltype(value_of(*(const T*)nullptr));

// As printf; values may be of any element type.
template <class... T>
TILE_HOST void print(const char* format, const T&... values) {
  const u64 bits[] = {printed_bits(value_of(values))..., 0};
  const char kinds[] = {printed_kind<printed_type<T>>..., 0};
  tsim_print(format, kinds, bits, 0);
}

// Ends the block if `condition` is false.
TILE_HOST void assert_that(bool condition, const char* text, unsigned line = __builtin_LINE()) {
  if (__builtin_expect(!condition, 0)) tsim_assertion_failed(text, line);
}

}  // namespace tile
