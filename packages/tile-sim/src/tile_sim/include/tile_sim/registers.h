// Registers of one thread, checked: each byte remembers whether it has been written.
#pragma once
#include "tile_sim/device_abi.h"

namespace tile {

// An index that knows the line it is written in.
struct index_at {
  i64 index;
  unsigned line;
  template <class I>
  TILE_HOST index_at(I index, unsigned line = __builtin_LINE()) : index((i64)index), line(line) {}
};

// One element of registers, as an lvalue.
template <class T>
struct register_ref {
  using value_type = T;
  u8* value;
  u8* written;
  int index;
  unsigned line;

  TILE_HOST T get() const {
    u8 all[sizeof(T)];
    __builtin_memset(all, 0xff, sizeof(T));
    if (__builtin_expect(__builtin_memcmp(written, all, sizeof(T)) != 0, 0)) {
      tsim_uninitialised_register(index, line);
    }
    T x;
    __builtin_memcpy(&x, value, sizeof(T));
    return x;
  }
  TILE_HOST operator T() const { return get(); }
  TILE_HOST void set(T x) const {
    __builtin_memcpy(value, &x, sizeof(T));
    __builtin_memset(written, 0xff, sizeof(T));
  }
  TILE_HOST const register_ref& operator=(T x) const {
    set(x);
    return *this;
  }
  TILE_HOST const register_ref& operator=(const register_ref& other) const {
    set(other.get());
    return *this;
  }
};

// Registers from some element on: what `C_local + i` is.
template <class T>
struct regs : tsim_registers {
  using element = T;

  TILE_HOST regs(const tsim_registers& r) : tsim_registers(r) {}
  TILE_HOST register_ref<T> operator[](index_at i) const {
    const i64 at = offset + i.index * (i64)sizeof(T);
    if (__builtin_expect(at < 0 || at >= bytes, 0)) {
      tsim_register_out_of_bounds((int)(at / (i64)sizeof(T)), bytes / (int)sizeof(T), i.line);
    }
    return {values + at, written + at, (int)(at / (i64)sizeof(T)), i.line};
  }
  TILE_HOST regs operator+(i64 elements) const {
    tsim_registers moved = *this;
    moved.offset += (int)(elements * (i64)sizeof(T));
    return moved;
  }
};

// `N` values in registers, poisoned until they are written.
template <class T, int N>
struct frag {
  using element = T;
  alignas(16) u8 values[sizeof(T) * N];
  u8 written[sizeof(T) * N];

  TILE_HOST frag() {
    __builtin_memset(values, 0xff, sizeof(values));
    __builtin_memset(written, 0, sizeof(written));
  }
  TILE_HOST operator regs<T>() {
    return tsim_registers{values, written, 0, (int)sizeof(values), (int)sizeof(T)};
  }
  TILE_HOST register_ref<T> operator[](index_at i) { return regs<T>(*this)[i]; }
  TILE_HOST regs<T> operator+(i64 elements) { return regs<T>(*this) + elements; }
};

template <class T>
TILE_HOST regs<T> as_registers(const regs<T>& r) { return r; }
template <class T, int N>
TILE_HOST regs<T> as_registers(frag<T, N>& r) { return r; }

// The same registers in another element type.
template <class To, class From>
TILE_HOST regs<To> view(const regs<From>& r) {
  tsim_registers seen = r;
  seen.element_bytes = sizeof(To);
  return seen;
}
template <class To, class From, int N>
TILE_HOST regs<To> view(frag<From, N>& r) {
  return view<To>(regs<From>(r));
}

}  // namespace tile
