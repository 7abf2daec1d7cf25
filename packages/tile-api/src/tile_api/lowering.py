"""Bring traced functions to source for machines that need not be here: `tile.lower`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from typing_extensions import Never

from tile_api.compile_request import refuse_unknown, request
from tile_api.frontend.source import placed
from tile_api.lowered import LoweredKernel
from tile_api.settings import Settings
from tile_api.tracebacks import concise
from tile_core import driver
from tile_core.crash import shallow
from tile_core.plugins.host import PluginHost, default_host


@concise
def lower(
    func: Any,
    target: object = None,
    target_host: object = None,
    out_idx: int | Sequence[int] | None = None,
    pass_configs: Mapping[Any, object] | None = None,
    compile_flags: str | Sequence[str] | None = None,
    *,
    host: PluginHost | None = None,
    **unknown: Never,
) -> LoweredKernel:
    """Return a kernel as source for a machine that need not be here; nothing can be run.

    Parameters
    ----------
    func, target, out_idx, pass_configs, compile_flags, host
        As for `tile_api.compile`.
    target_host
        Accepted for compatibility.

    Raises
    ------
    TileError
        Whatever is wrong with the function, the options or the target.

    Examples
    --------
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i] * 2
    >>> lowered = tile.lower(twice, target="cuda:sm_90a")
    >>> "TILE_KERNEL(" in lowered.kernel_source
    True
    """
    if unknown:
        refuse_unknown(lower, unknown)
    settings = Settings.from_environment()
    if target is not None:  # nothing runs, so that no machine stands in for another
        settings = replace(settings, forced_target="")
    with placed():
        kernel, spec, options = request(
            func, out_idx, None, target, pass_configs, compile_flags, settings
        )
        with shallow(kernel):
            return LoweredKernel(driver.lower(kernel, spec, host or default_host(), options))
