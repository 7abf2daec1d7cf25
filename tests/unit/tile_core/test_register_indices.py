"""Tiles of rows between two products that hold different ones: what the user is told."""

from __future__ import annotations

import inspect
import warnings
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import TileWarning


def scaled(kind: str = "shared") -> Any:
    """Return ``(P @ V) * max(Q @ K.T)`` by rows: sixteen of them, in four warps."""

    @T.prim_func
    def main(
        Q: T.Tensor((16, 32), "float16"),
        K: T.Tensor((64, 32), "float16"),
        P: T.Tensor((16, 64), "float16"),
        V: T.Tensor((64, 32), "float16"),
        C: T.Tensor((16, 32), "float32"),
    ):
        with T.Kernel(1, threads=128):
            Q_s = T.alloc_shared((16, 32), "float16")
            K_s = T.alloc_shared((64, 32), "float16")
            P_s = T.alloc_shared((16, 64), "float16")
            V_s = T.alloc_shared((64, 32), "float16")
            scores = T.alloc_fragment((16, 64), "float32")
            acc = T.alloc_fragment((16, 32), "float32")
            highest = T.alloc_fragment((16,), "float32")
            bounded = T.alloc_fragment((16,), "float32")
            T.copy(Q, Q_s)
            T.copy(K, K_s)
            T.copy(P, P_s)
            T.copy(V, V_s)
            T.gemm(Q_s, K_s, scores, transpose_B=True, clear_accum=True)
            T.gemm(P_s, V_s, acc, clear_accum=True)
            if kind == "shared":
                T.reduce_max(scores, highest, dim=1)
                for i in T.Parallel(16):
                    bounded[i] = T.max(highest[i], 0)
                for i, j in T.Parallel(16, 64):
                    scores[i, j] -= highest[i]
                for i, j in T.Parallel(16, 32):
                    acc[i, j] *= bounded[i] + highest[i]
            T.copy(acc, C)

    return main


def told(kind: str, arch: str) -> tuple[Any, list[warnings.WarningMessage]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        kernel = tile.compile(scaled(kind), target=f"cuda:{arch}@sim")
    return kernel, [w for w in found if issubclass(w.category, TileWarning)]


def test_a_tile_of_which_threads_use_different_elements() -> None:
    kernel, found = told("shared", "sm_70")
    source, first = inspect.getsourcelines(scaled)
    where = [source[w.lineno - first].strip() for w in found]
    assert [str(w.message).split(" is whole")[0] for w in found] == ["'highest'"]
    assert "a number known at run time only" in str(found[0].message)
    assert "T.GemmWarpPolicy.FullRow" in str(found[0].message)
    assert where[0].startswith("for i")
    rng = np.random.default_rng(0)
    q, k, p, v = (
        rng.integers(-2, 3, s).astype(np.float16) for s in ((16, 32), (64, 32), (16, 64), (64, 32))
    )
    c = np.full((16, 32), np.nan, np.float32)
    kernel(q, k, p, v, c)
    x, y, z, w = (t.astype(np.float32) for t in (q, k, p, v))
    top = (x @ y.T).max(1, keepdims=True)
    np.testing.assert_array_equal(c, (z @ w) * (np.maximum(top, 0) + top))


@pytest.mark.parametrize("arch", ["sm_70", "sm_80"])
def test_nothing_is_told_where_no_rows_are_shared(arch: str) -> None:
    assert told("apart", arch)[1] == []
