// Functions of other GPUs: a kernel that calls one is refused in words.
#pragma once
#include "tile_hip/types.h"

#define TILE_LACKS(NAME)                                                                 \
  template <int... N, class... T>                                                        \
  TILE_DEVICE int NAME(const T&... arguments) {                                          \
    static_assert(never<T...>, "tile::" #NAME " needs a GPU of NVIDIA");                 \
    return 0;                                                                            \
  }

namespace tile {

TILE_LACKS(ldmatrix_x1)
TILE_LACKS(ldmatrix_x1_trans)
TILE_LACKS(ldmatrix_x2)
TILE_LACKS(ldmatrix_x2_trans)
TILE_LACKS(ldmatrix_x4)
TILE_LACKS(ldmatrix_x4_trans)
TILE_LACKS(mma_m8n8k4)
TILE_LACKS(mma_m8n8k16)
TILE_LACKS(mma_m8n8k32)
TILE_LACKS(mma_m16n8k4)
TILE_LACKS(mma_m16n8k8)
TILE_LACKS(mma_m16n8k16)
TILE_LACKS(mma_m16n8k32)
TILE_LACKS(mma_m16n8k64)
TILE_LACKS(mma_m8n8k4_row_row)
TILE_LACKS(mma_m8n8k4_col_col)
TILE_LACKS(mma_m8n8k4_col_row)
TILE_LACKS(mbarrier_init)
TILE_LACKS(fence_mbarrier_init)
TILE_LACKS(mbarrier_arrive)
TILE_LACKS(mbarrier_arrive_remote)
TILE_LACKS(mbarrier_free_remote)
TILE_LACKS(mbarrier_wait_cluster)
TILE_LACKS(mbarrier_expect_tx)
TILE_LACKS(mbarrier_arrive_expect_tx)
TILE_LACKS(mbarrier_wait)
TILE_LACKS(cp_async_mbarrier_arrive)
TILE_LACKS(fence_proxy_async)
TILE_LACKS(tma_load)
TILE_LACKS(tma_load_multicast)
TILE_LACKS(tma_store)
TILE_LACKS(tma_reduce_add)
TILE_LACKS(tma_reduce_min)
TILE_LACKS(tma_reduce_max)
TILE_LACKS(bulk_load)
TILE_LACKS(bulk_store)
TILE_LACKS(bulk_reduce_add)
TILE_LACKS(bulk_copy_remote)
TILE_LACKS(tma_store_commit)
TILE_LACKS(tma_store_wait_read)
TILE_LACKS(tma_store_wait)
TILE_LACKS(tma_prefetch)
TILE_LACKS(wgmma_fence)
TILE_LACKS(wgmma_commit)
TILE_LACKS(wgmma_wait)
TILE_LACKS(wgmma_pin)
TILE_LACKS(wgmma_ss)
TILE_LACKS(wgmma_ss_set)
TILE_LACKS(wgmma_rs)
TILE_LACKS(wgmma_rs_set)
TILE_LACKS(wgmma_operand)
TILE_LACKS(stmatrix_x1)
TILE_LACKS(stmatrix_x1_trans)
TILE_LACKS(stmatrix_x2)
TILE_LACKS(stmatrix_x2_trans)
TILE_LACKS(stmatrix_x4)
TILE_LACKS(stmatrix_x4_trans)
TILE_LACKS(registers_increase)
TILE_LACKS(registers_decrease)
TILE_LACKS(elect)
TILE_LACKS(cluster_arrive)
TILE_LACKS(cluster_wait)
TILE_LACKS(cluster_sync)
TILE_LACKS(cluster_arrive_relaxed)
TILE_LACKS(cluster_rank)
TILE_LACKS(remote)
TILE_LACKS(grid_wait)
TILE_LACKS(grid_launch)

}  // namespace tile
#undef TILE_LACKS
