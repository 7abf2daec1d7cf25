// Values and registers as the words that instructions work on.
#pragma once
#include "tile_hip/pointers.h"

namespace tile {

// The `i`th 32-bit word from `p` on, which is the start of a word.
template <class T>
TILE_DEVICE u32 word(const T* p, int i) {
  u32 w;
  __builtin_memcpy(&w, reinterpret_cast<const char*>(p) + 4 * i, 4);
  return w;
}
template <class T>
TILE_DEVICE u32 word(sptr<T> p, int i) {
  return view<const u32>(p)[i];
}

template <class T>
TILE_DEVICE void set_word(T* p, int i, u32 w) {
  __builtin_memcpy(reinterpret_cast<char*>(p) + 4 * i, &w, 4);
}

// `N` values of type T in registers that follow each other.
template <class T, int N>
struct vector_type {
  typedef T type __attribute__((vector_size(N * sizeof(T))));
};
template <class T, int N>
using vector = typename vector_type<T, N>::type;

// So many bytes of registers as a vector, and back.
template <class V, class T>
TILE_DEVICE V gathered(const T* registers) {
  V value;
  __builtin_memcpy(&value, registers, sizeof(V));
  return value;
}
template <class V, class T>
TILE_DEVICE void scatter(T* registers, const V& value) {
  __builtin_memcpy(registers, &value, sizeof(V));
}

#if TILE_ON_GPU
// The lanes that run and for which a condition holds.
TILE_DEVICE u64 lanes_where(bool condition) {
#if __has_builtin(__builtin_amdgcn_ballot_w64)
  return __builtin_amdgcn_ballot_w64(condition);
#else
  constexpr int differs = 33;  // as LLVM numbers comparisons
  return __builtin_amdgcn_uicmp(static_cast<u32>(condition), 0u, differs);
#endif
}
#endif

// The value of the wave's first lane, where all its lanes have the same.
TILE_DEVICE int uniform(int x) {
#if TILE_ON_GPU
  return __builtin_amdgcn_readfirstlane(x);
#else
  return x;
#endif
}

}  // namespace tile
