"""Kernels on a GPU as Python functions: one generated function fills slots and launches."""

from __future__ import annotations

import ctypes
import threading
from collections.abc import Callable, Sequence
from functools import partial
from math import prod
from typing import Any, NoReturn, TypeAlias

from tile_launch.driver import Driver, LaunchMemory, Pointer
from tile_launch.errors import (
    ArgumentLayoutError,
    AssumptionError,
    EmptyGridError,
    LaunchError,
    TileError,
)
from tile_launch.expressions import FUNCTIONS
from tile_launch.launch_text import aligned_parameters, key_of_maps, launcher_source, symbols_of
from tile_launch.manifest import Launch, Manifest, Tensor, TensorMap
from tile_launch.native.caller import Start
from tile_launch.native.launch_plans import Starter, alignments, keyed_scalars, planned
from tile_launch.symbol_solver import solutions
from tile_launch.tensor_maps import Key, encode_map, map_values
from tile_launch.views import address_of, strides_of

_Loaded: TypeAlias = "tuple[int, tuple[Pointer, ...]]"
"""The context of a device, and the kernels' handles in it."""


def as_it_is(fault: TileError) -> Exception:
    """Return the error that a launcher raises where nobody knows more about it."""
    return fault


def callable_of(
    manifest: Manifest,
    code: bytes,
    driver: Driver,
    stream_of: Callable[[int], int],
    device_of: Callable[..., int],
    empty: Callable[..., Any],
    told: Callable[[TileError], Exception] = as_it_is,
) -> Callable[..., None]:
    """Return ``run(*args)``: one checked argument per parameter, outputs among them.

    The launch goes to the stream that `stream_of` names and is not waited for; it can be captured
    in a graph. Slots for parameters are each thread's own, so several threads may launch at once;
    each device gets its own copy of the machine code, loaded at first use. Launches go to the
    device of the tensors, whatever device the thread works with otherwise. `stream_of` a device is
    its stream's raw handle, `device_of` tensors the number of theirs; ``empty(shape, dtype,
    device)`` allocates a workspace, and `told` turns an error into the one that is raised: who
    knows where the kernel was written can say it.
    """
    text = launcher_source(manifest, driver)
    loaded: dict[int, _Loaded] = {}
    names = _helpers(manifest, driver)

    def elsewhere(context: int, device: int, args: Sequence[Any]) -> None:
        with driver.inside(context, device):
            names["run"](*args)

    names |= {
        "handles": _loader(manifest, code, driver, loaded),
        "loaded": loaded,
        "device_of": device_of,
        "stream_of": stream_of,
        "elsewhere": elsewhere,
        "empty": empty,
        "told": told,
    }
    exec(compile(text, f"<launcher of {manifest.kernel}>", "exec"), names)
    run: Callable[..., None] = names["run"]
    in_c = _InC(manifest, driver, names)
    run.starter = Starter(in_c.start, keyed_scalars(manifest), alignments(manifest))  # type: ignore[attr-defined]
    return run


class _InC:
    """Launches from C: what Python did for one call, for all that are like it."""

    def __init__(self, manifest: Manifest, driver: Driver, names: dict[str, Any]) -> None:
        self._manifest, self._driver, self._names = manifest, driver, names
        self._symbols = symbols_of(manifest)

    def start(self, args: Sequence[Any]) -> Start | None:
        """Return how the launch is started for arguments like `args`; None if Python has to."""
        manifest, driver = self._manifest, self._driver
        found = planned(manifest, self._symbols, args)
        if found is None:
            return None
        (launch,) = manifest.launches
        pairs = zip(manifest.parameters, args, strict=True)
        device = self._names["device_of"](*(a for p, a in pairs if isinstance(p, Tensor)))
        loaded = self._names["loaded"].get(device) or self._names["handles"](device)
        memory = driver.launch_memory(launch)
        fields = driver.start(launch, loaded, memory)
        if fields is None:
            return None
        return Start(
            slots=found.slots,
            failed=partial(self._failed, found.grid),
            grid=found.grid,
            block=launch.block,
            shared_bytes=launch.shared_bytes,
            stream_of=None if manifest.machine.family == "cpu" else self._names["stream_of"],
            device=device,
            keep=(memory, loaded, driver),
            **fields,
        )

    def _failed(self, grid: tuple[int, int, int], kind: int, number: int) -> None:
        """Raise what the Python launcher would."""
        try:
            if kind:  # of drivers with assertions: the processor's
                self._driver.failed(number)  # type: ignore[attr-defined]
            _refused(self._driver, number, self._manifest, 0, grid)
        except TileError as fault:
            raise self._names["told"](fault) from None


def _helpers(manifest: Manifest, driver: Driver) -> dict[str, Any]:
    """Return what the generated function calls, by the names that it knows."""
    symbols = symbols_of(manifest)
    return {
        **FUNCTIONS,
        "undefined": lambda error: LaunchError(
            f"{manifest.kernel}: what the host computes has no value for these arguments: {error}",
            hint="pass arguments for which it is defined",
        ),
        "address": address_of,
        "strides": strides_of,
        "solved": lambda *args: solutions(manifest.parameters, symbols, args),
        "read_context": driver.reader_of_context(),
        "workspaces": manifest.workspaces,
        "launch": driver.launch,
        "refused": lambda code, number, grid: _refused(driver, code, manifest, number, grid),
        "no_blocks": _no_blocks,
        "together": _together(manifest, driver),
        "mapped": lambda launch, number, key: _mapped(driver, manifest, launch, number, key),
        "unmet": lambda position: _unmet(manifest, position),
        "misaligned": lambda *found: _misaligned(manifest, found),
        "local": threading.local(),
        "Slots": lambda: _Slots(manifest, driver),
        "Fault": TileError,
    }


def _loader(
    manifest: Manifest, code: bytes, driver: Driver, loaded: dict[int, _Loaded]
) -> Callable[[int], _Loaded]:
    """Return what gives the functions of a device, and puts them into `loaded` at first use."""
    guard = threading.Lock()

    def handles(device: int) -> _Loaded:
        with guard:
            if device not in loaded:
                context = driver.context(device)
                with driver.inside(context, device):
                    module = driver.load(code)
                    functions = tuple(driver.function(module, f) for f in manifest.launches)
                loaded[device] = context, functions
            return loaded[device]

    return handles


class _Slots:
    """What one thread of Python lets the driver read and write."""

    __slots__ = ("context", "context_pointer", "launches")

    def __init__(self, manifest: Manifest, driver: Driver) -> None:
        self.context = ctypes.c_uint64()
        self.context_pointer = ctypes.c_void_p(ctypes.addressof(self.context))
        self.launches = [driver.launch_memory(launch) for launch in manifest.launches]


def _unmet(manifest: Manifest, position: int) -> NoReturn:
    message = getattr(manifest.steps[position], "message", "a condition")
    raise AssumptionError(
        f"{message} (does not hold for these arguments)",
        hint="pass arguments for which it holds",
        subject=("step", position),
    )


def _misaligned(manifest: Manifest, addresses: Sequence[int]) -> None:
    for param, address in zip(aligned_parameters(manifest), addresses, strict=True):
        if address % param.alignment:
            raise misaligned(manifest.kernel, param.name, address, param.alignment)


def misaligned(kernel: str, name: str, address: int, multiple: int) -> ArgumentLayoutError:
    """Return the error that the elements of a parameter begin where vectors must not."""
    return ArgumentLayoutError(
        f"{kernel}.{name}.data: expected an address that is a multiple of {multiple} bytes, got "
        f"one that lies {address % multiple} behind",
        hint="pass x.clone() or numpy.copy(x): views may begin anywhere, tensors of their own are "
        "aligned",
        subject=("parameter", name),
    )


def _mapped(
    driver: Driver, manifest: Manifest, memory: LaunchMemory, number: int, key: Key
) -> Pointer:
    """Return a pointer to the parameters of a launch, with tensor maps for what is in `key`."""
    launch, name = manifest.launches[number], manifest.kernel
    tensors, symbols = key_of_maps(launch)
    addresses = dict(zip(tensors, key, strict=False))
    values = dict(zip(symbols, key[len(tensors) :], strict=True))
    maps = {}
    for position, argument in enumerate(launch.arguments):
        if isinstance(argument, TensorMap):
            address, sizes = addresses[argument.tensor], [values[s] for s in argument.symbols]
            found = map_values(name, argument, address, values)
            maps[position] = (address, *sizes), partial(encode_map, driver, name, found)
    return memory.table.add(key, maps)


def _refused(
    driver: Driver, code: int, manifest: Manifest, number: int, grid: tuple[int, int, int]
) -> None:
    """Say why a launch failed: our reason if there is one, else the driver's."""
    launch = manifest.launches[number]
    problem, hint = _problem_of_grid(manifest, launch, grid)
    if problem:
        subject = ("step", manifest.steps.index(launch))
        raise LaunchError(problem, hint=hint, subject=subject)
    driver.check(code, f"to launch {launch.name}")


def _problem_of_grid(
    manifest: Manifest, launch: Launch, grid: tuple[int, int, int]
) -> tuple[str, str]:
    """Return what is wrong with the extents of a grid, and what helps."""
    machine = manifest.machine
    for axis, extent, most in zip("xyz", grid, machine.max_grid, strict=False):
        if extent > most:
            return (
                f"{extent} blocks along {axis} are more than {machine.name} runs: {most}",
                "give the longest extent first: T.Kernel(long, short)",
            )
    if any(extent % size for extent, size in zip(grid, launch.cluster, strict=False)):
        extents, whole = (" x ".join(map(str, sizes)) for sizes in (grid, launch.cluster))
        return (
            f"a grid of {extents} blocks is not made of clusters of {whole}",
            "round the extents of T.Kernel up to multiples of the cluster's",
        )
    return "", ""


def _together(
    manifest: Manifest, driver: Driver
) -> Callable[[int, Pointer, int, tuple[int, int, int]], None]:
    """Return what refuses grids whose blocks wait for each other and do not all fit."""
    known: dict[tuple[int, int], tuple[int, int]] = {}

    def check(number: int, function: Pointer, device: int, grid: tuple[int, int, int]) -> None:
        launch = manifest.launches[number]
        if (number, device) not in known:
            known[number, device] = driver.blocks_at_once(function, launch, device)
        each, units = known[number, device]
        if prod(grid) > each * units:
            raise LaunchError(
                f"the {prod(grid)} blocks of {launch.name} wait for each other, and at most "
                f"{each * units} run at a time: {each} on each of {units} multiprocessors",
                hint="launch fewer blocks, each of which does more",
                subject=("step", manifest.steps.index(launch)),
            )

    return check


def _no_blocks(grid: tuple[int, int, int]) -> NoReturn:
    raise EmptyGridError(
        f"a grid of {grid[0]} x {grid[1]} x {grid[2]} blocks has nothing to run",
        hint="pass tensors whose extents are at least 1",
    )
