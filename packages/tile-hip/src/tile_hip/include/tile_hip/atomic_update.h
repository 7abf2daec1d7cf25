// Any update of an element of memory, by comparing and exchanging.
#pragma once
#include "tile_hip/arithmetic.h"

namespace tile {

// Where an element is, as instructions know it: which memory, and how far others see it.
template <class T>
struct global_place {
  using element = T;
  static constexpr bool is_shared = false;
  TILE_GLOBAL T* p;
  template <class U>
  TILE_DEVICE TILE_GLOBAL U* as() const { return (TILE_GLOBAL U*)p; }
  TILE_DEVICE u32 offset_in_word() const { return static_cast<u32>((u64)p & 3); }
  template <class U>
  TILE_DEVICE TILE_GLOBAL U* around() const { return (TILE_GLOBAL U*)((u64)p & ~u64(3)); }
};
template <class T>
struct shared_place {
  using element = T;
  static constexpr bool is_shared = true;
  TILE_LDS typename unsigned_of<sizeof(T)>::word* p;
  template <class U>
  TILE_DEVICE TILE_LDS U* as() const { return (TILE_LDS U*)p; }
  TILE_DEVICE u32 offset_in_word() const { return (u32)(unsigned long)p & 3; }
  template <class U>
  TILE_DEVICE TILE_LDS U* around() const { return (TILE_LDS U*)((u32)(unsigned long)p & ~3u); }
};
template <class T>
TILE_DEVICE global_place<T> place_of(T* p) { return {(TILE_GLOBAL T*)p}; }
template <class T>
TILE_DEVICE shared_place<T> place_of(sptr<T> p) { return {p.place}; }

template <class P>
using element_at = typename decltype(place_of(*(P*)nullptr))::element;

// The word at `p` becomes `value` if it is `expected`; what it was.
template <class P, class U>
TILE_DEVICE U exchange_if(P p, U expected, U value) {
  __hip_atomic_compare_exchange_strong(p, &expected, value, __ATOMIC_RELAXED, __ATOMIC_RELAXED,
                                       __HIP_MEMORY_SCOPE_AGENT);
  return expected;
}

// The word at `p` becomes f(word), whatever `f` is; what it was. Any guess is good: the first
// exchange tells what is there, and a plain read would race with the updates of others.
template <class P, class U, class F>
TILE_DEVICE U update_word(P p, U guess, F f) {
  U seen = guess, found = exchange_if(p, seen, static_cast<U>(f(seen)));
  while (found != seen) {
    seen = found;
    const U wanted = f(seen);
    if (wanted == seen) break;
    found = exchange_if(p, seen, wanted);
  }
  return seen;
}

// The element becomes f(element): one of 8 or 16 bits with the word around it.
template <class P, class F>
TILE_DEVICE typename P::element update(P place, F f) {
  using T = typename P::element;
  using U = bits_of<T>;
  const auto on_bits = [=](U bits) { return bits_as<U>(f(bits_as<T>(bits))); };
  if constexpr (sizeof(T) < 4) {
    constexpr u32 mask = (1u << (8 * sizeof(T))) - 1;
    const u32 shift = place.offset_in_word() * 8;
    const u32 old = update_word(place.template around<u32>(), 0u, [=](u32 word) {
      const u32 part = on_bits(static_cast<U>(word >> shift));
      return (word & ~(mask << shift)) | (part & mask) << shift;
    });
    return bits_as<T>(static_cast<U>(old >> shift));
  } else {
    return bits_as<T>(update_word(place.template as<U>(), U(0), on_bits));
  }
}

}  // namespace tile
