// Indivisible updates of elements in global or shared memory; each returns the old value.
//
// By an instruction where there is one for the type, else by comparing and exchanging. Orders other
// than relaxed are fences of the whole device before or after. Updates of floats by instruction
// are for memory of this GPU, not for what it shares with the host as it runs.
#pragma once
#include "tile_hip/atomic_update.h"

namespace tile {

// The last two are for what other devices, and other processes, read and write as well.
enum memory_order { relaxed, consume, acquire, release, acq_rel, seq_cst, system_acquire, system_release };

TILE_DEVICE void fence_before(memory_order order) {
  if (order == release || order == acq_rel || order == seq_cst) {
    __builtin_amdgcn_fence(__ATOMIC_RELEASE, "agent");
  }
  if (order == system_release) __builtin_amdgcn_fence(__ATOMIC_RELEASE, "");
}
TILE_DEVICE void fence_after(memory_order order) {
  if (order == consume || order == acquire || order == acq_rel || order == seq_cst) {
    __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "agent");
  }
  if (order == system_acquire) __builtin_amdgcn_fence(__ATOMIC_ACQUIRE, "");
}

#define TILE_SCOPE __HIP_MEMORY_SCOPE_AGENT

template <class T>
constexpr bool is_word_integer = !is_float<T> && !same<T, bool> && sizeof(T) >= 4;

typedef _Float16 half_pair __attribute__((ext_vector_type(2)));
typedef short short_pair __attribute__((ext_vector_type(2)));

// Sums of floats by instruction, or nothing where there is none.
TILE_DEVICE float add_float(global_place<float> at, float x) {
  return __builtin_amdgcn_global_atomic_fadd_f32(at.p, x);
}
TILE_DEVICE float add_float(shared_place<float> at, float x) {
  return __builtin_amdgcn_ds_faddf(at.as<float>(), x, __ATOMIC_RELAXED, 1, false);
}
TILE_DEVICE double add_float(global_place<double> at, double x) {
  return __builtin_amdgcn_global_atomic_fadd_f64(at.p, x);
}
TILE_DEVICE double add_float(shared_place<double> at, double x) {
  return __builtin_amdgcn_ds_atomic_fadd_f64(at.as<double>(), x);
}

// Two 16-bit floats in a word: the word before.
#define TILE_ADD_PAIR(PLACE, T, VECTOR, CALL)                              \
  TILE_DEVICE u32 add_pair(PLACE<T> at, u32 pair) {                        \
    const VECTOR x = bits_as<VECTOR>(pair);                                \
    return bits_as<u32>(CALL);                                             \
  }
#define TILE_NO_ADD_PAIR(PLACE, T)                                                       \
  TILE_DEVICE u32 add_pair(PLACE<T> at, u32 pair) {                                      \
    return update_word(at.template around<u32>(), 0u, [=](u32 seen) {                    \
      const T low = bits_as<T>(static_cast<u16>(seen)) + bits_as<T>(static_cast<u16>(pair)); \
      const T high = bits_as<T>(static_cast<u16>(seen >> 16)) +                          \
                     bits_as<T>(static_cast<u16>(pair >> 16));                           \
      return static_cast<u32>(bits_as<u16>(low)) |                                       \
             static_cast<u32>(bits_as<u16>(high)) << 16;                                 \
    });                                                                                  \
  }
TILE_ADD_PAIR(global_place, half_t, half_pair,
              __builtin_amdgcn_global_atomic_fadd_v2f16(at.around<half_pair>(), x))
#if defined(__gfx90a__)
TILE_NO_ADD_PAIR(shared_place, half_t)
TILE_NO_ADD_PAIR(global_place, bfloat16_t)
TILE_NO_ADD_PAIR(shared_place, bfloat16_t)
#else
TILE_ADD_PAIR(shared_place, half_t, half_pair,
              __builtin_amdgcn_ds_atomic_fadd_v2f16(at.around<half_pair>(), x))
TILE_ADD_PAIR(global_place, bfloat16_t, short_pair,
              __builtin_amdgcn_global_atomic_fadd_v2bf16(at.around<short_pair>(), x))
TILE_ADD_PAIR(shared_place, bfloat16_t, short_pair,
              __builtin_amdgcn_ds_atomic_fadd_v2bf16(at.around<short_pair>(), x))
#endif
#undef TILE_ADD_PAIR
#undef TILE_NO_ADD_PAIR

// One of the two: the other gets -0, which changes no number.
template <class P>
TILE_DEVICE typename P::element add_one_of_pair(P at, typename P::element value) {
  using T = typename P::element;
  const u32 shift = at.offset_in_word() * 8;
  const u32 pair = static_cast<u32>(bits_as<u16>(value)) << shift | 0x8000u << (16 - shift);
  return bits_as<T>(static_cast<u16>(add_pair(at, pair) >> shift));
}

template <class P>
TILE_DEVICE element_at<P> atomic_add(P p, element_at<P> value, memory_order order = relaxed) {
  using T = element_at<P>;
  fence_before(order);
  const auto at = place_of(p);
  T old;
  if constexpr (same<T, float> || same<T, double>) {
    old = add_float(at, value);
  } else if constexpr (is_half<T>) {
    old = add_one_of_pair(at, value);
  } else if constexpr (is_word_integer<T>) {
    using U = bits_of<T>;
    const auto word = at.template as<U>();
    const U added = static_cast<U>(value);
    old = static_cast<T>(
        order == system_release
            ? __hip_atomic_fetch_add(word, added, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM)
            : __hip_atomic_fetch_add(word, added, __ATOMIC_RELAXED, TILE_SCOPE));
  } else {
    old = update(at, [=](T x) { return static_cast<T>(x + value); });
  }
  fence_after(order);
  return old;
}

#define TILE_ATOMIC(NAME, FUNCTION, U, CHANGED)                                              \
  template <class P>                                                                         \
  TILE_DEVICE element_at<P> NAME(P p, element_at<P> value, memory_order order = relaxed) {   \
    using T = element_at<P>;                                                                 \
    fence_before(order);                                                                     \
    const auto at = place_of(p);                                                             \
    T old;                                                                                   \
    if constexpr (is_word_integer<T>) {                                                      \
      old = static_cast<T>(FUNCTION(at.template as<U>(), static_cast<U>(value),              \
                                    __ATOMIC_RELAXED, TILE_SCOPE));                          \
    } else {                                                                                 \
      old = update(at, [=](T x) { return static_cast<T>(CHANGED); });                        \
    }                                                                                        \
    fence_after(order);                                                                      \
    return old;                                                                              \
  }
// A number wins over NaN.
TILE_ATOMIC(atomic_max, __hip_atomic_fetch_max, T, max(x, value))
TILE_ATOMIC(atomic_min, __hip_atomic_fetch_min, T, min(x, value))
TILE_ATOMIC(atomic_and, __hip_atomic_fetch_and, bits_of<T>, x & value)
TILE_ATOMIC(atomic_or, __hip_atomic_fetch_or, bits_of<T>, x | value)
TILE_ATOMIC(atomic_xor, __hip_atomic_fetch_xor, bits_of<T>, x ^ value)
#undef TILE_ATOMIC

template <class P>
TILE_DEVICE element_at<P> atomic_exchange(P p, element_at<P> value, memory_order order = relaxed) {
  using T = element_at<P>;
  using U = bits_of<T>;
  fence_before(order);
  const auto at = place_of(p);
  T old;
  if constexpr (sizeof(T) >= 4) {
    old = bits_as<T>(__hip_atomic_exchange(at.template as<U>(), bits_as<U>(value),
                                           __ATOMIC_RELAXED, TILE_SCOPE));
  } else {
    old = update(at, [=](T) { return value; });
  }
  fence_after(order);
  return old;
}

template <class P>
TILE_DEVICE typename without_const<element_at<P>>::type atomic_load(
    P p, memory_order order = relaxed) {
  using T = typename without_const<element_at<P>>::type;
  using U = bits_of<T>;
  if (order == seq_cst) fence_before(order);
  const auto at = place_of(p).template as<U>();
  const U bits = order == system_acquire
                     ? __hip_atomic_load(at, __ATOMIC_RELAXED, __HIP_MEMORY_SCOPE_SYSTEM)
                     : __hip_atomic_load(at, __ATOMIC_RELAXED, TILE_SCOPE);
  fence_after(order);
  return bits_as<T>(bits);
}

template <class P>
TILE_DEVICE element_at<P> atomic_store(P p, element_at<P> value, memory_order order = relaxed) {
  using U = bits_of<element_at<P>>;
  fence_before(order);
  __hip_atomic_store(place_of(p).template as<U>(), bits_as<U>(value), __ATOMIC_RELAXED, TILE_SCOPE);
  if (order == seq_cst) fence_after(order);
  return value;
}

// The low four bits of a byte become `bits`, or with a shift of 4 the high ones; others may store
// the rest of it meanwhile.
template <class P>
TILE_DEVICE void store_nibble(P p, int shift, u8 bits) {
  update(place_of(p), [=](u8 x) { return static_cast<u8>((x & 0xf0 >> shift) | bits << shift); });
}

// p[0..N) += registers[0..N), each element indivisibly; p is a multiple of the vector's size.
template <int N, class P, class U>
TILE_DEVICE void atomic_add(P p, const U* registers) {
  using T = element_at<P>;
  static_assert(same<T, U>, "tile::atomic_add: memory and registers differ in type");
  if constexpr (is_half<T> && N % 2 == 0) {
    TILE_UNROLL
    for (int i = 0; i < N; i += 2) add_pair(place_of(p + i), word(registers + i, 0));
  } else {
    TILE_UNROLL
    for (int i = 0; i < N; ++i) atomic_add(p + i, registers[i]);
  }
}

#undef TILE_SCOPE

}  // namespace tile
