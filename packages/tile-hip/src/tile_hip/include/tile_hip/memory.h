// Vectors of elements between memory and registers.
#pragma once
#include "tile_hip/bits.h"

namespace tile {

// What one instruction moves; aligned as the address is promised to be, whatever is read as it.
template <int BYTES>
struct access {
  typedef typename unsigned_of<BYTES>::word type;
};
template <>
struct access<8> {
  typedef u32 type __attribute__((vector_size(8), may_alias));
};
template <>
struct access<16> {
  typedef u32 type __attribute__((vector_size(16), may_alias));
};

// The largest power of two up to 16 that divides `bytes`.
TILE_DEVICE constexpr int access_bytes(int bytes) {
  return bytes % 16 == 0 ? 16 : bytes % 8 == 0 ? 8 : bytes % 4 == 0 ? 4 : bytes % 2 == 0 ? 2 : 1;
}

// The same place, for accesses of type V.
template <class V, class U>
TILE_DEVICE const V* accessed(const U* memory) {
  return reinterpret_cast<const V*>(memory);
}
template <class V, class U>
TILE_DEVICE V* accessed(U* memory) {
  return reinterpret_cast<V*>(memory);
}
template <class V, class U>
TILE_DEVICE TILE_LDS V* accessed(sptr<U> memory) {
  return (TILE_LDS V*)memory.place;
}

template <int N, class T, class U, class P>
TILE_DEVICE void load_vectors(T* registers, P memory) {
  static_assert(sizeof(T) == sizeof(U), "tile::load: the element types differ in size");
  constexpr int bytes = N * sizeof(T), step = access_bytes(bytes);
  using V = typename access<step>::type;
  TILE_UNROLL
  for (int i = 0; i < bytes / step; ++i) {
    const V value = accessed<V>(memory)[i];
    __builtin_memcpy(reinterpret_cast<char*>(registers) + i * step, &value, step);
  }
}
template <int N, class T, class U, class P>
TILE_DEVICE void store_vectors(P memory, const T* registers) {
  static_assert(sizeof(T) == sizeof(U), "tile::store: the element types differ in size");
  constexpr int bytes = N * sizeof(T), step = access_bytes(bytes);
  using V = typename access<step>::type;
  TILE_UNROLL
  for (int i = 0; i < bytes / step; ++i) {
    V value;
    __builtin_memcpy(&value, reinterpret_cast<const char*>(registers) + i * step, step);
    accessed<V>(memory)[i] = value;
  }
}

// registers[0..N) = memory[0..N); the address is a multiple of the vector's size (16 at most).
template <int N, class T, class U>
TILE_DEVICE void load(T* registers, const U* memory) {
  load_vectors<N, T, U>(registers, memory);
}
template <int N, class T, class U>
TILE_DEVICE void load(T* registers, sptr<U> memory) {
  load_vectors<N, T, U>(registers, memory);
}

// memory[0..N) = registers[0..N); the address is a multiple of the vector's size (16 at most).
template <int N, class T, class U>
TILE_DEVICE void store(T* memory, const U* registers) {
  store_vectors<N, U, T>(memory, registers);
}
template <int N, class T, class U>
TILE_DEVICE void store(sptr<T> memory, const U* registers) {
  store_vectors<N, U, T>(memory, registers);
}

}  // namespace tile
