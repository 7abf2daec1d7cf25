"""Compile traced functions: the calls that users make."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import Never

from tile_api.build_or_load import build_or_load
from tile_api.compile_request import refuse_unknown, request
from tile_api.disk_cache.lookup import cache_request
from tile_api.frontend.source import placed
from tile_api.kernel import CompiledKernel
from tile_api.settings import Settings
from tile_api.tracebacks import concise
from tile_core.pass_manager.instrumentation import recorded, timed
from tile_core.plugins.host import PluginHost, default_host
from tile_launch.dynamo import outside_of_graphs


@concise
@outside_of_graphs
def compile(
    func: Any,
    out_idx: int | Sequence[int] | None = None,
    execution_backend: str | None = None,
    target: object = None,
    target_host: object = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, object] | None = None,
    compile_flags: str | Sequence[str] | None = None,
    *,
    host: PluginHost | None = None,
    **unknown: Never,
) -> CompiledKernel:
    """Compile a ``@T.prim_func`` (or a `tile_core` kernel) and return a callable kernel.

    Parameters
    ----------
    func
        The traced function.
    out_idx
        Positions of parameters that are allocated and returned; negative ones count from
        the end.
    target
        Any spelling of a target; None means ``TILE_TARGET``, else ``"auto"``.
    pass_configs, compile_flags
        Override, and extend, what the function's own body states.
    execution_backend, target_host
        Accepted for compatibility: there is one runtime.
    host
        The plugins to use; None means all that are installed.

    Raises
    ------
    TileError
        Whatever is wrong with the function, the options, the target or the toolchain.

    Examples
    --------
    >>> import numpy as np
    >>> import tile_api as tile
    >>> import tile_api.language as T
    >>> @T.prim_func
    ... def twice(A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32")):
    ...     with T.Kernel(1, threads=32):
    ...         for i in T.Parallel(4):
    ...             B[i] = A[i] * 2
    >>> tile.compile(twice, out_idx=[-1], target="cpu")(np.arange(4, dtype="float32"))
    array([0., 2., 4., 6.], dtype=float32)
    """
    refuse_unknown(compile, unknown)
    settings = Settings.from_environment()
    is_told = settings.verbose if verbose is None else verbose
    with recorded() as recording, timed("tile.compile", "call") as about, placed():
        asked = request(
            func, out_idx, execution_backend, target, pass_configs, compile_flags, settings
        )
        wanted = cache_request(*asked, host or default_host())
        about |= wanted.names
        built = build_or_load(wanted, settings, is_cached=host is None, verbose=is_told)
    return CompiledKernel(built, func, lambda: wanted.key, tuple(recording.events))
