"""Shared tiles are added to tensors by the engine, and blocks add at the same time."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T


def sums(dtype: str, *, kind: str = "add", shared: bool = True, columns: int = 64) -> Any:
    """Return a kernel in which four blocks update one tile of 64 rows."""
    update = {"add": T.atomic_add, "max": T.atomic_max, "min": T.atomic_min}[kind]

    @T.prim_func
    def kernel(A: T.Tensor((256, columns), dtype), C: T.Tensor((60, columns), dtype)):
        with T.Kernel(4, threads=128) as bx:
            tile_s = T.alloc_shared((64, columns), dtype)
            own = T.alloc_fragment((64, columns), dtype)
            T.copy(A[bx * 64, 0], own)
            if shared:
                T.copy(own, tile_s)
                update(C[0:64, 0:columns], tile_s)
            else:
                T.atomic_add(C[0:64, 0:columns], own, use_tma=True)

    return kernel


def expected(a: np.ndarray, c: np.ndarray, kind: str) -> np.ndarray:
    parts = [c.astype("float64"), *(a[k * 64 : k * 64 + 60].astype("float64") for k in range(4))]
    fold = {"add": np.add, "max": np.maximum, "min": np.minimum}[kind]
    return fold.reduce(parts).astype(c.dtype)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("dtype", "kind", "shared"),
    [
        ("float32", "add", True),
        ("float32", "add", False),
        ("float16", "add", True),
        ("int32", "add", True),
        ("int32", "max", True),
        ("float16", "min", True),
    ],
)
def test_updates_are_made_in_bulk(dtype: str, kind: str, shared: bool) -> None:
    """Rows below the tensor are left out; integers are exact in any order."""
    compiled = tile.compile(sums(dtype, kind=kind, shared=shared), target="cuda:sm_90a@sim")
    assert f"tile::tma_reduce_{kind}<2>" in compiled.get_kernel_source()
    rng = np.random.default_rng(1)
    a = rng.integers(-9, 10, (256, 64)).astype(dtype)
    c = rng.integers(-9, 10, (60, 64)).astype(dtype)
    wanted = expected(a, c, kind)
    compiled(a, c)
    np.testing.assert_array_equal(c, wanted)


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (sums("float32", kind="max"), "the engine compares no float32"),
        (sums("float32", columns=63), "rows are no multiple of 16 bytes"),
    ],
)
def test_other_updates_stay_with_the_threads(function: Any, why: str) -> None:
    compiled = tile.compile(function, target="cuda:sm_90a@sim")
    assert "tma_reduce" not in compiled.get_kernel_source(), why
