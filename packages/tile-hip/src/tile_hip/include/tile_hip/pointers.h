// Pointers to memory, registers, and the values behind them.
#pragma once
#include "tile_hip/types.h"
#include "tile_plain_pointers.h"

namespace tile {

// Kernel parameters: memory that no other parameter of the kernel overlaps.
template <class T>
using gptr = T* __restrict__;

// Those of kernels that signal: others may write there while the kernel runs, and read.
template <class T>
using live_gptr = T*;

// `N` values in the registers of one thread; constant indices only, once loops are unrolled.
template <class T, int N>
using frag = T[N];

// One element of the block's memory, as an lvalue: class types cannot be read in place.
template <class T>
struct shared_ref {
  using value_type = typename without_const<T>::type;
  using word = typename unsigned_of<sizeof(T)>::word;
  TILE_LDS word* place;

  TILE_DEVICE value_type get() const {
    return bits_as<value_type>(static_cast<bits_of<T>>(*place));
  }
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

// The same memory in another element type.
template <class T, class U>
TILE_DEVICE sptr<T> view(sptr<U> p) {
  return {(TILE_LDS typename sptr<T>::word*)p.place};
}

// The pointer as the language has it, for functions of the user.
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

// What a stand-in refers to.
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
