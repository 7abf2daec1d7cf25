// Plain pointers: in another element type, as numbers, and for functions of the user. The same on
// all GPUs.
#pragma once

namespace tile {

// The same memory or registers in another element type.
template <class T, class U>
TILE_INLINE T* view(U* p) {
  return reinterpret_cast<T*>(p);
}
template <class T, class U>
TILE_INLINE const T* view(const U* p) {
  return reinterpret_cast<const T*>(p);
}

// An address that is any pointer that a function of the user takes.
struct any_pointer {
  u64 address;

  TILE_INLINE explicit any_pointer(u64 address) : address(address) {}
  TILE_INLINE explicit any_pointer(const void* address) : address(u64(address)) {}
  template <class T>
  TILE_INLINE operator T*() const {
    return reinterpret_cast<T*>(address);
  }
  TILE_INLINE operator u64() const { return address; }
};

// What pointers are for functions of the user: C knows integers of 64 bits by several names.
template <class T>
struct raw_pointer {
  using type = T*;
};
template <class T>
struct raw_pointer<const T> : raw_pointer<T> {};
template <>
struct raw_pointer<i64> {
  using type = any_pointer;
};
template <>
struct raw_pointer<u64> {
  using type = any_pointer;
};

// The pointer as the language has it, for functions of the user.
template <class T>
TILE_INLINE typename raw_pointer<T>::type raw(T* p) {
  return typename raw_pointer<T>::type(p);
}
template <class T>
TILE_INLINE typename raw_pointer<T>::type raw(const T* p) {
  return raw(const_cast<T*>(p));
}

}  // namespace tile
