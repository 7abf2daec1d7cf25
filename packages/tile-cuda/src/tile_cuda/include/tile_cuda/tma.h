// Asynchronous copies between global and shared memory that one thread starts.
//
// Loads complete their bytes on a barrier; stores are in groups that the thread which started
// them waits for. Coordinates count elements, innermost first, and may lie outside the tensor.
// HINT is for the cache, about the bytes in global memory.
#pragma once
#include "tile_cuda/cache_hint.h"
#include "tile_cuda/mbarrier.h"

namespace tile {

// Coordinates as operands of asm, from number 2, 3, 4 or 5 of its text on.
#define TILE_AT1 "r"(at[0])
#define TILE_AT2 TILE_AT1, "r"(at[1])
#define TILE_AT3 TILE_AT2, "r"(at[2])
#define TILE_AT4 TILE_AT3, "r"(at[3])
#define TILE_AT5 TILE_AT4, "r"(at[4])
#define TILE_EACH_RANK(DEFINE, ...)                             \
  if constexpr (RANK == 1) {                                    \
    DEFINE("1d", TILE_TEXT1(__VA_ARGS__), TILE_AT1)             \
  } else if constexpr (RANK == 2) {                             \
    DEFINE("2d", TILE_TEXT2(__VA_ARGS__), TILE_AT2)             \
  } else if constexpr (RANK == 3) {                             \
    DEFINE("3d", TILE_TEXT3(__VA_ARGS__), TILE_AT3)             \
  } else if constexpr (RANK == 4) {                             \
    DEFINE("4d", TILE_TEXT4(__VA_ARGS__), TILE_AT4)             \
  } else {                                                      \
    DEFINE("5d", TILE_TEXT5(__VA_ARGS__), TILE_AT5)             \
  }
#define TILE_TEXT1(a, b, c, d, e) "{%" #a "}"
#define TILE_TEXT2(a, b, c, d, e) "{%" #a ", %" #b "}"
#define TILE_TEXT3(a, b, c, d, e) "{%" #a ", %" #b ", %" #c "}"
#define TILE_TEXT4(a, b, c, d, e) "{%" #a ", %" #b ", %" #c ", %" #d "}"
#define TILE_TEXT5(a, b, c, d, e) "{%" #a ", %" #b ", %" #c ", %" #d ", %" #e "}"

// Shared memory of the block itself, where a load ends. Blackwell's assembler takes addresses of a
// cluster there for somebody else's: on sm_120a it calls a check before each load, ignores
// `setmaxnreg` for the sake of that call, and spills. Hopper knows no other spelling (PTX 8.6).
#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 1000
#define TILE_OWN ".shared::cta"
#else
#define TILE_OWN ".shared::cluster"
#endif

// shared = the box of the map at the coordinates.
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_DEVICE void tma_load(T* shared, const tensor_map& map, u64* bar, C... coordinates) {
  static_assert(sizeof...(C) == RANK, "tile::tma_load: a coordinate for each dimension");
  const int at[] = {static_cast<int>(coordinates)...};
#define TILE_LOAD(DIMENSIONS, AT, ...)                                                        \
  asm volatile("cp.async.bulk.tensor." DIMENSIONS                                             \
               TILE_OWN ".global.tile.mbarrier::complete_tx::bytes [%0], [%1, " AT            \
               "], [%2];" ::"r"(shared_address(shared)),                                      \
               "l"(&map), "r"(shared_address(bar)), __VA_ARGS__                               \
               : "memory");
#define TILE_HINTED(DIMENSIONS, AT, ...)                                                      \
  asm volatile("cp.async.bulk.tensor." DIMENSIONS                                             \
               TILE_OWN ".global.tile.mbarrier::complete_tx::bytes.L2::cache_hint"            \
               " [%0], [%1, " AT "], [%2], %3;" ::"r"(shared_address(shared)),                \
               "l"(&map), "r"(shared_address(bar)), "l"(cache_policy<HINT>()), __VA_ARGS__    \
               : "memory");
  if constexpr (HINT == no_hint) {
    TILE_EACH_RANK(TILE_LOAD, 3, 4, 5, 6, 7)
  } else {
    TILE_EACH_RANK(TILE_HINTED, 4, 5, 6, 7, 8)
  }
#undef TILE_LOAD
#undef TILE_HINTED
}

#if !defined(__CUDA_ARCH__) || (__CUDA_ARCH__ >= 1000 && __CUDA_ARCH__ < 1200)
// The same, and on the barrier of the first block of a pair: addresses of a cluster have the number
// of the block from bit 24 on. Source: PTX ISA, "cp.async.bulk.tensor", `.cta_group`.
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_DEVICE void tma_load_pair(T* shared, const tensor_map& map, u64* bar, C... coordinates) {
  static_assert(sizeof...(C) == RANK, "tile::tma_load_pair: a coordinate for each dimension");
  const int at[] = {static_cast<int>(coordinates)...};
  const u32 first = shared_address(bar) & 0xfeffffff;
#define TILE_LOAD(DIMENSIONS, AT, ...)                                                        \
  asm volatile("cp.async.bulk.tensor." DIMENSIONS                                             \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"       \
               " [%0], [%1, " AT "], [%2];" ::"r"(shared_address(shared)),                    \
               "l"(&map), "r"(first), __VA_ARGS__                                             \
               : "memory");
#define TILE_HINTED(DIMENSIONS, AT, ...)                                                      \
  asm volatile("cp.async.bulk.tensor." DIMENSIONS                                             \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.cta_group::2"       \
               ".L2::cache_hint [%0], [%1, " AT "], [%2], %3;" ::"r"(shared_address(shared)), \
               "l"(&map), "r"(first), "l"(cache_policy<HINT>()), __VA_ARGS__                  \
               : "memory");
  if constexpr (HINT == no_hint) {
    TILE_EACH_RANK(TILE_LOAD, 3, 4, 5, 6, 7)
  } else {
    TILE_EACH_RANK(TILE_HINTED, 4, 5, 6, 7, 8)
  }
#undef TILE_LOAD
#undef TILE_HINTED
}
#endif

// The same into every block of the cluster whose bit is set in `mask`, and on the barrier there.
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_DEVICE void tma_load_multicast(T* shared, const tensor_map& map, u64* bar, u32 mask,
                                    C... coordinates) {
  static_assert(sizeof...(C) == RANK, "tile::tma_load_multicast: a coordinate for each dimension");
  const int at[] = {static_cast<int>(coordinates)...};
#define TILE_LOAD(DIMENSIONS, AT, ...)                                                        \
  asm volatile("cp.async.bulk.tensor." DIMENSIONS                                             \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster" \
               " [%0], [%1, " AT "], [%2], %3;" ::"r"(shared_address(shared)),                \
               "l"(&map), "r"(shared_address(bar)), "h"(static_cast<u16>(mask)), __VA_ARGS__  \
               : "memory");
#define TILE_HINTED(DIMENSIONS, AT, ...)                                                      \
  asm volatile("cp.async.bulk.tensor." DIMENSIONS                                             \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes.multicast::cluster" \
               ".L2::cache_hint [%0], [%1, " AT "], [%2], %3, %4;" ::"r"(                     \
                   shared_address(shared)),                                                   \
               "l"(&map), "r"(shared_address(bar)), "h"(static_cast<u16>(mask)),              \
               "l"(cache_policy<HINT>()), __VA_ARGS__                                         \
               : "memory");
  if constexpr (HINT == no_hint) {
    TILE_EACH_RANK(TILE_LOAD, 4, 5, 6, 7, 8)
  } else {
    TILE_EACH_RANK(TILE_HINTED, 5, 6, 7, 8, 9)
  }
#undef TILE_LOAD
#undef TILE_HINTED
}

// The box of the map at the coordinates = shared, or combined with it.
#define TILE_STORE(DIMENSIONS, AT, ...)                                            \
  asm volatile(TILE_START DIMENSIONS TILE_HOW " [%0, " AT "], [%1];" ::"l"(&map),  \
               "r"(shared_address(shared)), __VA_ARGS__                            \
               : "memory");
#define TILE_HINTED(DIMENSIONS, AT, ...)                                           \
  asm volatile(TILE_START DIMENSIONS TILE_HOW ".L2::cache_hint [%0, " AT           \
               "], [%1], %2;" ::"l"(&map),                                         \
               "r"(shared_address(shared)), "l"(cache_policy<HINT>()), __VA_ARGS__ \
               : "memory");
#define TILE_STORE_AS(NAME)                                                                  \
  template <int RANK, hint HINT = no_hint, class T, class... C>                              \
  TILE_DEVICE void NAME(const tensor_map& map, const T* shared, C... coordinates) {          \
    static_assert(sizeof...(C) == RANK, "tile::" #NAME ": a coordinate for each dimension"); \
    const int at[] = {static_cast<int>(coordinates)...};                                     \
    if constexpr (HINT == no_hint) {                                                         \
      TILE_EACH_RANK(TILE_STORE, 2, 3, 4, 5, 6)                                              \
    } else {                                                                                 \
      TILE_EACH_RANK(TILE_HINTED, 3, 4, 5, 6, 7)                                             \
    }                                                                                        \
  }
#define TILE_START "cp.async.bulk.tensor."
#define TILE_HOW ".global.shared::cta.tile.bulk_group"
TILE_STORE_AS(tma_store)
#undef TILE_START
#undef TILE_HOW
#define TILE_START "cp.reduce.async.bulk.tensor."
#define TILE_HOW ".global.shared::cta.add.tile.bulk_group"
TILE_STORE_AS(tma_reduce_add)
#undef TILE_HOW
#define TILE_HOW ".global.shared::cta.min.tile.bulk_group"
TILE_STORE_AS(tma_reduce_min)
#undef TILE_HOW
#define TILE_HOW ".global.shared::cta.max.tile.bulk_group"
TILE_STORE_AS(tma_reduce_max)
#undef TILE_HOW
#undef TILE_START
#undef TILE_STORE_AS
#undef TILE_STORE
#undef TILE_HINTED
#undef TILE_EACH_RANK
#undef TILE_TEXT1
#undef TILE_TEXT2
#undef TILE_TEXT3
#undef TILE_TEXT4
#undef TILE_TEXT5

// Bytes side by side: addresses and counts are multiples of 16.
template <hint HINT = no_hint, class T, class U>
TILE_DEVICE void bulk_load(T* shared, const U* global, u32 bytes, u64* bar) {
  if constexpr (HINT == no_hint) {
    asm volatile(
        "cp.async.bulk" TILE_OWN ".global.mbarrier::complete_tx::bytes [%0], [%1], %2, [%3];" ::"r"(
            shared_address(shared)),
        "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(bar))
        : "memory");
  } else {
    asm volatile(
        "cp.async.bulk" TILE_OWN ".global.mbarrier::complete_tx::bytes.L2::cache_hint"
        " [%0], [%1], %2, [%3], %4;" ::"r"(shared_address(shared)),
        "l"(__cvta_generic_to_global(global)), "r"(bytes), "r"(shared_address(bar)),
        "l"(cache_policy<HINT>())
        : "memory");
  }
}
template <hint HINT = no_hint, class T, class U>
TILE_DEVICE void bulk_store(T* global, const U* shared, u32 bytes) {
  if constexpr (HINT == no_hint) {
    asm volatile("cp.async.bulk.global.shared::cta.bulk_group [%0], [%1], %2;" ::"l"(
                     __cvta_generic_to_global(global)),
                 "r"(shared_address(shared)), "r"(bytes)
                 : "memory");
  } else {
    asm volatile(
        "cp.async.bulk.global.shared::cta.bulk_group.L2::cache_hint [%0], [%1], %2, %3;" ::"l"(
            __cvta_generic_to_global(global)),
        "r"(shared_address(shared)), "r"(bytes), "l"(cache_policy<HINT>())
        : "memory");
  }
}

// global += shared, element by element.
#define TILE_BULK_ADD(T, TEXT)                                                                 \
  template <hint HINT = no_hint>                                                               \
  TILE_DEVICE void bulk_reduce_add(T* global, const T* shared, u32 bytes) {                    \
    if constexpr (HINT == no_hint) {                                                           \
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.add." TEXT              \
                   " [%0], [%1], %2;" ::"l"(__cvta_generic_to_global(global)),                 \
                   "r"(shared_address(shared)), "r"(bytes)                                     \
                   : "memory");                                                                \
    } else {                                                                                   \
      asm volatile("cp.reduce.async.bulk.global.shared::cta.bulk_group.L2::cache_hint.add."    \
                   TEXT " [%0], [%1], %2, %3;" ::"l"(__cvta_generic_to_global(global)),        \
                   "r"(shared_address(shared)), "r"(bytes), "l"(cache_policy<HINT>())          \
                   : "memory");                                                                \
    }                                                                                          \
  }
TILE_BULK_ADD(half_t, "noftz.f16")
TILE_BULK_ADD(bfloat16_t, "noftz.bf16")
TILE_BULK_ADD(float, "f32")
TILE_BULK_ADD(double, "f64")
TILE_BULK_ADD(i32, "s32")
TILE_BULK_ADD(u32, "u32")
TILE_BULK_ADD(u64, "u64")
#undef TILE_BULK_ADD

// To the place of the name `shared` in block `rank` of the cluster, and on its barrier `bar`.
template <class T, class U>
TILE_DEVICE void bulk_copy_remote(T* shared, u32 rank, const U* source, u32 bytes, u64* bar) {
  asm volatile(
      "{\n\t.reg .b32 to, on;\n\tmapa.shared::cluster.u32 to, %0, %4;\n\t"
      "mapa.shared::cluster.u32 on, %3, %4;\n\t"
      "cp.async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes"
      " [to], [%1], %2, [on];\n\t}" ::"r"(shared_address(shared)),
      "r"(shared_address(source)), "r"(bytes), "r"(shared_address(bar)), "r"(rank)
      : "memory");
}

// Close this thread's group of stores.
TILE_DEVICE void tma_store_commit() { asm volatile("cp.async.bulk.commit_group;" ::: "memory"); }

// Until all but PENDING groups have read their shared memory; until they are complete.
template <int PENDING>
TILE_DEVICE void tma_store_wait_read() {
  asm volatile("cp.async.bulk.wait_group.read %0;" ::"n"(PENDING) : "memory");
}
template <int PENDING>
TILE_DEVICE void tma_store_wait() {
  asm volatile("cp.async.bulk.wait_group %0;" ::"n"(PENDING) : "memory");
}

// Fetch the map itself ahead of its first use.
TILE_DEVICE void tma_prefetch(const tensor_map& map) {
  asm volatile("prefetch.tensormap [%0];" ::"l"(&map) : "memory");
}

}  // namespace tile
