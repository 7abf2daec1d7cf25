"""Conversions from and to floats of 16 bits: of every code, and of what lies between two."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_cpu.machine import MACHINES, host_machine, missing_features

HALVES = (0, 1, 0x0FFF, 0x1000, 0x1001, 0x1FFF, 0x7FFF, 0x8000, 0x8001, 0xFFFF)
"""Low bits of float32: nothing, ties of both types and what is just beside them, everything."""

BLOCK = 4096


def _conversion(n: int, source: str, target: str) -> Any:
    @T.prim_func
    def main(X: T.Tensor((n,), source), Y: T.Tensor((n,), target)):
        with T.Kernel(n // BLOCK, threads=128) as bx:
            for i in T.Parallel(BLOCK):
                Y[bx * BLOCK + i] = T.cast(X[bx * BLOCK + i], target)

    return main


def _converted(x: np.ndarray, source: str, target: str, machine: str) -> np.ndarray:
    kernel = tile.compile(_conversion(x.size, source, target), target=f"cpu:{machine}")
    out = torch.empty(x.size, dtype=getattr(torch, target))
    kernel(torch.from_numpy(x.copy()).view(getattr(torch, source)), out)
    return out.view(torch.int16 if target != "float32" else torch.int32).numpy()


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("machine", ["haswell", "skylake-avx512", "native"])
@pytest.mark.parametrize("name", ["bfloat16", "float16"])
def test_every_code(name: str, machine: str) -> None:
    if machine != "native" and missing_features(MACHINES[machine], host_machine()):
        pytest.skip("this machine is a lesser one")
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    codes = np.arange(2**16, dtype=np.uint16)
    with np.errstate(all="ignore"):
        meant = codes.view(dtype).astype(np.float32)
        got = _converted(codes.view(np.int16), name, "float32", machine).view(np.float32)
        same = got.view(np.uint32) == meant.view(np.uint32)
        assert np.all(same | (np.isnan(got) & np.isnan(meant)))

        wide = ((np.arange(2**16, dtype=np.uint32) << 16)[:, None] | np.uint32(HALVES)).ravel()
        rounded = wide.view(np.float32).astype(dtype)
        back = _converted(wide.view(np.float32), "float32", name, machine).view(dtype)
        same = back.view(np.uint16) == rounded.view(np.uint16)
        both_nan = np.isnan(back.astype(np.float32)) & np.isnan(rounded.astype(np.float32))
    assert np.all(same | both_nan)
