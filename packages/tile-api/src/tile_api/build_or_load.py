"""Kernels that users ask for: what exactly that is, and finding them in caches or building them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, TypeAlias

from tile_api.cache import default_cache
from tile_api.compile_logging import build, watch
from tile_api.disk_cache import disk_cache
from tile_api.disk_cache.entry import Entry
from tile_api.disk_cache.entry_codec import CachedBuild
from tile_api.disk_cache.lookup import CacheRequest, keep, restore, revive
from tile_api.frontend.source import placed
from tile_api.keys import CompileKey, key_of
from tile_api.pass_configs import normalise_pass_configs
from tile_api.settings import Settings
from tile_core.compilation.options import BuildOptions
from tile_core.compilation.results import Built
from tile_core.crash import shallow
from tile_core.errors import FrontendTypeError, FrontendValueError, OutputError
from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_written
from tile_core.ir.node import walk
from tile_core.ir.stmt import Kernel
from tile_core.logs import log
from tile_core.pass_manager.instrumentation import Event, recorded, timed
from tile_core.plugins.host import PluginHost, default_host
from tile_core.target import Target

BACKENDS = frozenset({"auto", "tvm_ffi", "cython", "nvrtc", "torch", "cutedsl", "ctypes", "dlpack"})
"""Execution backends of TileLang; here all mean the one runtime there is."""


def kernel_of(func: Any) -> Kernel:
    """Return the tile IR of a traced function.

    Raises
    ------
    FrontendTypeError
        If `func` is not one.
    """
    kernel = getattr(func, "kernel", func)
    if not isinstance(kernel, Kernel):
        raise FrontendTypeError(
            f"cannot compile {type(func).__name__} {getattr(func, '__name__', func)!r}",
            hint="decorate the function with @T.prim_func, or the function that returns it "
            "with @tile.jit and call it",
        )
    return kernel


def with_outputs(kernel: Kernel, out_idx: int | Sequence[int] | None) -> Kernel:
    """Return `kernel` with the parameters at `out_idx` turned into outputs.

    Raises
    ------
    OutputError
        If the function already states its outputs, an index is not a tensor parameter, or the
        body never writes an output.
    """
    if out_idx is None:
        return _with_written(kernel)
    wanted: list[Any] = list(out_idx) if isinstance(out_idx, (list, tuple)) else [out_idx]
    if not all(isinstance(index, int) and not isinstance(index, bool) for index in wanted):
        raise OutputError(
            f"out_idx is an int or a list of ints, got {out_idx!r}",
            hint="write out_idx=[-1] for the last parameter",
        )
    if kernel.outputs:
        raise OutputError(
            f"{kernel.name} returns tensors made by T.empty, and out_idx={out_idx!r} was given too",
            hint="use one of the two",
        )
    count = len(kernel.params)
    positions = []
    for index in wanted:
        position = index + count if index < 0 else index
        if not 0 <= position < count or not isinstance(kernel.params[position], Buffer):
            raise OutputError(
                f"out_idx {index} is not a tensor parameter of {kernel.name}, which has {count}",
                hint=f"use an index between {-count} and {count - 1}",
            )
        if position in positions:
            raise OutputError(
                f"out_idx names parameter {position} of {kernel.name} twice",
                hint="name each output once; -1 is the last parameter",
            )
        positions.append(position)
    return _with_written(replace(kernel, outputs=tuple(positions)))


def _with_written(kernel: Kernel) -> Kernel:
    """Return a kernel unless it leaves an output as it was allocated.

    Raises
    ------
    OutputError
        If the body never writes an output.
    """
    if not kernel.outputs:
        return kernel
    written = storages_written(kernel.body)
    for position in kernel.outputs:
        param = kernel.params[position]
        if param not in written:
            names = [p.name for p in kernel.params if p in written and isinstance(p, Buffer)]
            told = f"name what the kernel writes: {', '.join(names)}" if names else ""
            raise OutputError(
                f"{kernel.name} never writes {param.name}, which is returned: parameter "
                f"{position} of {len(kernel.params)}",
                span=param.span,
                hint=told or f"write to {param.name} in the kernel",
            )
    return kernel


def request(
    func: Any,
    out_idx: int | Sequence[int] | None,
    execution_backend: str | None,
    target: object,
    pass_configs: Mapping[Any, object] | None,
    compile_flags: str | Sequence[str] | None,
    settings: Settings,
) -> tuple[Kernel, object, BuildOptions]:
    """Return what the driver needs: the kernel, the target and the options.

    Parameters are those of `compile`; `settings` are those of the environment.

    Raises
    ------
    TileError
        Whatever is wrong with them.
    """
    if execution_backend is not None and execution_backend not in BACKENDS:
        raise FrontendValueError(
            f"execution_backend {execution_backend!r} is not known",
            hint="leave it out: there is one runtime",
        )
    kernel = with_outputs(kernel_of(func), out_idx)
    flags = _flags(compile_flags)
    recorded = normalise_pass_configs(dict(kernel.options.pass_configs))
    configs = recorded | normalise_pass_configs(pass_configs)
    options = BuildOptions(
        tuple(sorted(configs.items())),
        (*kernel.options.compile_flags, *flags),
        settings.verify,
        settings.threads,
    )
    spec = settings.forced_target or (settings.target if target is None else target)
    return kernel, "interpret" if settings.interpret else spec, options


def _flags(flags: object) -> list[str]:
    """Return compiler flags given as one string or a list of them."""
    if isinstance(flags, str):
        return flags.split()
    listed = [] if flags is None else flags
    if not isinstance(listed, (list, tuple)) or not all(isinstance(f, str) for f in listed):
        raise FrontendTypeError(
            f"compile_flags are a string or a list of strings, got {flags!r}",
            hint='write compile_flags=["-O2", "-DNAME=1"]',
        )
    return list(listed)


Made: TypeAlias = "tuple[Built | CachedBuild, bool, Callable[[], CompileKey]]"
"""A kernel, whether it is new to the process, and who tells its key."""


def built_anew(
    kernel: Kernel, exact: Target, options: BuildOptions, plugins: PluginHost, settings: Settings
) -> Made:
    """Return a kernel that is compiled, whatever caches hold."""
    log("cache", lambda: f"{kernel.name} for {exact}: compiled, as caches are off")
    built = build(kernel, exact, plugins, options, settings)
    return built, True, partial(key_of, kernel, exact, options, plugins)


def _itself(key: CompileKey) -> CompileKey:
    return key


def found_or_built(wanted: CacheRequest, settings: Settings) -> Made:
    """Return a kernel from memory, from disk, or compiled.

    Errors show places, which keys leave out: a kernel that was moved is another one in memory,
    and on disk it is the same.
    """
    memory = default_cache()
    with timed("look in memory", "cache") as about:
        here = (wanted.key, tuple(node.span for node in walk(wanted.kernel)))
        known = memory.get(here)
        about["found"] = "no" if known is None else "yes"
    name = f"{wanted.kernel.name} for {wanted.target}"
    if isinstance(known, Built | CachedBuild):
        log(
            "cache",
            lambda: f"{name}: found in memory",
            lambda: f"{name}: found in memory\n{wanted.key}",
        )
        return known, False, partial(_itself, wanted.key)
    disk = disk_cache() if memory.enabled else None
    with timed("look on disk", "cache") as about:
        built: Built | CachedBuild | None = None if disk is None else revive(disk, wanted)
        about["found"] = "no" if built is None else "yes"
    how = "compiled" if built is None else "found on disk"
    log("cache", lambda: f"{name}: {how}", lambda: f"{name}: {how}\n{wanted.key}")
    if isinstance(built, CachedBuild):
        watch(built, settings)
    if built is None:
        built = build(wanted.kernel, wanted.target, wanted.host, wanted.options, settings)
        if disk is not None:
            with timed("keep on disk", "cache"):
                keep(disk, wanted, built)
    memory.put(here, built)
    return built, True, partial(_itself, wanted.key)


def made_again(
    kernel: Kernel, target: str, options: BuildOptions, entry: Entry | None
) -> tuple[Built | CachedBuild, Callable[[], CompileKey], tuple[Event, ...]]:
    """Return a kernel that another process compiled, in this one; who tells its key; events.

    Parameters
    ----------
    kernel, target, options
        What it was compiled from.
    entry
        Its machine code; None if it is compiled here, or found in the cache.

    Raises
    ------
    TileError
        If no plugin here serves the target, or compiling fails.
    """
    settings, plugins = Settings.from_environment(), default_host()
    with recorded() as recording, timed("tile.compile", "call") as about:
        with placed():
            backend, exact = plugins.resolve(target)
        about |= {"kernel": kernel.name, "target": str(exact)}
        with placed(), shallow(kernel):
            key = key_of(kernel, exact, options, plugins)
            wanted = CacheRequest(kernel, exact, backend, options, plugins, key)
            told: Callable[[], CompileKey] = partial(_itself, key)
            built: Built | CachedBuild
            if entry is not None:
                built = restore(entry, wanted)
            elif settings.cache:
                built, _, told = found_or_built(wanted, settings)
            else:
                built, _, told = built_anew(kernel, exact, options, plugins, settings)
    return built, told, tuple(recording.events)
