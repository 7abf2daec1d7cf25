"""Stores under conditions touch their elements alone, whatever LLVM makes of the loop."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

CONDITIONS: dict[str, Callable[[Any], Any]] = {
    "first": lambda i: i < 13,
    "one": lambda i: i == 12,
    "fourth": lambda i: (i % 4 == 0) & (i < 13),
}
CASTS = [
    ("int64", "int32"), ("int64", "uint8"), ("int32", "int16"), ("int16", "int8"),
    ("float32", "bfloat16"), ("float32", "float8_e4m3fn"),
]  # fmt: skip
N, THREADS = 13, 64


def of_threads(source: str, target: str, holds: Callable[[Any], Any]) -> Any:
    @T.prim_func
    def main(A: T.Tensor((THREADS,), source), B: T.Tensor((N,), target)):
        with T.Kernel(1, threads=THREADS):
            tx = T.get_thread_binding()
            if holds(tx):
                B[tx] = T.cast(A[tx], target)

    return main


def of_rounds(source: str, target: str, holds: Callable[[Any], Any]) -> Any:
    @T.prim_func
    def main(A: T.Tensor((THREADS,), source), B: T.Tensor((N,), target)):
        with T.Kernel(1, threads=1):
            for i in T.serial(THREADS):
                if holds(i):
                    B[i] = T.cast(A[i], target)

    return main


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", [of_threads, of_rounds])
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize(("source", "target"), CASTS)
def test_neighbours_stay_as_they_are(source: str, target: str, name: str, kind: Any) -> None:
    kernel = tile.compile(kind(source, target, CONDITIONS[name]), target="cpu")
    dtype = np.dtype(getattr(ml_dtypes, target, target))
    memory = np.full((N + 16) * dtype.itemsize, 0x3D, np.uint8).view(dtype)
    expected, given = memory.copy(), (np.arange(THREADS) % 7 + 1).astype(source)
    chosen = [i for i in range(N) if CONDITIONS[name](i)]
    expected[chosen] = given[chosen].astype(dtype)
    kernel(given, memory[:N])
    assert memory.tobytes() == expected.tobytes()


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("machine", ["skylake-avx512", "znver4"])
@pytest.mark.parametrize("name", CONDITIONS)
@pytest.mark.parametrize(("source", "target"), CASTS[:4])
def test_no_masked_store_is_of_what_is_cut_off(
    source: str, target: str, name: str, machine: str
) -> None:
    """On machines that are not here, too."""
    kernel = tile.compile(of_rounds(source, target, CONDITIONS[name]), target=f"cpu:{machine}")
    text = kernel.artifact.module.source()
    cut_off = set(re.findall(r"(%\S+) = trunc ", text))
    stores = re.findall(r"@llvm\.masked\.store\S+\(<[^>]*> (%\S+), .*?<\d+ x i1> (\S+)", text)
    assert not [value for value, mask in stores if value in cut_off and mask.startswith("<i1")]
