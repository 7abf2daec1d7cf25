"""Loads and launches compiled tile kernels, with nothing but NumPy and a driver.

import tile_runtime

gemm = tile_runtime.load("gemm.tile")
c = gemm(a, b)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import tile_runtime.forks  # noqa: F401  (from now on it sees forks)

if TYPE_CHECKING:
    from tile_runtime.errors import TileRuntimeError
    from tile_runtime.inspecting import inspect
    from tile_runtime.kernel import LoadedKernel
    from tile_runtime.loading import load

_HOMES = {
    "LoadedKernel": "tile_runtime.kernel",
    "TileRuntimeError": "tile_runtime.errors",
    "inspect": "tile_runtime.inspecting",
    "load": "tile_runtime.loading",
}

__all__ = ["LoadedKernel", "TileRuntimeError", "inspect", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: a program that compiles kernels needs few of them."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tile_runtime' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
