// Vectors of elements between memory and registers.
#pragma once
#include "tile_sim/cache_hint.h"

namespace tile {

// `N` elements from memory, aligned to their size, into registers.
template <int N, hint HINT = no_hint, class To, class T, class Place>
TILE_HOST void load(To&& to, const pointer<T, Place>& from, unsigned line = __builtin_LINE()) {
  check_hint<HINT, Place>();
  const tsim_registers r = as_registers(to);
  constexpr unsigned bytes = N * sizeof(T);
  touch_read(from, bytes, line);
  __builtin_memcpy(tsim_write_registers(&r, bytes, line), from.address, bytes);
}

// `N` elements from registers to memory, aligned to their size.
template <int N, hint HINT = no_hint, class T, class Place, class From>
TILE_HOST void store(const pointer<T, Place>& to, From&& from, unsigned line = __builtin_LINE()) {
  check_hint<HINT, Place>();
  const tsim_registers r = as_registers(from);
  constexpr unsigned bytes = N * sizeof(T);
  const void* values = tsim_read_registers(&r, bytes, line);
  touch_write(to, values, bytes, line);
  __builtin_memcpy(to.address, values, bytes);
}

}  // namespace tile
