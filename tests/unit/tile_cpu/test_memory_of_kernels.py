"""A compiled kernel that nobody has any more gives its megabyte back."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api import cached_builds
from tile_api.cache import KernelCache
from tile_cpu.toolchain import CompiledModule, _loaded

KERNELS = 30
"""Each took more than a megabyte that was not returned."""


def resident() -> float:
    """Return the megabytes of this process that are in memory."""
    gc.collect()
    libc = ctypes.CDLL(None)
    if hasattr(libc, "malloc_trim"):
        libc.malloc_trim(0)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * 4096 / 2**20


def growth(step: Callable[[int], None]) -> float:
    """Return by how many megabytes the process grows while `step` runs `KERNELS` times."""
    for number in range(5):
        step(number)
    before = resident()
    for number in range(5, KERNELS + 5):
        step(number)
    return resident() - before


def program(number: int):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((64,), "float32")):
        with T.Kernel(2, threads=32) as bx:
            for i in T.Parallel(32):
                B[bx * 32 + i] = A[bx * 32 + i] * number

    return main


@pytest.fixture
def small_cache(monkeypatch: pytest.MonkeyPatch) -> KernelCache[object]:
    cache: KernelCache[object] = KernelCache(2, lends=True)
    monkeypatch.setattr(cached_builds, "default_cache", lambda: cache)
    return cache


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells it there")
@pytest.mark.usefixtures("small_cache")
def test_kernels_are_given_back() -> None:
    a, b = np.ones(64, np.float32), np.zeros(64, np.float32)

    def step(number: int) -> None:
        tile.compile(program(number), target="cpu")(a, b)

    assert growth(step) < KERNELS / 3


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="Linux tells it there")
def test_loaded_kernels_are_given_back() -> None:
    module = tile.compile(program(1), target="cpu").artifact.module
    text = module.source()

    def step(number: int) -> None:
        del number
        CompiledModule(module.machine, _loaded(text)).entry()

    assert growth(step) < KERNELS / 3


def test_kernels_that_somebody_has_are_found(small_cache: KernelCache[object]) -> None:
    kernels = [tile.compile(program(number), target="cpu") for number in range(4)]
    assert len(small_cache) == 2
    again = tile.compile(program(0), target="cpu")
    assert again.artifact is kernels[0].artifact
