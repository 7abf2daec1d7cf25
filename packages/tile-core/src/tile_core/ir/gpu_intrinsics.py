"""Names of TileLang's that say an instruction of one family of GPUs: all that this package knows.

Of intrinsics these are the type of the result and the effects. Targets without that instruction
refuse a kernel that calls one; see `tile_core.passes.refuse_gpu_only`. Any number of arguments is
accepted.
"""

from __future__ import annotations

from typing import TypeAlias

from tile_core.ir.effect import Effect

_MEMORY = Effect.READS | Effect.WRITES
_WAITS = _MEMORY | Effect.STATE  # orders asynchronous work against memory
_WARP = _MEMORY | Effect.WARP
_WARP_WAITS = _WARP | Effect.STATE

_Row: TypeAlias = "tuple[str, Effect, str]"
"""Result, effects, names."""

_OF_RANGES: tuple[_Row, ...] = (
    (
        "int32",
        _WAITS,
        """
        mbarrier_arrive mbarrier_wait_parity mbarrier_expect_tx mbarrier_arrive_expect_tx
        cp_async_barrier_noinc tma_store_arrive tma_store_wait fence_proxy_async
        warpgroup_arrive warpgroup_commit_batch pdl_trigger pdl_sync
        cluster_arrive cluster_arrive_relaxed cluster_wait cluster_sync
        """,
    ),
    ("int32", Effect.NONE, "block_rank_in_cluster"),
)
_ROWS: tuple[_Row, ...] = (
    *_OF_RANGES,
    (
        "int32",
        _WAITS,
        """
        ptx_init_barrier_thread_count ptx_fence_barrier_init create_barriers ptx_cp_async_barrier
        ptx_cp_async ptx_cp_async_bulk tma_load tma_load_2sm
        clc_try_cancel clc_try_cancel_multicast clc_is_canceled clc_get_first_ctaid_x
        clc_get_first_ctaid_y clc_get_first_ctaid_z
        """,
    ),
    (
        "int32",
        _WARP_WAITS,
        """
        ptx_wgmma_ss ptx_wgmma_rs ptx_wgmma_sp_ss ptx_wgmma_sp_rs initialize_wgmma_descriptor
        increase_descriptor_offset initialize_tcgen05_descriptor
        ptx_tcgen05_mma_ss ptx_tcgen05_mma_ts ptx_tcgen05_mma_blockscaled_ss
        tcgen05_after_thread_sync tcgen05_before_thread_sync tcgen05_cp_warpx4
        tcgen05_mma_arrive tcgen05_sf_warp_transpose deallocate_tmem
        """,
    ),
    (
        "int32",
        _WARP,
        """
        ptx_mma ptx_mma_sm70 ptx_mma_sp ptx_mma_block_scale ptx_ldmatrix mma_store mma_fill
        tvm_mma_sync tvm_bmma_sync tvm_load_matrix_sync tvm_store_matrix_sync tvm_fill_fragment
        """,
    ),
    ("handle", Effect.STATE, "create_tma_descriptor"),
    ("uint32", Effect.NONE, "__fns"),
    ("float32", Effect.NONE, "cast_rs"),
)

BARRIER_ARRIVALS = ("mbarrier_arrive", "mbarrier_arrive_expect_tx", "cp_async_barrier_noinc")
"""Arrive at a barrier in memory."""

COPY_ARRIVAL = "cp_async_barrier_noinc"
"""Arrives at a barrier in memory when the thread's earlier asynchronous copies are complete."""

ASYNC_COPY = "ptx_cp_async"
"""Begins an asynchronous copy of one thread."""

COPY_BARRIER = "ptx_cp_async_barrier"
"""`COPY_ARRIVAL` under another name."""

LOAD_MATRIX = "ptx_ldmatrix"
"""Loads matrices from shared memory into the registers of a warp."""

STORE_COMMIT, STORE_WAIT = "tma_store_arrive", "tma_store_wait"
"""Close a group of bulk copies out of shared memory, and wait for such groups."""

PRODUCT_FENCES = ("warpgroup_arrive", "warpgroup_commit_batch")
"""Stand around asynchronous products that a program starts itself."""

PREFER_ASYNC_COPY, PREFER_COPY_ENGINE = "cp_async", "tma"
"""What a copy says that wants asynchronous copies of threads, or the copy engine alone."""

DISABLE_COPY_ENGINE = "tl.disable_tma_lower"
"""The pass configuration without which copies use the copy engine."""

COPY_ENGINE_WORDS = ("bulk", PREFER_COPY_ENGINE)
"""What a copy says that wants the copy engine where it can be had."""

GPU_OPERATORS = frozenset(
    {
        *("tma_gather4", "tma_scatter4", "mma_gemm_blockscaled"),
        *("wgmma_gemm", "wgmma_gemm_sp", "wgmma_mma"),
        *("tcgen05_gemm", "tcgen05_gemm_blockscaled", "tcgen05_gemm_sp"),
        *("tcgen05_mma", "tcgen05_mma_blockscaled"),
    }
)
"""Operators on tiles that are instructions of one family of GPUs."""

SPELLINGS = {"bulk_copy": "tma_copy", "bulk_wait": STORE_WAIT, "copy_arrive": COPY_ARRIVAL}
"""By mnemonic of an operator: the function of the language that says it, where it has a name of one
family of GPUs.
"""

GPU_INTRINSICS: dict[str, tuple[str, Effect]] = {
    name: (result, effect) for result, effect, names in _ROWS for name in names.split()
}
"""By name: the dtype of the result and the effects."""

RANGE_INTRINSICS = frozenset(name for _, _, names in _OF_RANGES for name in names.split())
"""Those for ranges of threads that go different ways, whose meaning the interpreter defines.

Barriers in memory, what orders asynchronous work, and clusters of blocks. Every thread that
runs one does it.
"""
