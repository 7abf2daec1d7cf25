"""`tilelang.lower`: source for a machine that need not be here."""

from __future__ import annotations

from typing import Any

from tile_api import lowering
from tile_api.lowered import LoweredKernel
from tile_api.tilelang.targets import source_target


def lower(
    func_or_mod: Any,
    target: object = "auto",
    target_host: object = None,
    runtime_only: bool = False,
    enable_host_codegen: bool = False,
    enable_device_compile: bool = False,
    **options: Any,
) -> LoweredKernel:
    """Return a kernel as source; as `tile_api.lower`, but a GPU without name is the usual one.

    Parameters
    ----------
    func_or_mod
        The traced function.
    target
        For which machine. Of a GPU without an architecture, where there is none, the one that
        programs can expect: see `tile_api.tilelang.targets.USUAL`.
    target_host, runtime_only, enable_host_codegen, enable_device_compile
        Accepted for compatibility: nothing of the source depends on them.
    options
        As for `tile_api.lower`.
    """
    return lowering.lower(func_or_mod, source_target(target), **options)
