// Dot products of bytes.
#pragma once
#include "tile_hip/bits.h"

namespace tile {

// *d += a[0] * b[0] + … + a[3] * b[3]
TILE_DEVICE void dp4a(int* d, const i8* a, const i8* b) {
  *d = __builtin_amdgcn_sdot4(static_cast<int>(word(a, 0)), static_cast<int>(word(b, 0)), *d, false);
}
TILE_DEVICE void dp4a(int* d, const u8* a, const u8* b) {
  *d = static_cast<int>(__builtin_amdgcn_udot4(word(a, 0), word(b, 0), static_cast<u32>(*d), false));
}
// The same as values: four bytes to a word.
TILE_DEVICE int dp4a(int a, int b, int c) { return __builtin_amdgcn_sdot4(a, b, c, false); }

// Four bytes from anywhere, and the sum so far.
TILE_DEVICE int four_bytes(const i8* p) { return static_cast<int>(word(p, 0)); }
template <class T>
TILE_DEVICE int four_bytes(sptr<T> p) {
  return static_cast<int>(word(p, 0));
}
TILE_DEVICE int sum_so_far(int c) { return c; }
TILE_DEVICE int sum_so_far(const int* c) { return *c; }
template <class T>
TILE_DEVICE int sum_so_far(sptr<T> c) {
  return c[0];
}
template <class A, class B, class C>
TILE_DEVICE int dp4a(A a, B b, C c) {
  return dp4a(four_bytes(a), four_bytes(b), sum_so_far(c));
}

}  // namespace tile
