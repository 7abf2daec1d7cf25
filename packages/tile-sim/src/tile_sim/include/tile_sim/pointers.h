// Pointers to shared and global memory, checked: they know the logical buffer they belong to.
#pragma once
#include "tile_sim/registers.h"

namespace tile {

// How each memory is touched: one lane, `bytes` bytes.
TILE_HOST void touch_read(const tsim_shared& place, unsigned bytes, unsigned line) {
  tsim_read_shared(&place, bytes, line);
}
TILE_HOST void touch_read(const tsim_global& place, unsigned bytes, unsigned line) {
  tsim_read_global(&place, bytes, line);
}
TILE_HOST void touch_write(const tsim_shared& place, const void* value, unsigned bytes,
                           unsigned line) {
  tsim_write_shared(&place, value, bytes, line);
}
TILE_HOST void touch_write(const tsim_global& place, const void* value, unsigned bytes,
                           unsigned line) {
  tsim_write_global(&place, value, bytes, line);
}

// One element of memory, as an lvalue.
template <class T, class Place>
struct memory_ref {
  using value_type = typename without_const<T>::type;
  Place place;
  unsigned line;

  TILE_HOST value_type get() const {
    touch_read(place, sizeof(T), line);
    value_type x;
    __builtin_memcpy(&x, place.address, sizeof(T));
    return x;
  }
  TILE_HOST operator value_type() const { return get(); }
  TILE_HOST void set(value_type x) const {
    static_assert(same<T, value_type>, "a store to memory that the kernel only reads");
    touch_write(place, &x, sizeof(T), line);
    __builtin_memcpy(place.address, &x, sizeof(T));
  }
  TILE_HOST const memory_ref& operator=(value_type x) const {
    set(x);
    return *this;
  }
  TILE_HOST const memory_ref& operator=(const memory_ref& other) const {
    set(other.get());
    return *this;
  }
};

// A pointer to elements of type T; `Place` says in which memory.
template <class T, class Place>
struct pointer : Place {
  using element = T;

  TILE_HOST pointer(const Place& place) : Place(place) {}
  TILE_HOST memory_ref<T, Place> operator[](index_at i) const { return {*this + i.index, i.line}; }
  template <class I>
  TILE_HOST pointer operator+(I elements) const {
    Place moved = *this;
    moved.address = (u8*)((uptr)this->address + (uptr)((i64)elements * (i64)sizeof(T)));
    return moved;
  }
  TILE_HOST operator pointer<const T, Place>() const { return static_cast<const Place&>(*this); }
};
template <class T, class Place>
struct pointer<const T, Place> : Place {
  using element = const T;

  TILE_HOST pointer(const Place& place) : Place(place) {}
  TILE_HOST memory_ref<const T, Place> operator[](index_at i) const {
    return {*this + i.index, i.line};
  }
  template <class I>
  TILE_HOST pointer operator+(I elements) const {
    Place moved = *this;
    moved.address = (u8*)((uptr)this->address + (uptr)((i64)elements * (i64)sizeof(T)));
    return moved;
  }
};

// Kernel parameters: global memory.
template <class T>
using gptr = pointer<T, tsim_global>;
template <class T>
using live_gptr = gptr<T>;

// The block's shared memory.
template <class T>
using sptr = pointer<T, tsim_shared>;

// `count` elements of the block's arena from `offset` bytes on.
template <class T>
TILE_HOST sptr<T> smem(u32 offset, u32 count, unsigned line = __builtin_LINE()) {
  u8* begin = tsim_shared_arena(offset, count * (u32)sizeof(T), line);
  return tsim_shared{begin, begin, begin + count * sizeof(T)};
}

// The same memory in another element type.
template <class To, class T, class Place>
TILE_HOST pointer<To, Place> view(const pointer<T, Place>& p) {
  return static_cast<const Place&>(p);
}

// Memory at an address given as a number: nothing is known about its bounds.
template <class T>
TILE_HOST gptr<T> at(u64 address) {
  return tsim_global{(u8*)(uptr)address, tsim_unbounded_buffer()};
}
template <class T>
TILE_HOST gptr<T> at(void* address) {
  return at<T>((u64)(uptr)address);
}

// A place in shared memory of any block of the cluster, in another element type.
template <class T, class S>
TILE_HOST sptr<T> at(const sptr<S>& p) {
  return static_cast<const tsim_shared&>(p);
}

// An address that is any pointer that a function of the user takes.
struct any_pointer {
  uptr address;

  TILE_HOST explicit any_pointer(u64 address) : address((uptr)address) {}
  TILE_HOST explicit any_pointer(const void* address) : address((uptr)address) {}
  template <class T>
  TILE_HOST operator T*() const { return (T*)address; }
  TILE_HOST operator u64() const { return (u64)address; }
};

// What pointers are for functions of the user: C knows integers of 64 bits by several names.
template <class T>
struct raw_pointer { using type = T*; };
template <class T>
struct raw_pointer<const T> : raw_pointer<T> {};
template <>
struct raw_pointer<i64> { using type = any_pointer; };
template <>
struct raw_pointer<u64> { using type = any_pointer; };

// The pointer as the language has it, for functions of the user: nothing is checked from here on,
// and what they may have written counts as written.
template <class T>
TILE_HOST typename raw_pointer<T>::type raw(T* p) {
  return typename raw_pointer<T>::type((typename without_const<T>::type*)p);
}
template <class T>
TILE_HOST typename raw_pointer<T>::type raw(const pointer<T, tsim_global>& p) {
  return raw((T*)p.address);
}
template <class T>
TILE_HOST typename raw_pointer<T>::type raw(const pointer<T, tsim_shared>& p) {
  tsim_hand_over_shared(&p);
  return raw((T*)p.address);
}
template <class T>
TILE_HOST typename raw_pointer<T>::type raw(const regs<T>& r) {
  if (r.offset < r.bytes) __builtin_memset(r.written + r.offset, TSIM_WRITTEN, r.bytes - r.offset);
  return raw((T*)(r.values + r.offset));
}
template <class T, int N>
TILE_HOST typename raw_pointer<T>::type raw(frag<T, N>& r) { return raw(regs<T>(r)); }

// The value behind what an expression gives: itself, or what a reference refers to.
template <class T>
TILE_HOST T value_of(const register_ref<T>& ref) { return ref.get(); }
template <class T, class Place>
TILE_HOST typename without_const<T>::type value_of(const memory_ref<T, Place>& ref) {
  return ref.get();
}
template <class T>
TILE_HOST T value_of(T x) { return x; }

}  // namespace tile
