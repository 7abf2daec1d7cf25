"""What users ask to be compiled: which kernel, for which target, with which options."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from tile_api.frontend.source import calling_span
from tile_api.pass_configs import normalise_pass_configs
from tile_api.settings import Settings
from tile_core.compilation.options import BuildOptions
from tile_core.errors import FrontendTypeError, FrontendValueError, OutputError
from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_written
from tile_core.ir.stmt import Kernel
from tile_core.spelling import nearest

BACKENDS = frozenset({"auto", "tvm_ffi", "cython", "nvrtc", "torch", "cutedsl", "ctypes", "dlpack"})
"""Execution backends of TileLang; here all mean the one runtime there is."""


def kernel_of(func: Any) -> Kernel:
    """Return the tile IR of a traced function."""
    kernel = getattr(func, "kernel", func)
    if not isinstance(kernel, Kernel):
        raise FrontendTypeError(
            f"cannot compile {type(func).__name__} {getattr(func, '__name__', func)!r}",
            hint="decorate the function with @T.prim_func, or the function that returns it "
            "with @tile.jit and call it",
        )
    return kernel


def with_outputs(kernel: Kernel, out_idx: int | Sequence[int] | None) -> Kernel:
    """Return `kernel` with the parameters at `out_idx` turned into outputs, which it must write."""
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
    """Return a kernel unless it leaves an output as it was allocated."""
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
    """Return what the driver needs, out of what `compile` takes: kernel, target, and options."""
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


def refuse_unknown(function: Callable[..., Any], given: Iterable[str]) -> None:
    """Raise if `function`, one of the package, was given an option that it does not have.

    The hint names the nearest option, or all.
    """
    parameters = inspect.signature(function).parameters.values()
    known = [p.name for p in parameters if p.kind is not p.VAR_KEYWORD and p.name != "func"]
    name = next((option for option in given if option not in known), None)
    if name is None:
        return
    near = nearest(name, known)
    raise FrontendTypeError(
        f"tile.{function.__name__} has no option {name!r}",
        span=calling_span(),
        hint=f"did you mean {near}=...?" if near else f"it has {', '.join(known)}",
    )
