"""Compiled kernels as Python functions: addresses and sizes out of tensors, failures back."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_core.dtypes import Kind
from tile_core.errors import Deadlock, DeviceAssertError
from tile_core.ir.buffer import Buffer
from tile_core.ir.host_data import HostNames, host_parameters
from tile_core.ir.names import Names
from tile_core.ir.print_expr import print_expr
from tile_core.passes.coroutines import STUCK
from tile_cpu.backend_compiler import CpuArtifact
from tile_cpu.lowering.calls import require_symbols
from tile_cpu.lowering.kernel import MAIN, Lowered
from tile_cpu.machine import missing_features, require_runnable
from tile_cpu.openmp_threads import packed_call, raise_packed_error
from tile_launch.manifest import Parameter
from tile_launch.native.c_structures import Interface, Source, Width
from tile_launch.native.caller import Slot, Start
from tile_launch.native.launch_plans import Starter
from tile_launch.symbol_solver import solutions, symbol_text
from tile_launch.views import address_of, strides_of


def callable_of(artifact: CpuArtifact) -> Callable[..., None]:
    """Return ``run(*args)``: one checked argument per parameter, outputs among them.

    Code for a machine unlike this one can be looked at; the function then raises
    `MissingFeature` when it is called.

    Raises
    ------
    ToolchainError
        If the kernel calls a C function that does not exist.
    """
    lowered = artifact.lowered
    if missing_features(lowered.machine):
        return lambda *args: require_runnable(lowered.machine)
    keep_alive = artifact.library.load() if artifact.library is not None else None
    require_symbols(lowered.kernel, lowered.extern_names)
    entry = artifact.module.entry(MAIN)
    text = launcher_source(lowered)
    names: dict[str, Any] = {
        "entry": entry,
        "address": address_of,
        "pointer": ctypes.c_void_p,
        "Status": ctypes.c_int32,
        "status_address": ctypes.addressof,
        "fail": lambda number: _fail(lowered, number),
        "flush": _flush,
        "packed": _packed,
        "strides": strides_of,
        "solved": _solver(lowered),
        "library": keep_alive,
    }
    exec(compile(text, f"<launcher of {lowered.kernel.name}>", "exec"), names)
    run: Callable[..., None] = names["run"]
    run.starter = _starter(lowered, entry)  # type: ignore[attr-defined]
    return run


def _starter(lowered: Lowered, entry: Any) -> Starter:
    """Return how C calls the kernel, by the interface of TVM's functions."""
    params, solved = lowered.kernel.params, _solver(lowered)
    function, handle = packed_call(), entry.__chandle__()
    widths = {Kind.FLOAT: Width.DOUBLE, Kind.BOOL: Width.BOOL}

    def start(args: Sequence[Any]) -> Start | None:
        if lowered.prints:
            return None
        slots = [
            Slot(Source.ADDRESS, k, Width.POINTER)
            if isinstance(p, Buffer)
            else Slot(Source.SCALAR, k, widths.get(p.dtype.kind, Width.INT))
            for k, p in enumerate(params)
        ]
        slots += [Slot(Source.CONSTANT, value=int(value)) for value in solved(*args)]
        if lowered.checks:
            slots.append(Slot(Source.STATUS, width=Width.POINTER))
        return Start(Interface.PACKED, function, handle, tuple(slots), failed, keep=(entry,))

    def failed(kind: int, number: int) -> None:
        if kind:
            _fail(lowered, number)
        raise_packed_error()

    return Starter(start, frozenset(), (1,) * len(params))


def launcher_source(lowered: Lowered) -> str:
    """Return the text of a Python function that calls the kernel."""
    kernel = lowered.kernel
    names = [f"a{k}" for k in range(len(kernel.params))]
    before: list[str] = []
    after: list[str] = []
    values: list[str] = []
    for name, param in zip(names, kernel.params, strict=True):
        if isinstance(param, Buffer) and param.dtype.packing > 1:
            before.append(f"{name}, undo_{name} = packed({name})")
            after.append(f"undo_{name}()")
        is_address = isinstance(param, Buffer) or param.dtype.is_handle
        values.append(f"pointer(address({name}))" if is_address else name)
    before += _symbols(lowered, names)
    values += [f"s{position}" for position in range(len(lowered.symbols))]
    if lowered.checks:
        before.append("status = Status(0)")
        values.append("pointer(status_address(status))")
        after.append("if status.value: fail(status.value)")
    if lowered.prints:
        after.append("flush()")
    lines = [*before, f"entry({', '.join(values)})", *after]
    return "\n".join([f"def run({', '.join(names)}):", *(f"    {line}" for line in lines)]) + "\n"


def _symbols(lowered: Lowered, names: Sequence[str]) -> list[str]:
    """Return the lines that find the symbols out of the arguments, `names`."""
    params, symbols = _known_to_hosts(lowered)
    texts = [symbol_text(params, names, symbol) for symbol in symbols]
    solved = f"solved({', '.join(names)})"
    lines = [f"known = {solved}"] if None in texts else []
    for position, text in enumerate(texts):
        lines.append(f"s{position} = {f'known[{position}]' if text is None else text}")
    if not any(texts):
        return lines
    all_of_them = "".join(f"s{position}, " for position in range(len(symbols)))
    return [
        "try:",
        *(f"    {line}" for line in lines),
        "except AttributeError:",  # of a tensor that is None, as the kernel does not use it
        f"    {all_of_them}= {solved}",
    ]


def _known_to_hosts(lowered: Lowered) -> tuple[tuple[Parameter, ...], list[str]]:
    """Return the parameters and the names of the symbols, as `tile_launch` knows them."""
    names = HostNames()
    params = host_parameters(lowered.kernel.params, names)
    return params, [names.of(symbol) for symbol in lowered.symbols]


def _solver(lowered: Lowered) -> Callable[..., list[int]]:
    """Return what tells the values of the symbols for arguments."""
    params, symbols = _known_to_hosts(lowered)
    return lambda *args: solutions(params, symbols, args)


def _packed(tensor: Any) -> tuple[Any, Callable[[], None]]:
    """Return bytes of two elements each, and what brings results back to `tensor`.

    Packed bytes are used as they are. NumPy arrays of four-bit elements hold one per byte:
    they travel through a copy.
    """
    if not isinstance(tensor, np.ndarray) or tensor.dtype in (np.dtype("int8"), np.dtype("uint8")):
        return tensor, lambda: None
    nibbles = np.ascontiguousarray(tensor).view(np.uint8) & 15
    bytes_ = nibbles[..., 0::2] | (nibbles[..., 1::2] << 4)

    def undo() -> None:
        both = np.stack([bytes_ & 15, bytes_ >> 4], axis=-1).reshape(tensor.shape)
        if tensor.dtype.name == "int4":
            tensor[...] = ((both.astype(np.int8) ^ 8) - 8).astype(tensor.dtype)
        elif tensor.dtype.name == "uint4":
            tensor[...] = both.astype(tensor.dtype)
        else:
            tensor[...] = both.view(tensor.dtype)

    return bytes_, undo


def _fail(lowered: Lowered, number: int) -> None:
    check = lowered.checks[number - 1]
    told = check.message or print_expr(check.cond, Names())
    if told == STUCK:
        raise Deadlock(
            told,
            span=check.span,
            hint="count arrivals and compare parities; target 'interpret' tells who waits for what",
        )
    raise DeviceAssertError(f"device assertion failed: {told}", span=check.span)


def _flush() -> None:
    """Write out what the kernel printed: C buffers its output apart from Python."""
    ctypes.CDLL(None).fflush(None)
