"""Compile traced functions: the calls that users make."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import Never

from tile_api.build_or_load import built_anew, found_or_built, request
from tile_api.disk_cache.entry_codec import CachedBuild
from tile_api.disk_cache.lookup import CacheRequest
from tile_api.frontend.source import placed
from tile_api.kernel import CompiledKernel
from tile_api.keys import CompileKey, key_of
from tile_api.misspelt_options import refuse_unknown
from tile_api.settings import Settings
from tile_api.tracebacks import concise
from tile_core.compilation.results import Built
from tile_core.crash import shallow
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import recorded, timed
from tile_core.plugins.host import PluginHost, default_host


@concise
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
    """
    refuse_unknown(compile, unknown)
    settings = Settings.from_environment()
    plugins = host or default_host()
    with recorded() as recording, timed("tile.compile", "call") as about:
        with placed():
            kernel, spec, options = request(
                func, out_idx, execution_backend, target, pass_configs, compile_flags, settings
            )
            backend, exact = plugins.resolve(spec)
        about |= {"kernel": kernel.name, "target": str(exact)}
        log("target", lambda: f"{kernel.name}: {spec} is {exact}, compiled by {backend.name}")
        with placed(), shallow(kernel):
            if host is None and settings.cache:
                with timed("compile key", "cache"):
                    key = key_of(kernel, exact, options, plugins)
                wanted = CacheRequest(kernel, exact, backend, options, plugins, key)
                made = found_or_built(wanted, settings)
            else:
                made = built_anew(kernel, exact, options, plugins, settings)
    built, is_new, told = made
    if is_new and (settings.verbose if verbose is None else verbose):
        _tell_times(built)
    return CompiledKernel(built, func, told, tuple(recording.events))


def _tell_times(built: Built | CachedBuild) -> None:
    times = ", ".join(f"{name} {ms:.1f} ms" for name, ms in built.phases_ms.items())
    how = "compiled" if isinstance(built, Built) else "loaded"
    os.write(2, f"{how} {built.kernel.name} for {built.target}: {times}\n".encode())


def compile_key(
    func: Any,
    out_idx: int | Sequence[int] | None = None,
    target: object = None,
    pass_configs: Mapping[Any, object] | None = None,
    compile_flags: str | Sequence[str] | None = None,
) -> CompileKey:
    """Return what the compiled form of a function is a function of; nothing is compiled.

    Parameters
    ----------
    func, out_idx, target, pass_configs, compile_flags
        As for `compile`.

    Raises
    ------
    TileError
        Whatever is wrong with the function, the options or the target.
    """
    settings, plugins = Settings.from_environment(), default_host()
    with placed():
        kernel, spec, options = request(
            func, out_idx, None, target, pass_configs, compile_flags, settings
        )
        _, exact = plugins.resolve(spec)
        with shallow(kernel):
            return key_of(kernel, exact, options, plugins)
