"""Loads and launches compiled tile kernels, with nothing but NumPy and a driver.

import tile_launch

gemm = tile_launch.load("gemm.tile")
c = gemm(a, b)
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

import tile_launch.forks  # noqa: F401  (from now on it sees forks)
from tile_launch.dynamo import leave_alone

if TYPE_CHECKING:
    from tile_launch.describe_bundle import inspect
    from tile_launch.errors import TileError
    from tile_launch.kernel import LoadedKernel
    from tile_launch.loading import load

leave_alone()

_HOMES = {
    "LoadedKernel": "tile_launch.kernel",
    "TileError": "tile_launch.errors",
    "inspect": "tile_launch.describe_bundle",
    "load": "tile_launch.loading",
}

__author__ = "The tile authors"
__version__ = "0.1.0"
__all__ = ["LoadedKernel", "TileError", "inspect", "load"]


def __getattr__(name: str) -> Any:
    """Import a public name on first use: a program that compiles kernels needs few of them."""
    home = _HOMES.get(name)
    if home is None:
        raise AttributeError(f"module 'tile_launch' has no attribute {name!r}")
    value = globals()[name] = getattr(importlib.import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOMES})
