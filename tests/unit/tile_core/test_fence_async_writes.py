"""Where fences stand between what threads do with tiles and engines that fill them again."""

from __future__ import annotations

from typing import Any

import pytest

import tile_api.language as T
from tile_core.driver import lower
from tile_core.ir.build_expr import as_expr
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel, OnThreads, Seq, Stmt
from tile_core.ops.bulk_copy import BulkCopy, FenceAsync
from tile_core.ops.mbarrier import BarrierArrive, BarrierWait
from tile_core.passes.fence_async_writes import fence_async_writes
from tile_core.plugins.host import installed_plugins
from tile_core.testing import build_ir as ir

A = ir.tensor("A", (64, 64), "float16")
TILE = ir.shared("tile", (64, 64), "float16")
OTHER = ir.shared("other", (64, 64), "float16")
HALF = ir.fragment("half", (64, 64), "float16")
SUMS = ir.fragment("sums", (64, 64))
BARS = ir.shared("bars", (2,), "uint64")


def bar(k: int) -> Any:
    return ir.region(BARS, (k,), (1,))


def wait() -> Stmt:
    return BarrierWait(bar(0), as_expr(0))


def arrive() -> Stmt:
    return BarrierArrive(bar(1))


def load(tile: Any = TILE) -> Stmt:
    return BulkCopy(ir.operand(A), ir.operand(tile), bar(0))


def kernel(*stmts: Any, again: bool = True) -> Kernel:
    """Return a kernel in which `stmts` follow an engine that fills the tile, in a loop."""

    def body(k: Any = None) -> list[Stmt]:
        return [load(), *stmts]

    def launch(bx: Any) -> list[Stmt]:
        inner = [ir.serial(4, body)] if again else body()
        return [*ir.alloc(TILE, OTHER, HALF, SUMS, BARS), *inner]

    return ir.kernel([A], 1, launch, threads=128)


def fenced(made: Kernel) -> list[Stmt]:
    """Return the statements behind which a fence stands."""
    found = []
    for node in walk(made.body):
        if isinstance(node, Seq):
            pairs = zip(node.body, node.body[1:], strict=False)
            found += [a for a, b in pairs if isinstance(b, FenceAsync)]
    assert sum(isinstance(n, FenceAsync) for n in walk(made.body)) == len(found)
    return found


def on(made: Kernel, *, beside: bool = False) -> list[Stmt]:
    return fenced(fence_async_writes(made, lambda op: beside))


def test_who_reads_a_tile_fences_before_giving_it_back() -> None:
    read = ir.copy(TILE, HALF)
    assert on(kernel(wait(), read, arrive())) == [read]


def test_one_fence_for_all_that_stands_between_barriers() -> None:
    first, second, other = ir.copy(TILE, HALF), ir.fill(TILE, 0), ir.copy(HALF, OTHER)
    assert on(kernel(wait(), first, second, other, arrive())) == [second]


def test_what_is_fenced_already_is_left() -> None:
    write = Seq((ir.fill(TILE, 0), FenceAsync()))
    plain = kernel(wait(), ir.copy(TILE, HALF), write, ir.copy(HALF, OTHER), arrive())
    assert fence_async_writes(plain, lambda op: False) is plain


def test_loops_of_reads_are_fenced_behind_them() -> None:
    loop = ir.serial(8, lambda k: [ir.copy(TILE, HALF)])
    assert on(kernel(wait(), loop, arrive())) == [loop]


@pytest.mark.parametrize("beside", [True, False])
def test_products_by_engines_need_none(beside: bool) -> None:
    product = ir.gemm(TILE, OTHER, SUMS)
    found = on(kernel(wait(), product, arrive()), beside=beside)
    assert found == ([] if beside else [product])


def test_tiles_that_are_filled_once_need_none() -> None:
    plain = kernel(wait(), ir.copy(TILE, HALF), arrive(), again=False)
    assert fence_async_writes(plain, lambda op: False) is plain


def test_other_tiles_need_none() -> None:
    plain = kernel(wait(), ir.copy(OTHER, HALF), arrive())
    assert fence_async_writes(plain, lambda op: False) is plain


def test_groups_of_threads_fence_for_themselves() -> None:
    read = ir.copy(TILE, HALF)
    assert on(kernel(wait(), OnThreads(0, 128, Seq((read,))), arrive())) == [read]


def test_both_ways_of_a_branch_that_signals() -> None:
    first, second = ir.copy(TILE, HALF), ir.copy(TILE, SUMS)
    branch = ir.when(ir.value(1), [first, arrive()], [second, arrive()])
    assert on(kernel(wait(), branch)) == [first, second]


def test_rings_that_threads_read_are_fenced() -> None:
    """By every thread, before one of its warp arrives for all of them."""

    @T.prim_func
    def scaled(X: T.Tensor((512, 1024), "float16"), Y: T.Tensor((512, 64), "float32")):
        with T.Kernel(8, threads=128) as bx:
            X_s = T.alloc_shared((64, 64), "float16")
            sums = T.alloc_fragment((64, 64), "float32")
            T.clear(sums)
            for k in T.Pipelined(16, num_stages=2):
                T.copy(X[bx * 64, k * 64], X_s)
                for i, j in T.Parallel(64, 64):
                    sums[i, j] += X_s[i, j]
            T.copy(sums, Y[bx * 64, 0])

    text = str(lower(scaled.kernel, "cuda:sm_90a", installed_plugins()).text("source"))
    fence, arrival = text.index("fence_proxy_async"), text.index("mbarrier_arrive(X_s_empty")
    assert fence < text.index("sync_warp") < arrival
    assert text.count("fence_proxy_async") == 1
