// Functions that an architecture lacks: a kernel that calls one is refused in words.
#pragma once
#include "tile_cuda/types.h"

#define TILE_LACKS(NAME, NEEDS)                                             \
  template <int... N, class... T>                                           \
  TILE_DEVICE int NAME(const T&... arguments) {                             \
    static_assert(never<T...>, "tile::" #NAME " needs " NEEDS);             \
    return 0;                                                               \
  }

namespace tile {

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 800
TILE_LACKS(mbarrier_init, "sm_80 or newer")
TILE_LACKS(mbarrier_arrive, "sm_80 or newer")
TILE_LACKS(mbarrier_wait, "sm_80 or newer")
TILE_LACKS(cp_async_mbarrier_arrive, "sm_80 or newer")
TILE_LACKS(fence_mbarrier_init, "sm_80 or newer")
#endif

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ < 900
TILE_LACKS(mbarrier_arrive_remote, "sm_90 or newer")
TILE_LACKS(mbarrier_free_remote, "sm_90 or newer")
TILE_LACKS(mbarrier_wait_cluster, "sm_90 or newer")
TILE_LACKS(mbarrier_expect_tx, "sm_90 or newer")
TILE_LACKS(mbarrier_arrive_expect_tx, "sm_90 or newer")
TILE_LACKS(fence_proxy_async, "sm_90 or newer")
TILE_LACKS(tma_load, "sm_90 or newer")
TILE_LACKS(tma_load_multicast, "sm_90 or newer")
TILE_LACKS(tma_store, "sm_90 or newer")
TILE_LACKS(tma_reduce_add, "sm_90 or newer")
TILE_LACKS(tma_reduce_min, "sm_90 or newer")
TILE_LACKS(tma_reduce_max, "sm_90 or newer")
TILE_LACKS(bulk_load, "sm_90 or newer")
TILE_LACKS(bulk_store, "sm_90 or newer")
TILE_LACKS(bulk_reduce_add, "sm_90 or newer")
TILE_LACKS(bulk_copy_remote, "sm_90 or newer")
TILE_LACKS(tma_store_commit, "sm_90 or newer")
TILE_LACKS(tma_store_wait_read, "sm_90 or newer")
TILE_LACKS(tma_store_wait, "sm_90 or newer")
TILE_LACKS(tma_prefetch, "sm_90 or newer")
TILE_LACKS(elect, "sm_90 or newer")
TILE_LACKS(cluster_arrive, "sm_90 or newer")
TILE_LACKS(cluster_arrive_relaxed, "sm_90 or newer")
TILE_LACKS(cluster_wait, "sm_90 or newer")
TILE_LACKS(cluster_sync, "sm_90 or newer")
TILE_LACKS(cluster_rank, "sm_90 or newer")
TILE_LACKS(remote, "sm_90 or newer")
TILE_LACKS(grid_wait, "sm_90 or newer")
TILE_LACKS(grid_launch, "sm_90 or newer")
#endif

#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL)
#define TILE_PRODUCTS_LACK "sm_90a"
#endif
#ifdef TILE_PRODUCTS_LACK
TILE_LACKS(wgmma_operand, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_fence, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_commit, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_wait, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_pin, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_ss, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_ss_set, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_rs, TILE_PRODUCTS_LACK)
TILE_LACKS(wgmma_rs_set, TILE_PRODUCTS_LACK)
#endif

#if defined(__CUDA_ARCH__) && (__CUDA_ARCH__ < 1000 || __CUDA_ARCH__ >= 1200)
#define TILE_TENSOR_MEMORY_LACKS
TILE_LACKS(tcgen05_alloc, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_base, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_free, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_before, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_after, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_load, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_store, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_operand, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma_set, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma_ts, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma_ts_set, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_scales, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma_scaled, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma_scaled_set, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_commit, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_alloc_pair, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_free_pair, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma_pair, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_mma_pair_set, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_commit_pair, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tcgen05_tell_first, "sm_100a, sm_103a or sm_110a")
TILE_LACKS(tma_load_pair, "sm_100a, sm_103a or sm_110a")
#endif

// From sm_100 on, plain names are compiled as those that end in a.
#if defined(__CUDA_ARCH__) && !defined(__CUDA_ARCH_FEAT_SM90_ALL) && __CUDA_ARCH__ < 1000
#define TILE_REGISTERS_STAY
TILE_LACKS(registers_increase, "sm_90a, sm_100a or newer")
TILE_LACKS(registers_decrease, "sm_90a, sm_100a or newer")
#endif

}  // namespace tile
#undef TILE_LACKS
