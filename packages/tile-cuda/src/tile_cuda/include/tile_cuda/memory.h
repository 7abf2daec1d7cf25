// Vectors of elements between memory and registers.
#pragma once
#include "tile_cuda/cache_hint.h"

namespace tile {

template <int BYTES>
struct vector_of {
  using type = typename unsigned_of<BYTES>::type;
};
template <>
struct vector_of<8> {
  using type = uint2;
};
template <>
struct vector_of<16> {
  using type = uint4;
};

// The largest power of two up to 16 that divides `bytes`: what one instruction moves.
TILE_DEVICE constexpr int access_bytes(int bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

// registers[0..N) = memory[0..N); the address is a multiple of the vector's size (16 at most).
template <int N, hint HINT = no_hint, class T, class U>
TILE_DEVICE void load(T* registers, const U* memory) {
  static_assert(sizeof(T) == sizeof(U), "tile::load: the element types differ in size");
  constexpr int bytes = N * sizeof(T), step = access_bytes(bytes);
  using V = typename vector_of<step>::type;
  TILE_UNROLL
  for (int i = 0; i < bytes / step; ++i) {
    const V value = read_vector<HINT>(reinterpret_cast<const V*>(memory) + i);
    memcpy(reinterpret_cast<char*>(registers) + i * step, &value, step);
  }
}

// memory[0..N) = registers[0..N); the address is a multiple of the vector's size (16 at most).
template <int N, hint HINT = no_hint, class T, class U>
TILE_DEVICE void store(T* memory, const U* registers) {
  static_assert(sizeof(T) == sizeof(U), "tile::store: the element types differ in size");
  constexpr int bytes = N * sizeof(T), step = access_bytes(bytes);
  using V = typename vector_of<step>::type;
  TILE_UNROLL
  for (int i = 0; i < bytes / step; ++i) {
    V value;
    memcpy(&value, reinterpret_cast<const char*>(registers) + i * step, step);
    write_vector<HINT>(reinterpret_cast<V*>(memory) + i, value);
  }
}

}  // namespace tile
