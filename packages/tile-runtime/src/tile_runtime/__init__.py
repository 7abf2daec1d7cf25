"""Loads and launches compiled tile kernels, with nothing but NumPy and a driver.

import tile_runtime

gemm = tile_runtime.load("gemm.tile")
c = gemm(a, b)
"""

from tile_runtime.errors import TileRuntimeError
from tile_runtime.inspecting import inspect
from tile_runtime.kernel import LoadedKernel
from tile_runtime.loading import load

__all__ = ["LoadedKernel", "TileRuntimeError", "inspect", "load"]
