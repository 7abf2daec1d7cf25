// Element types, pointers and registers.
#pragma once
#include "tile_hip/target.h"
#include "tile_types.h"

#ifndef TILE_HALF  // tests on other machines bring their own
using half_t = _Float16;
#endif

namespace tile {

// Its arithmetic computes in float32 and rounds once: see arithmetic.h.
struct bfloat16 {
  u16 bits;
  TILE_DEVICE explicit operator float() const {
    const u32 wide = static_cast<u32>(bits) << 16;
    float value;
    __builtin_memcpy(&value, &wide, 4);
    return value;
  }
};

}  // namespace tile
using bfloat16_t = tile::bfloat16;

namespace tile {

template <class A, class B>
constexpr bool same = false;
template <class A>
constexpr bool same<A, A> = true;

template <bool CONDITION, class T>
struct when;
template <class T>
struct when<true, T> {
  using type = T;
};

template <bool CONDITION, class A, class B>
struct when_else {
  using type = A;
};
template <class A, class B>
struct when_else<false, A, B> {
  using type = B;
};

template <class T>
struct without_const {
  using type = T;
};
template <class T>
struct without_const<const T> {
  using type = T;
};

// False, but only known once a template is used: makes a static_assert wait for a user.
template <class... T>
constexpr bool never = false;

// An unsigned integer of so many bytes, and one that any memory may be read as.
template <int BYTES>
struct unsigned_of;
#define TILE_UNSIGNED(BYTES, T)                                \
  template <>                                                  \
  struct unsigned_of<BYTES> {                                  \
    using type = T;                                            \
    typedef T __attribute__((may_alias)) word;                 \
  };
TILE_UNSIGNED(1, u8)
TILE_UNSIGNED(2, u16)
TILE_UNSIGNED(4, u32)
TILE_UNSIGNED(8, u64)
#undef TILE_UNSIGNED
template <class T>
using bits_of = typename unsigned_of<sizeof(T)>::type;

// The bits of `x` read as another type of the same size.
template <class T, class S>
TILE_DEVICE T bits_as(const S& x) {
  static_assert(sizeof(T) == sizeof(S), "tile::bitcast: the types differ in size");
  T result;
  __builtin_memcpy(&result, &x, sizeof(T));
  return result;
}

// Kernel parameters: memory that no other parameter of the kernel overlaps.
template <class T>
using gptr = T* __restrict__;

// `N` values in the registers of one thread; constant indices only, once loops are unrolled.
template <class T, int N>
using frag = T[N];

// One element of the block's memory, as an lvalue: class types cannot be read in place.
template <class T>
struct shared_ref {
  using value_type = typename without_const<T>::type;
  using word = typename unsigned_of<sizeof(T)>::word;
  TILE_LDS word* place;

  TILE_DEVICE value_type get() const { return bits_as<value_type>(static_cast<bits_of<T>>(*place)); }
  TILE_DEVICE operator value_type() const { return get(); }
  TILE_DEVICE const shared_ref& operator=(value_type x) const {
    static_assert(same<T, value_type>, "a store to memory that the kernel only reads");
    *place = bits_as<bits_of<T>>(x);
    return *this;
  }
  TILE_DEVICE const shared_ref& operator=(const shared_ref& other) const {
    return *this = other.get();
  }
};

// The block's memory, known as such: instructions for it reach nothing else.
template <class T>
struct sptr {
  using element = T;
  using word = typename unsigned_of<sizeof(T)>::word;
  TILE_LDS word* place;

  template <class I>
  TILE_DEVICE shared_ref<T> operator[](I i) const {
    return {place + i};
  }
  template <class I>
  TILE_DEVICE sptr operator+(I elements) const {
    return {place + elements};
  }
  TILE_DEVICE operator sptr<const T>() const { return {place}; }
};

#if TILE_ON_GPU
// The block's arena: sized by the launch, aligned to all banks.
extern __shared__ __attribute__((aligned(256))) unsigned char arena[];

// `count` elements of the arena from `offset` bytes on.
template <class T>
TILE_DEVICE sptr<T> smem(u32 offset, u32 count) {
  using word = typename sptr<T>::word;
  return {(TILE_LDS word*)((TILE_LDS unsigned char*)arena + offset)};
}

// Where shared memory is, as instructions take it.
template <class T>
TILE_DEVICE u32 shared_address(sptr<T> p) {
  return (u32)(unsigned long)p.place;
}
#endif

// The same memory or registers in another element type.
template <class T, class U>
TILE_DEVICE T* view(U* p) {
  return reinterpret_cast<T*>(p);
}
template <class T, class U>
TILE_DEVICE const T* view(const U* p) {
  return reinterpret_cast<const T*>(p);
}
template <class T, class U>
TILE_DEVICE sptr<T> view(sptr<U> p) {
  return {(TILE_LDS typename sptr<T>::word*)p.place};
}

// An address that is any pointer that a function of the user takes.
struct any_pointer {
  u64 address;

  TILE_DEVICE explicit any_pointer(u64 address) : address(address) {}
  TILE_DEVICE explicit any_pointer(const void* address) : address(u64(address)) {}
  template <class T>
  TILE_DEVICE operator T*() const {
    return reinterpret_cast<T*>(address);
  }
  TILE_DEVICE operator u64() const { return address; }
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
TILE_DEVICE typename raw_pointer<T>::type raw(T* p) {
  return typename raw_pointer<T>::type(p);
}
template <class T>
TILE_DEVICE typename raw_pointer<T>::type raw(const T* p) {
  return raw(const_cast<T*>(p));
}
template <class T>
TILE_DEVICE typename raw_pointer<T>::type raw(sptr<T> p) {
  return raw((typename without_const<T>::type*)p.place);
}

// Memory of the GPU at an address given as a number.
template <class T>
TILE_DEVICE T* at(u64 address) {
  return (T*)(TILE_GLOBAL T*)address;
}
template <class T>
TILE_DEVICE T* at(void* address) {
  return at<T>((u64)address);
}

// The value behind what an expression gives: itself, or what a stand-in refers to.
template <class T>
TILE_DEVICE T value_of(T x) {
  return x;
}
template <class T>
TILE_DEVICE typename shared_ref<T>::value_type value_of(shared_ref<T> x) {
  return x.get();
}

// The bits of `x` as another type.
template <class T, class S>
TILE_DEVICE T bitcast(const S& x) {
  return bits_as<T>(value_of(x));
}

}  // namespace tile
