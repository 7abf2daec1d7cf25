"""Sums of neighbours that a thread has in registers are added to tensors as one vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_sim import checking


def added(columns: int = 16) -> Any:
    @T.prim_func
    def main(
        A: T.Tensor((16, 16), "float16"), B: T.Tensor((16, 16), "float16"),
        C: T.Tensor((16, columns), "float32"),
    ):  # fmt: skip
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((16, 16), "float16")
            c = T.alloc_fragment((16, 16), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.gemm(a, b, c, clear_accum=True)
            T.atomic_add(C[0:16, 0:16], c)

    return main


@pytest.mark.parametrize(
    ("target", "columns", "is_vector"),
    [("cuda:sm_90a", 16, True), ("cuda:sm_90a", 17, False), ("cuda:sm_80", 16, False)],
)
def test_pairs_of_products(target: str, columns: int, is_vector: bool) -> None:
    text = tile.lower(added(columns), target=target).kernel_source
    assert ("tile::atomic_add<2>" in text) is is_vector


def test_pairs_are_added() -> None:
    random = np.random.default_rng(1)
    a, b = (random.integers(-3, 4, (16, 16)).astype(np.float16) for _ in range(2))
    c = np.ones((16, 16), np.float32)
    with checking("all"):
        tile.compile(added(), target="cuda:sm_90a@sim")(a, b, c)
    np.testing.assert_array_equal(c, 1 + a.astype(np.float32) @ b.astype(np.float32))
