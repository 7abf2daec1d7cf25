// Indivisible updates of elements in global or shared memory; each returns the old value.
#pragma once
#include "tile_sim/matrix.h"

namespace tile {

// The last two are for what other devices, and other processes, read and write as well.
enum memory_order { relaxed, consume, acquire, release, acq_rel, seq_cst, system_acquire, system_release };

// As on GPUs, orders other than relaxed are fences of the whole device before or after.
TILE_HOST void fence_before(memory_order order) {
  if (order == release || order == acq_rel || order == seq_cst || order == system_release) {
    tsim_fence();
  }
}
TILE_HOST void fence_after(memory_order order) {
  if (order == consume || order == acquire || order == acq_rel || order == seq_cst ||
      order == system_acquire) {
    tsim_fence();
  }
}

TILE_HOST void atomic(int operation, int type, const tsim_shared& place, const void* value,
                      void* old, int count, unsigned line) {
  tsim_atomic_shared(operation, type, &place, value, old, count, line);
}
TILE_HOST void atomic(int operation, int type, const tsim_global& place, const void* value,
                      void* old, int count, unsigned line) {
  tsim_atomic_global(operation, type, &place, value, old, count, line);
}

template <class T, class Place>
TILE_HOST T atomic_one(int operation, const pointer<T, Place>& p, T value, unsigned line) {
  T old;
  atomic(operation, type_code<T>, p, &value, &old, 1, line);
  return old;
}

// The type of the value is that of the element, whatever it was computed in.
template <class T>
struct exactly {
  using type = T;
};

#define TSIM_ATOMIC(NAME, OPERATION)                                                         \
  template <class T, class Place>                                                            \
  TILE_HOST T NAME(const pointer<T, Place>& p, typename exactly<T>::type value,              \
                   memory_order order = relaxed, unsigned line = __builtin_LINE()) {         \
    fence_before(order);                                                                     \
    const T old = atomic_one(OPERATION, p, value, line);                                     \
    fence_after(order);                                                                      \
    return old;                                                                              \
  }
TSIM_ATOMIC(atomic_add, TSIM_ATOMIC_ADD)
TSIM_ATOMIC(atomic_max, TSIM_ATOMIC_MAX)  // a number wins over NaN
TSIM_ATOMIC(atomic_min, TSIM_ATOMIC_MIN)
TSIM_ATOMIC(atomic_and, TSIM_ATOMIC_AND)
TSIM_ATOMIC(atomic_or, TSIM_ATOMIC_OR)
TSIM_ATOMIC(atomic_xor, TSIM_ATOMIC_XOR)
TSIM_ATOMIC(atomic_exchange, TSIM_ATOMIC_EXCHANGE)
#undef TSIM_ATOMIC

// *p = value if it is `expected`.
template <class T, class Place>
TILE_HOST T atomic_cas(const pointer<T, Place>& p, typename exactly<T>::type expected,
                       typename exactly<T>::type value, memory_order order = relaxed,
                       unsigned line = __builtin_LINE()) {
  const T both[2] = {expected, value};
  T old;
  fence_before(order);
  atomic(TSIM_ATOMIC_CAS, type_code<T>, p, both, &old, 1, line);
  fence_after(order);
  return old;
}

template <class T, class Place>
TILE_HOST typename without_const<T>::type atomic_load(const pointer<T, Place>& p,
                                                      memory_order order = relaxed,
                                                      unsigned line = __builtin_LINE()) {
  using Value = typename without_const<T>::type;
  Value old;
  if (order == seq_cst) tsim_fence();
  atomic(TSIM_ATOMIC_LOAD, type_code<Value>, p, nullptr, &old, 1, line);
  fence_after(order);
  return old;
}

template <class T, class Place>
TILE_HOST T atomic_store(const pointer<T, Place>& p, typename exactly<T>::type value,
                         memory_order order = relaxed, unsigned line = __builtin_LINE()) {
  fence_before(order);
  atomic(TSIM_ATOMIC_STORE, type_code<T>, p, &value, nullptr, 1, line);
  if (order == seq_cst) tsim_fence();
  return value;
}

// The low four bits of a byte become `bits`, or with a shift of 4 the high ones; others may store
// the rest of it meanwhile.
TILE_HOST void store_nibble(const pointer<u8, tsim_shared>& p, int shift, u8 bits,
                            unsigned line = __builtin_LINE()) {
  tsim_store_nibble_shared(&p, shift, bits, line);
}
TILE_HOST void store_nibble(const pointer<u8, tsim_global>& p, int shift, u8 bits,
                            unsigned line = __builtin_LINE()) {
  tsim_store_nibble_global(&p, shift, bits, line);
}

// p[0..N) += registers[0..N), each element indivisibly; p is a multiple of the vector's size.
template <int N, class T, class Place, class From>
TILE_HOST void atomic_add(const pointer<T, Place>& p, From&& from,
                          unsigned line = __builtin_LINE()) {
  const tsim_registers r = as_registers(from);
  atomic(TSIM_ATOMIC_ADD, type_code<T>, p, tsim_read_registers(&r, N * sizeof(T), line), nullptr, N,
         line);
}

}  // namespace tile
