"""The reference interpreter: what kernels mean, on NumPy, with every access checked."""

from __future__ import annotations

from tile_core.interp.launch import interpret
from tile_core.interp.machine import InterpretOptions

__all__ = ["InterpretOptions", "interpret"]
