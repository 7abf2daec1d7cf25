// Registers of one thread, checked: each byte remembers whether it has been written, and whether a
// product that is under way uses it.
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

// Whether all bytes of a T may be read.
template <class T>
TILE_HOST bool are_readable(const u8* flags) {
  if constexpr (sizeof(T) == 8) {
    u64 x;
    __builtin_memcpy(&x, flags, 8);
    return (x & 0x8080808080808080ull) == 0x8080808080808080ull;
  } else if constexpr (sizeof(T) == 4) {
    u32 x;
    __builtin_memcpy(&x, flags, 4);
    return (x & 0x80808080u) == 0x80808080u;
  } else {
    u8 x = 0x80;
    for (unsigned i = 0; i < sizeof(T); ++i) x &= flags[i];
    return x != 0;
  }
}

// One element of registers, as an lvalue.
template <class T>
struct register_ref {
  using value_type = T;
  u8* value;
  u8* written;
  int index;
  unsigned line;

  TILE_HOST T get() const {
    if (__builtin_expect(!are_readable<T>(written), 0)) {
      tsim_unreadable_register(value, written, index, line);
    }
    T x;
    __builtin_memcpy(&x, value, sizeof(T));
    return x;
  }
  TILE_HOST operator T() const { return get(); }
  TILE_HOST void set(T x) const {
    if (__builtin_expect(written[0] & TSIM_BUSY, 0)) tsim_busy_register(value, index, line);
    __builtin_memcpy(value, &x, sizeof(T));
    __builtin_memset(written, TSIM_WRITTEN, sizeof(T));
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
  u8 written[sizeof(T) * N + 1];   // and whether engines know of them

  TILE_HOST frag() {
    __builtin_memset(values, 0xff, sizeof(values));
    __builtin_memset(written, 0, sizeof(written));
  }
  TILE_HOST ~frag() {
    if (__builtin_expect(written[sizeof(values)] != 0, 0)) {
      tsim_forget_registers(written, sizeof(values));
    }
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
