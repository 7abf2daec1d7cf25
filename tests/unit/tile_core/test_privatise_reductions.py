"""What loops only add to is combined by each thread for itself, and by all after the loop."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import For, Kernel
from tile_core.ir.verify import verify
from tile_core.ops.reduce import Reduce
from tile_core.ops.reducer import ReducerFinalize, ReducerUpdate
from tile_core.passes.privatise_reductions import privatise_reductions
from tile_sim import checking


def columns(
    kind: str = "sum", dtype: str = "float32", *, nan: bool = False, clear: bool = False,
    looks: bool = False,
) -> Any:  # fmt: skip
    reduce: Any = getattr(T, f"reduce_{kind}")

    @T.prim_func
    def main(A: T.Tensor((96, 16), "float32"), B: T.Tensor((16,), dtype)):
        with T.Kernel(1, threads=64):
            a = T.alloc_fragment((32, 16), "float32")
            b = T.alloc_fragment((16,), dtype)
            T.copy(B, b)
            for k in T.serial(3):
                T.copy(A[k * 32 : k * 32 + 32, 0:16], a)
                if looks:
                    for i, j in T.Parallel(32, 16):
                        a[i, j] = a[i, j] + b[j]
                if nan:
                    reduce(a, b, dim=0, clear=clear, nan_propagate=True)
                else:
                    reduce(a, b, dim=0, clear=clear)
            T.copy(b, B)

    return main


def in_loops(kernel: Kernel, kind: type[Any]) -> int:
    return sum(len(nodes_of(loop.body, kind)) for loop in nodes_of(kernel, For))


def test_threads_meet_after_the_loop() -> None:
    made = privatise_reductions(columns().kernel)
    verify(made)
    assert not nodes_of(made, Reduce)
    assert in_loops(made, ReducerUpdate) == 1
    assert in_loops(made, ReducerFinalize) == 0
    assert len(nodes_of(made, ReducerFinalize)) == 1


@pytest.mark.parametrize("why", ["clear", "looks"])
def test_what_the_loop_sees_or_drops_stays(why: str) -> None:
    kernel = columns(**{why: True}).kernel
    assert privatise_reductions(kernel) is kernel


def test_the_loop_has_neither_shuffles_nor_barriers() -> None:
    text = tile.lower(columns(), target="cuda:sm_90a").kernel_source
    loop, after = text[text.index("for (int k") :].split("\n  }\n", 1)
    for exchange in ("shfl", "sync"):
        assert exchange not in loop
        assert exchange in after


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
@pytest.mark.parametrize(
    ("kind", "dtype", "nan"),
    [("sum", "float16", False), ("max", "float32", True), ("min", "float32", False),
 ("absmax", "float32", False)],
)  # fmt: skip
def test_totals_are_right(kind: str, dtype: str, nan: bool, target: str) -> None:
    random = np.random.default_rng(3)
    a = random.standard_normal((96, 16)).astype(np.float32)
    b = random.standard_normal(16).astype(dtype)
    a[40, 3] = np.nan if kind in ("max", "min") else 1
    combine = {"sum": np.add, "absmax": np.fmax, "max": np.maximum, "min": np.fmin}[kind]
    each = (abs(a) if kind == "absmax" else a).astype(dtype).astype(np.float32)
    wanted = combine(combine.reduce(each, axis=0), b.astype(np.float32))
    with checking("all"):
        tile.compile(columns(kind, dtype, nan=nan), target=target)(a, b)
    np.testing.assert_allclose(b, wanted, rtol=1e-5 if dtype == "float32" else 1e-3)


def test_halves_are_rounded_once() -> None:
    """One after the other, 4096 and 96 ones would stay 4096: between halves lie 4."""
    a, b = np.ones((96, 16), np.float32), np.full(16, 4096, np.float16)
    tile.compile(columns("sum", "float16"), target="cuda:sm_80@sim")(a, b)
    np.testing.assert_array_equal(b, np.full(16, 4192, np.float16))
