"""Compiled kernels leave the process with the last object that launches them."""

from __future__ import annotations

import gc
from pathlib import Path

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.cache import default_cache


def mapped_kernels(name: str) -> set[str]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return {line.split()[-1] for line in lines if f"/{name}-" in line}


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
def test_a_deleted_kernel_is_not_mapped(target: str) -> None:
    @T.prim_func
    def unloaded(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            for i in T.Parallel(64):
                B[i] = A[i] + 37

    gc.collect()
    assert not mapped_kernels("unloaded")
    kernels = [tile.compile(unloaded, target=target) for _ in range(2)]
    for _ in range(2):
        a, b = np.arange(64, dtype=np.int32), np.zeros(64, np.int32)
        kernels[-1](a, b)
        assert b.tolist() == list(range(37, 101))
        assert len(mapped_kernels("unloaded")) == 1
        kernels.pop()
        gc.collect()
    default_cache().clear()
    gc.collect()
    assert not mapped_kernels("unloaded")
