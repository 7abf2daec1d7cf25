"""The reference interpreter: what kernels mean, on NumPy, with every access checked."""

from __future__ import annotations

from tile_core.interp.execution_state import InterpretOptions
from tile_core.interp.launch import interpret

__all__ = ["InterpretOptions", "interpret"]
