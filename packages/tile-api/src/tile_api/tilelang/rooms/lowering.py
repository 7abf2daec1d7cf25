"""`tilelang.lower`: source for a machine that need not be here."""

from __future__ import annotations

from typing import Any

from tile_api import compiling
from tile_api.lowered import LoweredKernel
from tile_api.tilelang.targets import source_target


def lower(func: Any, target: object = None, *args: Any, **options: Any) -> LoweredKernel:
    """Return a kernel as source; as `tile_api.lower`, but a GPU without name is the usual one.

    Parameters
    ----------
    func
        The traced function.
    target
        For which machine. Of a GPU without an architecture, where there is none, the one that
        programs can expect: see `tile_api.tilelang.targets.USUAL`.
    args, options
        As for `tile_api.lower`.
    """
    return compiling.lower(func, source_target(target), *args, **options)
