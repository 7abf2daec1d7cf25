// Indivisible updates of elements in global or shared memory; each returns the old value.
//
// By an instruction where there is one for the type, else by comparing and exchanging. Orders other
// than relaxed are fences of the whole device before or after.
#pragma once
#include "tile_cuda/arithmetic.h"

namespace tile {

// The last two are for what other devices, and other processes, read and write as well.
enum memory_order { relaxed, consume, acquire, release, acq_rel, seq_cst, system_acquire, system_release };

TILE_DEVICE void fence_before(memory_order order) {
  if (order == release || order == acq_rel || order == seq_cst) __threadfence();
  if (order == system_release) __threadfence_system();
}
TILE_DEVICE void fence_after(memory_order order) {
  if (order == consume || order == acquire || order == acq_rel || order == seq_cst) __threadfence();
  if (order == system_acquire) __threadfence_system();
}

TILE_DEVICE u32 exchange_if(u32* p, u32 expected, u32 value) { return ::atomicCAS(p, expected, value); }
TILE_DEVICE u64 exchange_if(u64* p, u64 expected, u64 value) { return ::atomicCAS(p, expected, value); }
TILE_DEVICE u16 exchange_if(u16* p, u16 expected, u16 value) { return ::atomicCAS(p, expected, value); }
// A byte is exchanged with the word around it, until its neighbours hold still.
TILE_DEVICE u8 exchange_if(u8* p, u8 expected, u8 value) {
  const u64 address = reinterpret_cast<u64>(p);
  u32* around = reinterpret_cast<u32*>(address & ~u64(3));
  const u32 shift = static_cast<u32>(address & 3) * 8;
  u32 seen = *reinterpret_cast<volatile u32*>(around);
  while (static_cast<u8>(seen >> shift) == expected) {
    const u32 wanted = (seen & ~(0xffu << shift)) | static_cast<u32>(value) << shift;
    const u32 found = ::atomicCAS(around, seen, wanted);
    if (found == seen) break;
    seen = found;
  }
  return static_cast<u8>(seen >> shift);
}

// *p = f(*p), whatever `f` is.
template <class T, class F>
TILE_DEVICE T update(T* p, F f) {
  using U = bits_of<T>;
  U* bits = reinterpret_cast<U*>(p);
  U seen = *reinterpret_cast<volatile U*>(bits);
  while (true) {
    const U wanted = bitcast<U>(f(bitcast<T>(seen)));
    if (wanted == seen) return bitcast<T>(seen);
    const U found = exchange_if(bits, seen, wanted);
    if (found == seen) return bitcast<T>(seen);
    seen = found;
  }
}

template <class T>
constexpr bool is_word_integer = !is_float<T> && !same<T, bool> && sizeof(T) >= 4;

template <class T>
using atomic_word = typename when_else<sizeof(T) == 8, typename when_else<is_signed<T>, i64, u64>::type,
                                       typename when_else<is_signed<T>, int, u32>::type>::type;

template <class T>
TILE_DEVICE T atomic_add(T* p, T value, memory_order order = relaxed) {
  fence_before(order);
  T old;
  if constexpr (same<T, float> || same<T, double> || is_half<T>) {
    old = ::atomicAdd(p, value);
  } else if constexpr (is_word_integer<T>) {
    using U = bits_of<T>;
    U* word = reinterpret_cast<U*>(p);
    old = static_cast<T>(order == system_release ? ::atomicAdd_system(word, static_cast<U>(value))
                                                 : ::atomicAdd(word, static_cast<U>(value)));
  } else {
    old = update(p, [=](T x) { return static_cast<T>(x + value); });
  }
  fence_after(order);
  return old;
}

// A number wins over NaN.
template <class T>
TILE_DEVICE T atomic_max(T* p, T value, memory_order order = relaxed) {
  fence_before(order);
  T old;
  if constexpr (is_word_integer<T>) {
    using W = atomic_word<T>;
    old = static_cast<T>(::atomicMax(reinterpret_cast<W*>(p), static_cast<W>(value)));
  } else {
    old = update(p, [=](T x) { return max(x, value); });
  }
  fence_after(order);
  return old;
}

template <class T>
TILE_DEVICE T atomic_min(T* p, T value, memory_order order = relaxed) {
  fence_before(order);
  T old;
  if constexpr (is_word_integer<T>) {
    using W = atomic_word<T>;
    old = static_cast<T>(::atomicMin(reinterpret_cast<W*>(p), static_cast<W>(value)));
  } else {
    old = update(p, [=](T x) { return min(x, value); });
  }
  fence_after(order);
  return old;
}

#define TILE_ATOMIC_BITS(NAME, FUNCTION, OP)                                                    \
  template <class T>                                                                            \
  TILE_DEVICE T NAME(T* p, T value, memory_order order = relaxed) {                            \
    fence_before(order);                                                                        \
    T old;                                                                                      \
    if constexpr (is_word_integer<T>) {                                                         \
      using U = bits_of<T>;                                                                     \
      old = static_cast<T>(FUNCTION(reinterpret_cast<U*>(p), static_cast<U>(value)));           \
    } else {                                                                                    \
      old = update(p, [=](T x) { return static_cast<T>(x OP value); });                         \
    }                                                                                           \
    fence_after(order);                                                                         \
    return old;                                                                                 \
  }
TILE_ATOMIC_BITS(atomic_and, ::atomicAnd, &)
TILE_ATOMIC_BITS(atomic_or, ::atomicOr, |)
TILE_ATOMIC_BITS(atomic_xor, ::atomicXor, ^)
#undef TILE_ATOMIC_BITS

template <class T>
TILE_DEVICE T atomic_exchange(T* p, T value, memory_order order = relaxed) {
  using U = bits_of<T>;
  fence_before(order);
  T old;
  if constexpr (sizeof(T) >= 4) {
    old = bitcast<T>(static_cast<U>(::atomicExch(reinterpret_cast<U*>(p), bitcast<U>(value))));
  } else {
    old = update(p, [=](T) { return value; });
  }
  fence_after(order);
  return old;
}

template <class T>
TILE_DEVICE T atomic_load(T* p, memory_order order = relaxed) {
  using U = bits_of<T>;
  if (order == seq_cst) __threadfence();
  const U bits = *reinterpret_cast<const volatile U*>(p);
  fence_after(order);
  return bitcast<T>(bits);
}

template <class T>
TILE_DEVICE T atomic_store(T* p, T value, memory_order order = relaxed) {
  using U = bits_of<T>;
  fence_before(order);
  *reinterpret_cast<volatile U*>(p) = bitcast<U>(value);
  if (order == seq_cst) __threadfence();
  return value;
}

// The low four bits of a byte become `bits`, or with a shift of 4 the high ones; others may store
// the rest of it meanwhile.
TILE_DEVICE void store_nibble(u8* p, int shift, u8 bits) {
  update(p, [=](u8 x) { return static_cast<u8>((x & 0xf0 >> shift) | bits << shift); });
}

// p[0..N) += registers[0..N), each element indivisibly; p is a multiple of the vector's size.
template <int N, class T, class U>
TILE_DEVICE void atomic_add(T* p, const U* registers) {
  static_assert(same<T, U>, "tile::atomic_add: memory and registers differ in type");
  constexpr int step = same<T, half_t> || same<T, bfloat16_t> ? 2 : 1;
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 900
  if constexpr (same<T, float> && N % 4 == 0) {
    if (__isGlobal(p)) {
      TILE_UNROLL
      for (int i = 0; i < N; i += 4) {
        asm volatile("red.global.add.v4.f32 [%0], {%1, %2, %3, %4};" ::"l"(__cvta_generic_to_global(p + i)),
                     "f"(registers[i]), "f"(registers[i + 1]), "f"(registers[i + 2]),
                     "f"(registers[i + 3])
                     : "memory");
      }
      return;
    }
  }
  if constexpr (same<T, float> && N % 4 == 2) {
    if (__isGlobal(p)) {
      TILE_UNROLL
      for (int i = 0; i < N; i += 2) {
        asm volatile("red.global.add.v2.f32 [%0], {%1, %2};" ::"l"(__cvta_generic_to_global(p + i)),
                     "f"(registers[i]), "f"(registers[i + 1])
                     : "memory");
      }
      return;
    }
  }
#endif
  TILE_UNROLL
  for (int i = 0; i < N; i += step) {
    if constexpr (step == 2 && N % 2 == 0) {
      if constexpr (same<T, half_t>) {
        ::atomicAdd(reinterpret_cast<__half2*>(p + i), __halves2half2(registers[i], registers[i + 1]));
      } else {
        ::atomicAdd(reinterpret_cast<__nv_bfloat162*>(p + i),
                    __halves2bfloat162(registers[i], registers[i + 1]));
      }
    } else {
      for (int k = i; k < i + step && k < N; ++k) atomic_add(p + k, registers[k]);
    }
  }
}

}  // namespace tile
