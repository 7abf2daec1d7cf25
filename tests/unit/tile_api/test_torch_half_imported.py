"""Calls while another thread is importing torch: as if torch were not there yet."""

from __future__ import annotations

import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import ArgumentTypeError


@T.prim_func
def double(A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32")):
    with T.Kernel(1):
        for i in T.Parallel(8):
            B[i] = A[i] * 2


@pytest.mark.parametrize("out_idx", [None, [1]])
def test_arrays_are_taken(out_idx: list[int] | None, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tile.compile(double, out_idx=out_idx, target="cpu")
    torch = ModuleType("torch")
    torch.__spec__ = ModuleSpec("torch", None)
    torch.__spec__._initializing = True  # type: ignore[attr-defined]  # as importlib says it
    monkeypatch.setitem(sys.modules, "torch", torch)
    a, b = np.arange(8, dtype=np.float32), np.zeros(8, np.float32)
    for _ in range(2):
        found = kernel(a, b) if out_idx is None else kernel(a)
        assert np.array_equal(b if found is None else found, a * 2)
    with pytest.raises(ArgumentTypeError, match="expected a tensor, got str"):
        kernel("text", b) if out_idx is None else kernel("text")
