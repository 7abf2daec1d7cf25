// Asynchronous copies between global and shared memory that one thread starts.
//
// Loads complete their bytes on a barrier; stores are in groups that the thread which started
// them waits for. Coordinates count elements, innermost first, and may lie outside the tensor.
#pragma once
#include "tile_sim/cache_hint.h"
#include "tile_sim/matrix.h"
#include "tile_sim/mbarrier.h"

// A parameter that is a tensor map.
#define TILE_TENSOR_MAP(name) tile::tensor_map name

namespace tile {

struct tensor_map {
  const tsim_tensor_map* map;
};

// A map that knows the line it is used in: behind the coordinates there is no room for that.
struct map_at {
  const tsim_tensor_map* map;
  unsigned line;
  TILE_HOST map_at(const tensor_map& map, unsigned line = __builtin_LINE())
      : map(map.map), line(line) {}
};

template <int RANK, class... C>
struct box_at {
  static_assert(sizeof...(C) == RANK, "a box has a coordinate for each dimension of its map");
  int at[RANK];
  TILE_HOST explicit box_at(C... coordinates) : at{(int)coordinates...} {}
};

// shared = the box of the map at the coordinates.
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_HOST void tma_load(const sptr<T>& shared, map_at map, const sptr<u64>& bar,
                        C... coordinates) {
  check_hint<HINT, tsim_global>();
  const box_at<RANK, C...> box(coordinates...);
  tsim_tensor_load(&shared, map.map, &bar, 0, box.at, RANK, map.line);
}

// The same, and on the barrier of the first block of a pair.
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_HOST void tma_load_pair(const sptr<T>& shared, map_at map, const sptr<u64>& bar,
                             C... coordinates) {
  check_hint<HINT, tsim_global>();
  const box_at<RANK, C...> box(coordinates...);
  tsim_tensor_load_pair(&shared, map.map, &bar, box.at, RANK, map.line);
}

// The same into every block of the cluster whose bit is set in `mask`, and on the barrier there.
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_HOST void tma_load_multicast(const sptr<T>& shared, map_at map, const sptr<u64>& bar,
                                  u32 mask, C... coordinates) {
  check_hint<HINT, tsim_global>();
  const box_at<RANK, C...> box(coordinates...);
  tsim_tensor_load(&shared, map.map, &bar, mask & 0xffff, box.at, RANK, map.line);
}

// The box of the map at the coordinates = shared, or combined with it.
template <int RANK, class S, class... C>
TILE_HOST void store_box(const map_at& map, const S& shared, int reduction, C... coordinates) {
  const box_at<RANK, C...> box(coordinates...);
  tsim_tensor_store(map.map, &shared, reduction, box.at, RANK, map.line);
}
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_HOST void tma_store(map_at map, const sptr<T>& shared, C... coordinates) {
  check_hint<HINT, tsim_global>();
  store_box<RANK>(map, shared, -1, coordinates...);
}
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_HOST void tma_reduce_add(map_at map, const sptr<T>& shared, C... coordinates) {
  check_hint<HINT, tsim_global>();
  store_box<RANK>(map, shared, TSIM_ATOMIC_ADD, coordinates...);
}
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_HOST void tma_reduce_min(map_at map, const sptr<T>& shared, C... coordinates) {
  check_hint<HINT, tsim_global>();
  store_box<RANK>(map, shared, TSIM_ATOMIC_MIN, coordinates...);
}
template <int RANK, hint HINT = no_hint, class T, class... C>
TILE_HOST void tma_reduce_max(map_at map, const sptr<T>& shared, C... coordinates) {
  check_hint<HINT, tsim_global>();
  store_box<RANK>(map, shared, TSIM_ATOMIC_MAX, coordinates...);
}

// Bytes side by side: addresses and counts are multiples of 16.
template <hint HINT = no_hint, class T, class U>
TILE_HOST void bulk_load(const sptr<T>& shared, const gptr<U>& global, u32 bytes,
                         const sptr<u64>& bar, unsigned line = __builtin_LINE()) {
  check_hint<HINT, tsim_global>();
  tsim_bulk_load(&shared, &global, bytes, &bar, line);
}
template <hint HINT = no_hint, class T, class U>
TILE_HOST void bulk_store(const gptr<T>& global, const sptr<U>& shared, u32 bytes,
                          unsigned line = __builtin_LINE()) {
  check_hint<HINT, tsim_global>();
  tsim_bulk_store(&global, &shared, bytes, -1, type_code<T>, line);
}
// global += shared, element by element.
template <hint HINT = no_hint, class T, class U>
TILE_HOST void bulk_reduce_add(const gptr<T>& global, const sptr<U>& shared, u32 bytes,
                               unsigned line = __builtin_LINE()) {
  check_hint<HINT, tsim_global>();
  tsim_bulk_store(&global, &shared, bytes, TSIM_ATOMIC_ADD, type_code<T>, line);
}
// To the place of the name `shared` in block `rank` of the cluster, and on its barrier `bar`.
template <class T, class U>
TILE_HOST void bulk_copy_remote(const sptr<T>& shared, u32 rank, const sptr<U>& source, u32 bytes,
                                const sptr<u64>& bar, unsigned line = __builtin_LINE()) {
  tsim_bulk_copy_remote(&shared, (int)rank, &source, bytes, &bar, line);
}

// Close this thread's group of stores.
TILE_HOST void tma_store_commit(unsigned line = __builtin_LINE()) { tsim_bulk_commit(line); }
// Until all but PENDING groups have read their shared memory; until they are complete.
template <int PENDING>
TILE_HOST void tma_store_wait_read(unsigned line = __builtin_LINE()) {
  tsim_bulk_wait(PENDING, 1, line);
}
template <int PENDING>
TILE_HOST void tma_store_wait(unsigned line = __builtin_LINE()) {
  tsim_bulk_wait(PENDING, 0, line);
}

// Fetch the map itself ahead of its first use.
TILE_HOST void tma_prefetch(map_at map) { tsim_tensor_prefetch(map.map, map.line); }

}  // namespace tile
