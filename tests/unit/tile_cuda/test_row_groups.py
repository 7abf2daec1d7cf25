"""What groups of threads share: rows across warps, and memory that two tiles have in turn."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import DataRace
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import Launch, Seq
from tile_core.ops.control import Barrier
from tile_core.passes import insert_barriers
from tile_sim import checking


def totals(threads: int) -> Any:
    @T.prim_func
    def main(X: T.Tensor((2, 128), "float32"), O: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=threads):
            x = T.alloc_fragment((2, 128), "float32")
            o = T.alloc_fragment((2,), "float32")
            T.annotate_layout(
                {
                    x: T.Fragment(x.shape, forward_fn=lambda i, j: (i * 64 + j // 2, j % 2)),
                    o: T.Fragment(
                        o.shape, forward_fn=lambda i, rep: (i * 64 + rep, 0), replicate=64
                    ),
                }
            )
            for i, j in T.Parallel(2, 128):
                x[i, j] = X[i, j]
            T.reduce_sum(x, o, dim=1)
            for i in T.Parallel(2):
                O[i] = o[i]

    return main


def test_threads_behind_the_rows_read_no_parts() -> None:
    """Half of the block holds rows of two warps each; the others would read beside the parts."""
    x = np.arange(256, dtype=np.float32).reshape(2, 128)
    o = np.full(2, np.nan, np.float32)
    with checking("all"):
        tile.compile(totals(256), target="cuda:sm_80@sim")(x, o)
    np.testing.assert_array_equal(o, x.sum(1))


def exchange() -> Any:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            first = T.alloc_shared((64,), "float32")
            second = T.alloc_shared((64,), "float32")
            v = T.alloc_var("float32")
            first[tx] = A[tx]
            T.sync_threads()
            v = first[63 - tx]
            second[tx] = v * 2
            T.sync_threads()
            B[tx] = second[63 - tx]

    return main


@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_a_tile_in_anothers_place_waits_for_its_readers(target: str) -> None:
    text = tile.lower(exchange(), target=target).kernel_source
    assert text.count("smem<float>(0, 64)") == 2
    assert text.index("v = first[") < text.rindex("sync()", 0, text.index("second[tx] = v"))
    assert text.count("tile::sync();") == 3


@pytest.mark.parametrize("dropped", [False, True])
def test_without_that_barrier(dropped: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    insert = insert_barriers.insert_barriers

    def insert_all_but_that(launch: Launch, *args: Any, **options: Any) -> Launch:
        own = {n for n in walk(launch) if isinstance(n, Barrier)}

        def rule(node: Node) -> Node:
            return Seq(()) if isinstance(node, Barrier) and node not in own else node

        made = insert(launch, *args, **options)
        return rewrite(made, rule) if dropped else made

    monkeypatch.setattr(insert_barriers, "insert_barriers", insert_all_but_that)
    a, b = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    with checking("all"):
        kernel = tile.compile(
            exchange(), target="cuda:sm_80@sim", compile_flags=["-DSEED"] * dropped
        )
        if dropped:
            with pytest.raises(DataRace):
                kernel(a, b)
        else:
            kernel(a, b)
            np.testing.assert_array_equal(b, a * 2)
