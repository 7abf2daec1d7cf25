"""What a kernel says itself about barriers, engines and clusters: its text, checked, compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.driver import lower
from tile_core.errors import ToolchainError, UnsupportedOnTarget
from tile_core.plugins.host import installed_plugins
from tile_cuda.nvrtc_library import compiler_for
from tile_sim import checking

TARGET = "cuda:sm_90a"


def text_of(kernel: Any, target: str = TARGET) -> str:
    """Return the C++ text of a kernel; it must compile where there is a compiler."""
    lowered = lower(kernel.kernel, target, installed_plugins())
    try:
        compiler_for("sm_90a")
    except ToolchainError:
        return str(lowered.text("source"))
    if target == TARGET:
        lowered.backend.compile(lowered.module, lowered.target, lowered.options)
    return str(lowered.text("source"))


def with_body(body: Callable[..., None], **launch: Any) -> Any:
    """Return a kernel that runs `body` on a tensor, a tile and barriers."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(4, threads=256, **launch) as bx:
            S = T.alloc_shared((64, 64), "float16")
            bars = T.alloc_barrier([256] * 2)
            body(A, C, S, bars, bx)

    return kernel


def test_each_call_of_the_language_is_one_of_the_header() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        T.pdl_sync()
        T.mbarrier_expect_tx(bars[bx % 2], 0)
        T.mbarrier_arrive(bars[1])
        T.mbarrier_arrive_expect_tx(bars[0], 0)
        T.mbarrier_wait_parity(bars[1], bx % 2 ^ 1)
        T.cp_async_barrier_noinc(bars[1])
        T.fence_proxy_async()
        T.tma_store_arrive()
        T.tma_store_wait(2)
        T.tma_store_wait(0, read=False)
        T.warpgroup_arrive()
        T.warpgroup_commit_batch()
        T.pdl_trigger()

    text = text_of(with_body(body))
    calls = (
        "grid_wait()",
        "mbarrier_expect_tx(bars + (bx & 1), 0)",
        "mbarrier_arrive(bars + 1)",
        "mbarrier_arrive_expect_tx(bars, 0)",
        "mbarrier_wait(bars + 1, (bx & 1) ^ 1)",
        "cp_async_mbarrier_arrive(bars + 1)",
        "fence_proxy_async()",
        "tma_store_commit()",
        "tma_store_wait_read<2>()",
        "tma_store_wait<0>()",
        "wgmma_fence()",
        "wgmma_commit()",
        "grid_launch()",
    )
    places = [text.index(f"tile::{call};") for call in calls]
    assert places == sorted(places)


def test_calls_about_clusters() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        T.mbarrier_arrive(bars[0], T.block_rank_in_cluster() ^ 1)
        T.cluster_arrive()
        T.cluster_wait()
        T.cluster_arrive_relaxed()
        T.cluster_wait()

    text = text_of(with_body(body, cluster_dims=2))
    assert "TILE_CLUSTER(2, 1, 1)" in text
    assert "tile::mbarrier_free_remote(bars, tile::cluster_rank() ^ 1);" in text
    assert text.count("tile::cluster_sync();") == 2  # barriers are ready; nobody needs this block
    assert "tile::sync();" not in text
    for call in ("cluster_arrive", "cluster_arrive_relaxed"):
        assert f"tile::{call}();" in text
    assert text.count("tile::cluster_wait();") == 2


def test_registers_of_products_stay_where_they_are() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        F = T.alloc_fragment((64, 64), "float32")
        with T.ws(0):
            T.clear(F)
            T.copy(A, S)
            T.wgmma_gemm(S, S, F)
            T.warpgroup_fence_operand(F)
            T.warpgroup_wait(0)
            T.copy(F, C)

    text = text_of(with_body(body))
    assert text.count("tile::wgmma_wait<0>();") == 1
    assert "tile::wgmma_pin<32>(fragment);" in text[text.index("tile::wgmma_wait<0>();") :]


def test_a_mask_known_at_run_time_chooses_who_fetches() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        rank = T.block_rank_in_cluster()
        T.tma_copy(A, S, barrier=bars[0], cluster_mask=3 << (rank // 2 * 2))

    text = text_of(with_body(body, cluster_dims=4))
    assert text.count("tma_load_multicast<2>") == 1
    assert text.count("tile::tma_load<2>") == 1
    fixed = text_of(
        with_body(
            lambda A, C, S, bars, bx: T.tma_copy(A, S, barrier=bars[0], cluster_mask=0b110),
            cluster_dims=4,
        )
    )
    assert "if (tile::cluster_rank() == 1) {" in fixed
    assert "if (((6 >> tile::cluster_rank()) & 1) == 0) {" in fixed


def test_tiles_of_ranges_that_run_at_the_same_time_lie_apart() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        first = T.alloc_shared((64, 64), "float32")
        second = T.alloc_shared((64, 64), "float32")
        with T.ws(0):
            T.copy(C, first)
            T.copy(first, C)
        with T.ws(1):
            T.copy(C, second)
            T.copy(second, C)

    text = text_of(with_body(body))
    assert "shared = tile::smem<float>(0, 4096)" in text
    assert "shared_1 = tile::smem<float>(16384, 4096)" in text


def test_a_copy_to_another_block_by_its_threads_is_fenced_for_engines() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        there = T.alloc_shared((64, 64), "float16")
        T.copy(A, S)
        T.cluster_sync()
        T.copy_cluster(S, there, dst_block=bx % 2 ^ 1)
        T.cluster_sync()
        T.tma_copy(there, A)

    text = text_of(with_body(body, cluster_dims=2))
    stored, fenced = text.index("tile::at<half_t>(tile::remote("), text.rindex("fence_proxy_async")
    assert stored < fenced < text.rindex("tma_store<2>")


def test_parts_of_a_program_of_threads() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((256,), "int32")):
        with T.Kernel(1, threads=256):
            S = T.alloc_shared((128,), "int32")
            bar = T.alloc_barrier(128)
            tx = T.get_thread_binding()
            with T.ws(0):
                S[tx] = A[tx]
                T.sync_threads()
                A[tx] = S[127 - tx]
                T.mbarrier_arrive(bar)
            with T.ws(1):
                T.mbarrier_wait_parity(bar, 0)
                A[tx] = S[tx - 128] * 2

    text = text_of(kernel)
    assert "tile::bar_sync(15, 128);" in text
    a = np.arange(256, dtype=np.int32)
    with checking("all"):
        tile.compile(kernel, target=f"{TARGET}@sim")(a)
    half = np.arange(128)
    np.testing.assert_array_equal(a, np.concatenate([half[::-1], half * 2]))


@pytest.mark.parametrize(
    "say",
    [lambda: T.pdl_sync(), lambda: T.warpgroup_arrive(), lambda: T.fence_proxy_async()],
    ids=["pdl_sync", "warpgroup_arrive", "fence_proxy_async"],
)
def test_orders_for_engines_are_nothing_where_there_are_none(say: Callable[[], None]) -> None:
    def kernel_with(order: Callable[[], None]) -> Any:
        @T.prim_func
        def kernel(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=128):
                order()
                A[0] = 1

        return kernel

    assert text_of(kernel_with(say), "cuda:sm_80") == text_of(
        kernel_with(lambda: None), "cuda:sm_80"
    )


def test_older_machines_have_no_clusters_and_no_machine_has_large_ones() -> None:
    @T.prim_func
    def kernel(A: T.Tensor((32,), "int32")):
        with T.Kernel(32, threads=128, cluster_dims=32) as bx:
            A[bx] = 1

    with pytest.raises(UnsupportedOnTarget, match="blocks cannot form clusters on sm_80"):
        text_of(kernel, "cuda:sm_80")
    with pytest.raises(UnsupportedOnTarget, match="a cluster of 32 blocks is more than sm_90a"):
        text_of(kernel)


def test_a_tile_is_not_filled_anew_while_threads_read_it() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        F = T.alloc_fragment((64, 64), "float16")
        for k in T.serial(4):
            T.tma_copy(A, S, barrier=bars[0])
            T.mbarrier_arrive(bars[0])
            T.mbarrier_wait_parity(bars[0], k % 2)
            T.copy(S, F)
        T.copy(F, A)

    loop = text_of(with_body(body)).split("TILE_NO_UNROLL")[1]
    assert loop.index("tile::sync();") < loop.index("tile::tma_load<2>")
    assert loop.count("tile::sync();") == 1


def test_a_barrier_with_a_number_serves_its_range() -> None:
    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        F = T.alloc_fragment((64, 64), "float16")
        with T.ws(1):
            T.copy(A, F)
            T.copy(F, S)
            T.sync_threads(2, 128)
            T.tma_copy(S, A)

    text = text_of(with_body(body))
    assert text.count("tile::bar_sync(") == 1


def test_a_wait_ends_the_products_of_its_own_threads() -> None:
    @T.macro
    def squared(group, A, S, C):
        with T.ws(group):
            F = T.alloc_fragment((64, 64), "float32")
            T.wgmma_gemm(S, S, F, clear_accum=True)
            T.wait_wgmma(0)
            T.copy(F, C)

    def body(A: Any, C: Any, S: Any, bars: Any, bx: Any) -> None:
        T.copy(A, S)
        squared(0, A, S, C)
        squared(1, A, S, C)

    first, second = text_of(with_body(body)).split("tile::wgmma_wait<0>();")[1:]
    for part in (first.split("}")[0], second):
        assert part.count("tile::wgmma_pin<32>(") == 1


def test_copies_by_hand_are_fenced_where_a_product_waits_for_them() -> None:
    """Who reads behind a barrier of such copies sees them, and its engine after a fence only."""

    @T.prim_func
    def gram(A: T.Tensor((64, 128), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            S = T.alloc_shared((2, 64, 64), "float16")
            ready = T.alloc_barrier([128] * 2)
            F = T.alloc_fragment((64, 64), "float32")
            if tx < 128:
                for k in T.unroll(2):
                    for r in T.unroll(4):
                        row, column = r * 16 + tx // 8, tx % 8 * 8
                        T.ptx_cp_async(
                            T.access_ptr(S[k, row, column], "w", 8),
                            T.access_ptr(A[row, k * 64 + column], "r", 8),
                            8,
                        )
                    T.cp_async_barrier_noinc(ready[k])
            else:
                T.clear(F)
                for k in T.unroll(2):
                    T.barrier_wait(ready[k], 0)
                    T.wgmma_gemm(S[k, :, :], S[k, :, :], F, transpose_B=True)
                T.wait_wgmma(0)
                T.copy(F, C)

    a = np.random.default_rng(0).integers(-3, 4, (64, 128)).astype("float16")
    c = np.zeros((64, 64), "float32")
    tile.compile(gram, target=f"{TARGET}@sim")(a, c)
    wide = a.astype("float32")
    assert np.array_equal(c, wide @ wide.T)


def test_one_block_fetches_for_others_which_wait() -> None:
    """Blocks that the mask leaves out fetch their own; a tile is free before it is filled again."""

    @T.prim_func
    def kernel(A: T.Tensor((128, 512), "float16"), B: T.Tensor((128, 512), "float16")):
        with T.Kernel(8, threads=128, cluster_dims=4) as bx:
            S = T.alloc_shared((64, 64), "float16")
            for k in T.serial(2):
                T.copy_cluster(A[k * 64, bx * 64], S, cluster_mask=0b0011)
                T.copy(S, B[k * 64, bx * 64])

    a = np.random.default_rng(0).integers(-3, 4, (128, 512)).astype("float16")
    b = np.zeros_like(a)
    tile.compile(kernel, target=f"{TARGET}@sim")(a, b)
    blocks = a.reshape(128, 8, 64)
    assert np.array_equal(b, blocks[:, [0, 0, 2, 3, 4, 4, 6, 7]].reshape(a.shape))
