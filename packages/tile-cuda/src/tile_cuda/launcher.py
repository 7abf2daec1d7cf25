"""Compiled kernels as Python functions: one generated function fills slots and launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from math import prod
from typing import Any, TypeAlias

from tile_core.codegen import function_symbols
from tile_core.errors import EmptyGridError, LaunchError
from tile_core.ir.buffer import static_value
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import Call, Var
from tile_core.ir.node import walk
from tile_core.ir.stmt import Check
from tile_core.plugins.calling import address_of, solutions, strides_of, unmet
from tile_core.simt.alignment import alignments, misaligned
from tile_core.simt.limits import check_grid
from tile_core.simt.map_values import map_values
from tile_core.simt.program import Argument, DeviceFunction, DeviceProgram, TensorMap
from tile_cuda.driver import (
    CLUSTER_DIMENSION,
    PROGRAMMATIC_SERIALIZATION,
    Driver,
    LaunchAttribute,
    LaunchConfig,
)
from tile_cuda.launch_text import grid_of, key_of_maps, launcher_source, symbols_of, symbols_of_map
from tile_cuda.tensor_maps import Key, MapTable, encode_map

_SLOTS = {
    "bool": "c_bool",
    "float32": "c_float",
    "float64": "c_double",
    **{f"{sign}int{bits}": f"c_{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)},
}

_Loaded: TypeAlias = "tuple[int, tuple[int, ...]]"
"""The context of a device, and the kernels' handles in it."""


def callable_of(
    program: DeviceProgram,
    cubin: bytes,
    driver: Driver,
    stream_of: Callable[[int], int],
    device_of: Callable[..., int],
    empty: Callable[..., Any],
) -> Callable[..., None]:
    """Return ``run(*args)``: one checked argument per parameter, outputs among them.

    The launch goes to the stream that `stream_of` names and is not waited for; it can be
    captured in a graph. Slots for parameters are each thread's own, so several threads may
    launch at once; each device gets its own copy of the machine code, loaded at first use.
    Launches go to the device of the tensors, whatever device the thread works with otherwise.

    Parameters
    ----------
    stream_of
        Raw handle of the current stream of a device.
    device_of
        Number of the device that holds the tensors among the arguments.
    empty
        ``empty(shape, dtype, device)`` allocates a workspace.
    """
    text = launcher_source(program)
    loaded: dict[int, _Loaded] = {}

    def elsewhere(context: int, device: int, args: Sequence[Any]) -> None:
        with driver.inside(context, device):
            names["run"](*args)

    checks = {n: step for n, step in enumerate(program.steps) if isinstance(step, Check)}
    names: dict[str, Any] = {
        "address": address_of,
        "strides": strides_of,
        "solved": lambda *args: solutions(program.kernel.params, symbols_of(program), args),
        "cdiv": lambda a, b: -(-a // b),
        "handles": _loader(program, cubin, driver, loaded),
        "loaded": loaded,
        "device_of": device_of,
        "stream_of": stream_of,
        "read_context": driver.reader_of_context(),
        "elsewhere": elsewhere,
        "empty": empty,
        "launch": driver.library.cuLaunchKernelEx,
        "refused": lambda code, number, grid: _refused(driver, code, program, number, grid),
        "no_blocks": _no_blocks,
        "mapped": lambda launch, number, key: _mapped(driver, program, launch, number, key),
        "unmet": lambda step: _unmet(checks, step),
        "misaligned": lambda *found: _misaligned(program, found),
        "local": threading.local(),
        "Slots": lambda: _Slots(program),
    }
    exec(compile(text, f"<launcher of {program.kernel.name}>", "exec"), names)
    run: Callable[..., None] = names["run"]
    return run


def _loader(
    program: DeviceProgram, cubin: bytes, driver: Driver, loaded: dict[int, _Loaded]
) -> Callable[[int], _Loaded]:
    """Return what gives the functions of a device, and puts them into `loaded` at first use."""
    guard, symbols = threading.Lock(), function_symbols(program)

    def handles(device: int) -> _Loaded:
        with guard:
            if device not in loaded:
                context = driver.context(device)
                with driver.inside(context, device):
                    module = driver.load(cubin)
                    functions = tuple(
                        driver.function(module, name, f.shared_bytes, prod(f.launch.cluster))
                        for f, name in zip(program.functions, symbols, strict=True)
                    )
                loaded[device] = context, functions
            return loaded[device]

    return handles


def _unmet(checks: Mapping[int, Check], number: int) -> None:
    raise unmet(checks[number])


def _misaligned(program: DeviceProgram, addresses: Sequence[int]) -> None:
    for (param, multiple), address in zip(alignments(program).items(), addresses, strict=True):
        if address % multiple:
            raise misaligned(program.kernel.name, param, address, multiple)


class _Launch:
    """The memory that the driver reads at one launch: extents, and where parameters lie."""

    __slots__ = (
        "attributes", "config", "config_address", "grid", "parameters", "parameters_address",
        "rows", "table", "values",
    )  # fmt: skip

    def __init__(self, function: DeviceFunction) -> None:
        self.config = LaunchConfig()
        self.config.block[:] = function.launch.threads
        self.config.shared_bytes = function.shared_bytes
        self.config_address = ctypes.addressof(self.config)
        self.grid = self.config.grid
        self.grid[:] = [static_value(e) or 0 for e in grid_of(function)]
        attributes = launch_attributes(function)
        self.attributes = (LaunchAttribute * len(attributes))(*attributes)
        if attributes:
            self.config.attributes = ctypes.addressof(self.attributes)
            self.config.attribute_count = len(attributes)
        self.values = [_slot(argument) for argument in function.arguments]
        addresses = [ctypes.addressof(value) for value in self.values]
        self.parameters = (ctypes.c_void_p * max(1, len(addresses)))(*addresses)
        self.parameters_address = ctypes.addressof(self.parameters)
        self.table = MapTable(addresses)
        self.rows = self.table.rows


class _Slots:
    """What one thread of Python lets the driver read and write."""

    __slots__ = ("context", "context_address", "launches")

    def __init__(self, program: DeviceProgram) -> None:
        self.context = ctypes.c_void_p()
        self.context_address = ctypes.addressof(self.context)
        self.launches = [_Launch(function) for function in program.functions]


def launch_attributes(function: DeviceFunction) -> list[LaunchAttribute]:
    """Return what the driver is told of a launch, beside its extents.

    A kernel that waits for the grids before it may begin while those still run.
    """
    found = []
    if function.launch.cluster:
        extents = (*function.launch.cluster, 1, 1)[:3]
        found.append(LaunchAttribute(id=CLUSTER_DIMENSION, value=extents))
    calls = (n.function for n in walk(function.launch.body) if isinstance(n, Call))
    if f"{PREFIX}grid_wait" in calls:
        found.append(LaunchAttribute(id=PROGRAMMATIC_SERIALIZATION, value=(1,)))
    return found


def _mapped(driver: Driver, program: DeviceProgram, launch: _Launch, number: int, key: Key) -> int:
    """Return the address of the parameters of a launch, with tensor maps for what is in `key`."""
    function, name = program.functions[number], program.kernel.name
    tensors, symbols = key_of_maps(function)
    values = dict(zip((*tensors, *symbols), key, strict=True))
    maps = {}
    for position, argument in enumerate(function.arguments):
        if isinstance(argument, TensorMap):
            sizes = {v: values[v] for v in symbols_of_map(argument)}
            found = map_values(name, argument, values[argument.tensor], sizes)
            own = (values[argument.tensor], *sizes.values())
            maps[position] = own, partial(encode_map, driver, name, found)
    return launch.table.add(key, maps)


def _slot(argument: Argument) -> Any:
    if not isinstance(argument, Var) or argument.dtype.is_handle:
        return ctypes.c_uint64()
    name = _SLOTS.get(str(argument.dtype))
    if name is None:
        raise LaunchError(
            f"a scalar of {argument.dtype} cannot be passed to a kernel",
            hint="declare the parameter as float32 and convert it in the kernel",
        )
    return getattr(ctypes, name)()


def _refused(
    driver: Driver, code: int, program: DeviceProgram, number: int, grid: tuple[int, int, int]
) -> None:
    """Say why a launch failed: our reason if there is one, else the driver's."""
    function = program.functions[number]
    check_grid(grid, program.machine, function.launch)
    driver.check(code, f"to launch {function.name}")


def _no_blocks(grid: tuple[int, int, int]) -> None:
    raise EmptyGridError(
        f"a grid of {grid[0]} x {grid[1]} x {grid[2]} blocks has nothing to run",
        hint="pass tensors whose extents are at least 1",
    )
