"""Kernels whose threads were dealt out mean what they meant: the interpreter runs both forms."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api.language as T
from support.mixed_kernels import gathered, odd_rows, three_ways
from support.ring_kernels import Case
from tile_core.errors import Deadlock
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.node import substitute, walk
from tile_core.ir.stmt import Kernel, OnThreads, Seq
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit
from tile_core.passes.overlap_gemms import overlap_gemms
from tile_core.passes.specialise_warps import specialise_warps
from tile_cuda.machine import machine

HOPPER = machine("sm_90a")
ORDERS = ("forward", "reverse", "random")


def product(M: int, N: int, K: int, stages: int = 3, cluster: Any = None) -> Any:
    """Return C = A @ B."""

    @T.prim_func
    def kernel(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, 128), T.ceildiv(M, 128), threads=256, cluster_dims=cluster) as (
            bx,
            by,
        ):
            A_s = T.alloc_shared((128, 64), "float16")
            B_s = T.alloc_shared((64, 128), "float16")
            sums = T.alloc_fragment((128, 128), "float32")
            T.clear(sums)
            for k in T.Pipelined(T.ceildiv(K, 64), num_stages=stages):
                T.copy(A[by * 128, k * 64], A_s)
                T.copy(B[k * 64, bx * 128], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[by * 128, bx * 128])

    return kernel


def rows_of_blocks(blocks: int, steps: int) -> Any:
    """Return C[b] = sum of A[b, k] @ B[b, k] over ``lengths[b]`` steps, two loops in a row."""

    @T.prim_func
    def kernel(
        A: T.Tensor((blocks, 64, 64 * steps), "float16"),
        B: T.Tensor((blocks, 64 * steps, 64), "float16"),
        lengths: T.Tensor((blocks,), "int32"),
        C: T.Tensor((blocks, 2, 64, 64), "float32"),
    ):
        with T.Kernel(blocks, threads=128) as b:
            A_s = T.alloc_shared((64, 64), "float16")
            B_s = T.alloc_shared((64, 64), "float16")
            A_t = T.alloc_shared((64, 64), "float16")
            B_t = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(lengths[b], num_stages=3):
                T.copy(A[b, 0:64, k * 64 : (k + 1) * 64], A_s)
                T.copy(B[b, k * 64 : (k + 1) * 64, 0:64], B_s)
                T.gemm(A_s, B_s, sums)
            T.copy(sums, C[b, 0, 0:64, 0:64])
            for k in T.Pipelined(steps - lengths[b], num_stages=2):
                if k % 2 == 0:
                    T.copy(A[b, 0:64, k * 64 : (k + 1) * 64], A_t)
                    T.copy(B[b, k * 64 : (k + 1) * 64, 0:64], B_t)
                    T.gemm(A_t, B_t, sums)
            T.copy(sums, C[b, 1, 0:64, 0:64])

    return kernel


def dealt_out(function: Any, *, overlaps: bool = False) -> Kernel:
    """Return the kernel with producers and consumers."""
    made = specialise_warps(function.kernel, HOPPER)
    assert any(isinstance(n, OnThreads) for n in walk(made))
    return overlap_gemms(made, lambda op: True) if overlaps else made


def factors(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    """Return small integers as numbers with fractions."""
    rng = np.random.default_rng(0)
    return [rng.integers(-2, 3, shape).astype(np.float16) for shape in shapes]


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize(
    ("size", "stages", "cluster"),
    [
        ((256, 256, 320), 3, None),
        ((200, 256, 64), 3, None),
        ((136, 128, 128), 4, None),
        ((256, 256, 192), 2, (2, 1, 1)),
        ((512, 256, 192), 2, (2, 2, 1)),
    ],
    ids=str,
)
def test_products(
    size: tuple[int, int, int], stages: int, cluster: Any, overlaps: bool, order: str
) -> None:
    M, N, K = size
    a, b = factors((M, K), (K, N))
    c = np.full((M, N), np.nan, np.float32)
    kernel = dealt_out(product(M, N, K, stages, cluster), overlaps=overlaps)
    interpret(kernel, [a, b, c], options=InterpretOptions(block_order=order))
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize("overlaps", [False, True])
def test_loops_of_no_round_few_rounds_and_rounds_left_out(overlaps: bool) -> None:
    steps = 5
    a, b = factors((4, 64, 64 * steps), (4, 64 * steps, 64))
    lengths = np.array([0, 1, 2, 5], np.int32)
    function = rows_of_blocks(4, steps)
    wanted, found = (np.full((4, 2, 64, 64), np.nan, np.float32) for _ in range(2))
    interpret(function.kernel, [a, b, lengths, wanted])
    interpret(dealt_out(function, overlaps=overlaps), [a, b, lengths, found])
    np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(wanted[3, 1], a[3].astype(np.float32) @ b[3].astype(np.float32))


def test_consumers_that_do_not_release_are_waited_for_in_vain() -> None:
    kernel = dealt_out(product(128, 128, 320))
    releases = [n for n in walk(kernel) if isinstance(n, BarrierArrive) and not n.nbytes]
    broken = substitute(kernel, {n: Seq(()) for n in releases})
    a, b = factors((128, 320), (320, 128))
    with pytest.raises(Deadlock, match=r"phase 0 of A_s_empty\[0\] lacks 8 of 8 arrivals"):
        interpret(broken, [a, b, np.zeros((128, 128), np.float32)])


def test_counts_of_barriers_matter() -> None:
    kernel = dealt_out(product(128, 128, 320))
    wrong = {
        n: BarrierInit(n.barriers, tuple(count + 1 for count in n.counts))
        for n in walk(kernel)
        if isinstance(n, BarrierInit)
    }
    a, b = factors((128, 320), (320, 128))
    with pytest.raises(Deadlock, match="lacks 1 of 2 arrivals"):
        interpret(substitute(kernel, wrong), [a, b, np.zeros((128, 128), np.float32)])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("late", [False, True])
@pytest.mark.parametrize("overlaps", [False, True])
@pytest.mark.parametrize(
    "case",
    [odd_rows(5), odd_rows(1, both=True), gathered([100, 0, 64]), three_ways(5)],
    ids=["odd", "both odd", "gathered", "three ways"],
)
def test_copies_that_warps_begin(case: Case, overlaps: bool, late: bool) -> None:
    """Also where they are complete no sooner than somebody waits for them."""
    arguments = case.arguments(np.random.default_rng(0))
    kernel = dealt_out(case.function, overlaps=overlaps)
    interpret(kernel, arguments, options=InterpretOptions(late_copies=late))
    np.testing.assert_array_equal(arguments[-1], case.expected(*arguments[:-1]))
