"""Ranges of threads, barriers in memory, engines and clusters: the tile IR that they become."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.language.gpu_only import GPU_NAMES
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.gpu_intrinsics import GPU_INTRINSICS, RANGE_INTRINSICS
from tile_core.ir.node import walk
from tile_core.ir.parser import parse_kernel
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Launch
from tile_core.ops.operator_table import OPERATORS
from tile_core.passes.refuse_gpu_only import refuse_gpu_only
from tile_core.target import Target


def traced(body: Callable[..., None], *, cluster: Any = None, threads: int = 384) -> Any:
    """Return the kernel whose launch runs `body` on a tensor, a shared tile and two barriers."""

    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(4, threads=threads, cluster_dims=cluster):
            S = T.alloc_shared((64, 64), "float16")
            bars = T.alloc_barrier([128, 1])
            body(A, S, bars)

    return kernel.kernel


def lines_of(body: Callable[..., None], **options: Any) -> list[str]:
    """Return the lines of the launch behind what allocates."""
    text = print_kernel(traced(body, **options)).splitlines()
    start = next(k for k, line in enumerate(text) if "alloc S" in line)
    return [line.strip() for line in text[start + 1 :] if line.strip() not in ("}", "")]


def test_barriers_are_made_ready_first_of_all() -> None:
    text = print_kernel(traced(lambda A, S, bars: None))
    (launch,) = [k for k, line in enumerate(text.splitlines()) if "launch" in line]
    assert [line.strip() for line in text.splitlines()[launch + 1 : launch + 5]] == [
        "alloc bars: shared.barrier uint64[2]",
        "@barrier_init(barriers=bars, counts=[128, 1])",
        "@barrier()",
        "alloc S: shared float16[64, 64]",
    ]
    clustered = print_kernel(traced(lambda A, S, bars: None, cluster=2))
    assert "@cluster_sync()" in clustered
    assert "@barrier()" not in clustered


def test_parts_for_warp_groups() -> None:
    def body(A: Any, S: Any, bars: Any) -> None:
        with T.ws(0):
            T.clear(S)
        with T.ws([2, 1]):
            T.inc_max_nreg(240)
        with T.WarpSpecialize(2):
            T.dec_max_nreg(24)
        T.set_max_nreg(160, 1)

    lines = lines_of(body)
    assert [line for line in lines if "fill" not in line] == [
        "threads 0 count 128:",
        "threads 128 count 256:",
        "@set_registers(count=240, is_increase=true)",
        "threads 256 count 128:",
        "@set_registers(count=24, is_increase=false)",
        'hint max_registers [160, "inc"]',
    ]


def test_arrivals_and_waits_under_all_their_names() -> None:
    def body(A: Any, S: Any, bars: Any) -> None:
        T.mbarrier_arrive(bars[0])
        T.barrier_arrive(bars[1])
        T.ptx_arrive_barrier(bars[1])
        T.mbarrier_wait_parity(bars[0], 1)
        T.barrier_wait(bars[0], 0)
        T.ptx_wait_barrier(bars[0], True)
        T.mbarrier_expect_tx(bars[0], 64)
        T.mbarrier_arrive_expect_tx(bars[0], 64)
        T.ptx_arrive_barrier_expect_tx(bars[0], 0)
        T.cp_async_barrier_noinc(bars[0])

    assert lines_of(body) == [
        "eval mbarrier_arrive(&rw bars[0])",
        "eval mbarrier_arrive(&rw bars[1])",
        "eval mbarrier_arrive(&rw bars[1])",
        "eval mbarrier_wait_parity(&rw bars[0], 1)",
        "eval mbarrier_wait_parity(&rw bars[0], 0)",
        "eval mbarrier_wait_parity(&rw bars[0], 1)",
        "eval mbarrier_expect_tx(&rw bars[0], 64)",
        "eval mbarrier_arrive_expect_tx(&rw bars[0], 64)",
        "eval mbarrier_arrive_expect_tx(&rw bars[0], 0)",
        "eval cp_async_barrier_noinc(&rw bars[0])",
    ]


def test_arrivals_at_other_blocks_let_all_leave_together() -> None:
    lines = lines_of(lambda A, S, bars: T.mbarrier_arrive(bars[0], 1), cluster=2)
    assert lines == ["eval mbarrier_arrive(&rw bars[0], 1)", "@cluster_sync()"]
    lines = lines_of(lambda A, S, bars: T.ptx_arrive_cluster_barrier(bars[0], 0), cluster=2)
    assert lines == ["eval mbarrier_arrive(&rw bars[0], 0)", "@cluster_sync()"]


def test_bulk_copies() -> None:
    def body(A: Any, S: Any, bars: Any) -> None:
        T.tma_copy(A, S, barrier=bars[1], leader_scope_threads=32)
        T.tma_copy(A, S[0, 0], barrier=bars[1], eviction_policy="evict_first")
        T.tma_copy(S, A)
        T.tma_store_wait(1, read=False)

    whole = "A[0:64, 0:64], dst=S[0:64, 0:64], barrier=bars[1], expects=true"
    assert lines_of(body) == [
        f"@bulk_copy(src={whole})",
        f'@bulk_copy(src={whole}, eviction_policy="evict_first")',
        "@bulk_copy(src=S[0:64, 0:64], dst=A[0:64, 0:64])",
        "eval tma_store_arrive()",
        "eval tma_store_wait(1, 0)",
    ]


def test_masks_of_one_block_are_no_masks() -> None:
    def body(A: Any, S: Any, bars: Any) -> None:
        T.tma_copy(A, S, barrier=bars[1], cluster_mask=0b10)
        T.tma_copy(A, S, barrier=bars[1], cluster_mask=0b11)

    first, second, last = lines_of(body, cluster=2)
    assert "multicast" not in first
    assert "multicast=3" in second
    assert last == "@cluster_sync()", "no block ends before what is fetched for it has come"


def test_clusters_know_their_shape() -> None:
    seen: list[Any] = []

    def body(A: Any, S: Any, bars: Any) -> None:
        seen.extend([T.get_cluster_dims(), T.get_cluster_size()])
        seen.extend([T.get_cluster_extent(0), T.get_cluster_extents(), len(T.get_cluster_ids())])
        A[0, T.get_cluster_id()] = T.cast(T.block_rank_in_cluster(), "float16")
        T.cluster_arrive()
        T.cluster_arrive_relaxed()
        T.cluster_wait()
        T.cluster_sync()

    lines = lines_of(body, cluster=2)
    assert seen == [(2, 1, 1), 2, 2, [2], 1]
    assert lines == [
        "A[0, bx // 2] = cast[float16](block_rank_in_cluster())",
        "eval cluster_arrive()",
        "eval cluster_arrive_relaxed()",
        "eval cluster_wait()",
        "eval cluster_sync()",
    ]


def test_a_cluster_of_one_block_is_none() -> None:
    kernel = traced(lambda A, S, bars: None, cluster=(1, 1, 1))
    (launch,) = [n for n in walk(kernel) if isinstance(n, Launch)]
    assert launch.cluster == ()


def test_copies_to_other_blocks() -> None:
    def body(A: Any, S: Any, bars: Any) -> None:
        T.copy_cluster(S, S, dst_block=1)
        T.copy_cluster(S[3:4, :], S[2, :], dst_block=0, remote_barrier=bars[0])
        T.copy_cluster(A, S, cluster_mask=3, remote_barrier=bars[0])

    lines = lines_of(body, cluster=2)
    assert lines[:2] == [
        "@remote_copy(src=S[0:64, 0:64], dst=S[0:64, 0:64], block=1)",
        "@remote_copy(src=S[3:1, 0:64], dst=S[2:1, 0:64], block=0, barrier=bars[0])",
    ]
    assert lines[2].startswith("@bulk_copy(src=A[0:64, 0:64]")


@pytest.mark.parametrize("cluster", [None, 2])
def test_the_text_reads_back(cluster: int | None) -> None:
    def body(A: Any, S: Any, bars: Any) -> None:
        with T.ws(2):
            T.mbarrier_wait_parity(bars[0], 1)
            T.tma_copy(A, S, barrier=bars[1], cluster_mask=None if cluster is None else 3)
        if cluster is not None:
            T.copy_cluster(S, S, dst_block=1)

    text = print_kernel(traced(body, cluster=cluster))
    assert print_kernel(parse_kernel(text, OPERATORS, str)) == text


SAID: dict[str, Callable[..., None]] = {
    "tma_copy": lambda A, S: T.tma_copy(S, A),
    "tma_store_arrive": lambda A, S: T.tma_store_arrive(),
    "fence_proxy_async": lambda A, S: T.fence_proxy_async(),
    "pdl_sync": lambda A, S: T.pdl_sync(),
    "pdl_trigger": lambda A, S: T.pdl_trigger(),
    "warpgroup_arrive": lambda A, S: T.warpgroup_arrive(),
    "warpgroup_commit_batch": lambda A, S: T.warpgroup_commit_batch(),
    "cluster_sync": lambda A, S: T.cluster_sync(),
    "copy_cluster": lambda A, S: T.copy_cluster(S, S, dst_block=1),
}


@pytest.mark.parametrize("name", SAID)
def test_machines_without_them_say_which_they_lack(name: str) -> None:
    @T.prim_func
    def kernel(A: T.Tensor((64, 64), "float16")):
        with T.Kernel(4, threads=128, cluster_dims=2):
            S = T.alloc_shared((64, 64), "float16")
            SAID[name](A, S)

    with pytest.raises(UnsupportedOnTarget) as caught:
        refuse_gpu_only(kernel.kernel, Target("cpu"))
    assert caught.value.message == f"T.{name} is an instruction of GPUs; cpu does not have it"
    assert refuse_gpu_only(kernel.kernel, Target("interpret"), ranges=False) is kernel.kernel


def test_what_only_orders_is_nothing_where_everything_is_in_order() -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            T.set_max_nreg(24, 0)
            T.pdl_sync()
            T.fence_proxy_async()
            for i in T.Parallel(64):
                A[i] = A[i] + 1.0
            T.warpgroup_arrive()
            T.warpgroup_commit_batch()
            T.tma_store_arrive()
            T.tma_store_wait()
            T.pdl_trigger()

    for target in ("cpu", "interpret", "cuda:sm_80@sim", "hip:gfx942@sim"):
        a = np.zeros(64, "float32")
        tile.compile(main, target=target)(a)
        assert (a == 1).all()


def test_what_the_interpreter_knows_is_written_by_hand() -> None:
    assert set(GPU_INTRINSICS) >= RANGE_INTRINSICS
    assert RANGE_INTRINSICS.isdisjoint(GPU_NAMES)
