// Dot products of bytes.
#pragma once
#include "tile_hip/bits.h"

namespace tile {

// What an argument is made of, and what it is worth: bytes from anywhere, or the sum so far.
TILE_DEVICE int four_bytes(int x) { return x; }
template <class T>
TILE_DEVICE int four_bytes(const T* p) {
  return static_cast<int>(word(p, 0));
}
template <class T>
TILE_DEVICE int four_bytes(sptr<T> p) {
  return static_cast<int>(word(p, 0));
}
template <class P>
constexpr bool is_unsigned_bytes =
    same<P, u8*> || same<P, const u8*> || same<P, sptr<u8>> || same<P, sptr<const u8>>;

template <bool UNSIGNED>
TILE_DEVICE int dot_product(int a, int b, int c) {
  if constexpr (UNSIGNED) {
    return static_cast<int>(__builtin_amdgcn_udot4(static_cast<u32>(a), static_cast<u32>(b),
                                                   static_cast<u32>(c), false));
  } else {
    return __builtin_amdgcn_sdot4(a, b, c, false);
  }
}

// Of registers: *d += a[0] * b[0] + … + a[3] * b[3]. Of values, four bytes to a word, or of bytes
// in memory: c + a[0] * b[0] + ….
template <class A, class B, class C>
TILE_DEVICE int dp4a(A first, B second, C third) {
  if constexpr (same<A, int*> && !same<C, int> && !same<C, const int*>) {
    *first = dot_product<is_unsigned_bytes<B>>(four_bytes(second), four_bytes(third), *first);
    return *first;
  } else {
    return dot_product<is_unsigned_bytes<A>>(four_bytes(first), four_bytes(second),
                                             four_bytes(third));
  }
}

}  // namespace tile
