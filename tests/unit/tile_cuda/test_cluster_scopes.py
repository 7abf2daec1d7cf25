"""Arrivals at barriers of other blocks: cheap where they only give memory back."""

from __future__ import annotations

import re
from typing import Any

import pytest

import tile_api.language as T
from support.machine_loops import cycle_with
from support.toolchain import need_disassembler, nvrtc_for
from tile_core.compilation.results import Lowered
from tile_core.driver import lower
from tile_core.plugins.host import installed_plugins


def lowered(kernel: Any) -> Lowered:
    return lower(kernel.kernel, "cuda:sm_90a", installed_plugins())


def text_of(kernel: Any) -> str:
    return str(lowered(kernel).text("source"))


def product(*, adds: bool = False) -> Any:
    """Return a matrix product whose blocks share tiles in pairs, onto what `C` had if it `adds`."""

    @T.prim_func
    def kernel(
        A: T.Tensor((512, 512), "float16"),
        B: T.Tensor((512, 512), "float16"),
        C: T.Tensor((512, 512), "float32"),
    ):
        with T.Kernel(4, 4, threads=128, cluster_dims=2) as (bx, by):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            if adds:
                T.copy(C[by * 128, bx * 128], sums)
            else:
                T.clear(sums)
            for k in T.Pipelined(8, num_stages=2):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * 128, bx * 128])

    return kernel


def exchange(*, by_threads: bool) -> Any:
    """Return a kernel whose blocks wait for each other at barriers of their own."""

    @T.prim_func
    def kernel(X: T.Tensor((4, 128), "float32"), Y: T.Tensor((4, 128), "float32")):
        with T.Kernel(4, threads=128, cluster_dims=2) as bx:
            mine = T.alloc_shared((128,), "float32")
            theirs = T.alloc_shared((128,), "float32")
            told = T.alloc_cluster_barrier([128])
            other = T.block_rank_in_cluster() ^ 1
            T.copy(X[bx, :], mine)
            if by_threads:
                T.copy_cluster(mine, theirs, dst_block=other)
            T.mbarrier_arrive(told[0], other)
            T.mbarrier_wait_parity(told[0], 0)
            T.copy(mine, Y[bx, :])

    return kernel


def test_who_gives_a_tile_back_tells_nobody_of_writes() -> None:
    text = text_of(product())
    assert "tile::mbarrier_free_remote(A_s_empty" in text
    assert "mbarrier_arrive_remote" not in text
    assert "mbarrier_wait_cluster" not in text


@pytest.mark.parametrize("kernel", [product(adds=True), exchange(by_threads=True)])
def test_writes_that_other_blocks_may_read_are_told(kernel: Any) -> None:
    text = text_of(kernel)
    assert "tile::mbarrier_arrive_remote(" in text
    assert "tile::mbarrier_wait_cluster(" in text
    assert not re.search(r"mbarrier_(free_remote|wait)\(", text)


def test_what_one_says_of_a_tensor_that_is_only_read() -> None:
    text = text_of(exchange(by_threads=False))
    assert "tile::mbarrier_free_remote(told, " in text
    assert "tile::mbarrier_wait(told, 0)" in text


def test_rounds_of_a_product_wait_for_no_memory() -> None:
    nvrtc_for("sm_90a")
    need_disassembler()
    made = lowered(product())
    code = made.backend.compile(made.module, made.target, made.options).sass
    lines = re.findall(r"/\*([0-9a-f]{4,5})\*/\s+(.*?);", code)
    around = [text for _, text in cycle_with("HGMMA", [(int(a, 16), t) for a, t in lines])]
    assert any("SYNCS.ARRIVE.TRANS64.RED" in text for text in around)
    assert not [text for text in around if re.search("MEMBAR|ERRBAR|CCTL|FENCE", text)]
