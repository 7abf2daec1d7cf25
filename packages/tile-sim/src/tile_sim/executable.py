"""Compiled kernels as Python functions that emulate a GPU."""

from __future__ import annotations

import ctypes
import math
import sys
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from tile_core.arith.evaluate import evaluate
from tile_core.dtypes import DType
from tile_core.errors import AssumptionError, EmptyGridError, InternalError, LaunchError
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Extent, Var
from tile_core.ir.free_variables import free_variables, is_host_evaluable
from tile_core.ir.host_data import HostNames, host_parameters
from tile_core.ir.names import Names
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import Check, Kernel, Launch, Let
from tile_core.plugins.dlpack_arrays import as_array
from tile_core.plugins.launch_errors import point_at_parameter
from tile_core.simt.alignment import alignments
from tile_core.simt.program import Argument, DeviceFunction, DeviceProgram, HostStep, TensorMap
from tile_core.simt.resource_limits import check_grid
from tile_core.simt.tensor_map_values import map_values
from tile_launch.launcher import misaligned
from tile_launch.symbol_solver import solutions
from tile_launch.views import address_of
from tile_sim.abi import CBuffer, CTensorMap
from tile_sim.artifact import EmulatorArtifact
from tile_sim.call_report import SimReport, remember, rows_of
from tile_sim.finding_errors import error_of
from tile_sim.launch_debug_info import LaunchDebugInfo, Tensor, tiles_of
from tile_sim.library import Geometry, KernelLibrary
from tile_sim.memory import Array, DeviceMemory, DeviceTensor, PackedNibbles
from tile_sim.settings import SimSettings, current_settings
from tile_sim.tensor_maps import c_tensor_map, map_names, written_maps


class Executable:
    """A kernel that runs on the emulator: ``run(*args)``, one checked argument per parameter.

    The kernel is as the user wrote it, for the names of elements in reports; `report` tells what
    the last call did.
    """

    def __init__(self, artifact: EmulatorArtifact, kernel: Kernel) -> None:
        self.report: SimReport | None = None
        self._artifact, self._kernel = artifact, kernel
        self._library = artifact.library()
        self._symbols = symbols_of(artifact.program)
        self._alignment = alignments(artifact.program)

    def __call__(self, *args: Any) -> None:
        """Emulate the kernel on NumPy arrays, torch CPU tensors, or what speaks DLPack.

        Raises
        ------
        ArgumentLayoutError
            If vectors of the kernel would not be aligned in an argument.
        OutOfBounds, MisalignedAccess, UninitialisedRead, DataRace, MissingWait, Deadlock
            What the checks found first; then the arguments stay as they were.
        DeviceAssertError
            If an assertion inside the kernel fails.
        """
        self._check_addresses(args)
        settings = current_settings()
        call = _EmulatedCall(self._artifact, self._kernel, self._library, settings)
        try:
            call.run(args, self._symbols)
        finally:
            self.report = call.report
            remember(call.report)

    def _check_addresses(self, args: Sequence[Any]) -> None:
        """Refuse what a GPU would fault on; the emulated memory itself is always aligned."""
        kernel = self._artifact.program.kernel
        for param, arg in zip(kernel.params, args, strict=True):
            if isinstance(param, Buffer) and param in self._alignment:
                address, size = address_of(arg), self._alignment[param]
                if address % size:
                    error = misaligned(kernel.name, param.name, address, size)
                    point_at_parameter(error, kernel, param.name)
                    raise error


class Call(ABC):
    """One call: the memory, the values and the report that its launches share."""

    def __init__(self, artifact: EmulatorArtifact, kernel: Kernel, settings: SimSettings) -> None:
        self.program, self.printed, self.kernel = artifact.program, artifact.printed, kernel
        self.settings = settings
        self.memory = DeviceMemory()
        self.arrays: dict[Buffer, Array] = {}
        self.values: dict[Var, Any] = {}
        self.report = SimReport(self.program.kernel.name, settings)

    def run(self, args: Sequence[Any], symbols: Sequence[Var]) -> None:
        """Copy the arguments in, do what the host does step by step, and copy results out."""
        packed = self._bind(args, symbols)
        functions = self.program.functions
        names = dict(zip(functions, self.printed.entry_points, strict=True))
        self._take(self.program.steps, names)
        self.memory.check_red_zones()
        self.memory.copy_back()
        for tensor in packed:
            tensor.unpack()

    def _take(self, steps: Sequence[HostStep], names: Mapping[DeviceFunction, str]) -> None:
        for step in steps:
            match step:
                case Let(var=var, value=value):
                    self.values[var] = evaluate(value, self.values)
                case Check():
                    self._check(step)
                case DeviceFunction():
                    self._launch(step, names[step])

    def _bind(self, args: Sequence[Any], symbols: Sequence[Var]) -> list[PackedNibbles]:
        params = self.program.kernel.params
        self.values |= {p: a for p, a in zip(params, args, strict=True) if isinstance(p, Var)}
        names = HostNames()
        known = host_parameters(params, names)
        found = solutions(known, [names.of(symbol) for symbol in symbols], args)
        self.values |= dict(zip(symbols, found, strict=True))
        packed: list[PackedNibbles] = []
        tensors: list[Buffer] = []
        arrays: list[Array | None] = []
        for param, arg in zip(params, args, strict=True):
            if isinstance(param, Buffer):
                array = as_array(param, arg)
                if array is not None and PackedNibbles.needs(param, array):
                    packed.append(PackedNibbles.of(array))
                    array = packed[-1].bytes
                tensors.append(param)
                arrays.append(array)
                if array is not None:
                    self.arrays[param] = array
        self.memory.add_tensors(tensors, arrays)
        for buffer in self.program.workspaces:
            count = math.prod(self._extent(e) for e in buffer.shape)
            self.memory.add_workspace(buffer, -(-count * buffer.dtype.bits // 8))
        return packed

    def _check(self, check: Check) -> None:
        """Raise if a condition on the host's values does not hold."""
        known = is_host_evaluable(check.cond, self.values)
        if known and not evaluate(check.cond, self.values):
            raise AssumptionError(
                f"{check.message or print_expr(check.cond, Names())} (does not hold for these "
                "arguments)",
                span=check.span,
                hint="pass arguments for which it holds",
            )

    @abstractmethod
    def _launch(self, function: DeviceFunction, name: str) -> None:
        """Run one grid; raise the first finding."""

    def _grid(self, launch: Launch, name: str) -> tuple[int, int, int]:
        extents = [self._extent(e) for e in launch.grid]
        if min(extents, default=1) < 1:
            raise EmptyGridError(
                f"{name}: the grid {tuple(extents)} has no blocks",
                span=launch.span,
                hint="do not call the kernel when there is nothing to do",
            )
        check_grid(extents, self.program.machine, launch)
        x, y, z = (*extents, 1, 1, 1)[:3]
        return x, y, z

    def _extent(self, extent: Extent) -> int:
        return int(evaluate(extent, self.values))


class _EmulatedCall(Call):
    """One call whose launches are emulated."""

    def __init__(
        self,
        artifact: EmulatorArtifact,
        kernel: Kernel,
        library: KernelLibrary,
        settings: SimSettings,
    ) -> None:
        super().__init__(artifact, kernel, settings)
        self.library = library

    def _launch(self, function: DeviceFunction, name: str) -> None:
        """Run one grid; raise the first finding."""
        launch, info = function.launch, self._debug_info(function)
        grid = self._grid(launch, name)
        if function.cooperative:
            check_together(name, math.prod(grid), function)
        maps = self._maps(function, name)
        arguments = [maps.get(i) or self._argument(a) for i, a in enumerate(function.arguments)]
        sizes = Geometry(
            grid,
            launch.threads,
            function.shared_bytes,
            self.program.machine.warp_size,
            cluster_of(launch),
            self.program.machine.banks,
            function.resident,
            function.cooperative,
        )
        outcome = self.library.launch(name, arguments, sizes, self.settings)
        rows = rows_of(outcome.counts, info)
        self.report = self.report.with_launch(rows, outcome.findings, outcome.statistics)
        if outcome.output:
            sys.stdout.write(outcome.output)
            sys.stdout.flush()
        if outcome.findings:
            raise error_of(outcome.findings, info)

    def _argument(self, argument: Argument) -> Any:
        if isinstance(argument, TensorMap):
            raise InternalError(f"the map {argument.name} is none of the printed parameters")
        if isinstance(argument, Buffer):
            place = self.memory.places.get(argument, DeviceTensor(0, 0))
            return CBuffer(place.address or None, place.bytes, argument.name.encode(), None)
        return scalar(self.values[argument], argument.dtype)

    def _maps(self, function: DeviceFunction, name: str) -> dict[int, CTensorMap]:
        """Return the maps that a launch takes, by the position of their parameters."""
        found = {i: a for i, a in enumerate(function.arguments) if isinstance(a, TensorMap)}
        names = map_names(self.printed.text, name)
        written = written_maps(self.printed.text)
        return {
            position: self._tensor_map(described, is_written=printed in written)
            for (position, described), printed in zip(found.items(), names, strict=True)
        }

    def _tensor_map(self, described: TensorMap, *, is_written: bool) -> CTensorMap:
        """Return the map of a tensor as it lies here; refuse what a GPU could not describe."""
        tensor, name = described.tensor, self.program.kernel.name
        if tensor in self.arrays:
            map_values(name, described, address_of(self.arrays[tensor]), self.values)
        place = self.memory.places.get(tensor, DeviceTensor(0, 0))
        found = map_values(name, described, place.address, self.values)
        return c_tensor_map(found, tensor.name, place, is_written=is_written)

    def _debug_info(self, function: DeviceFunction) -> LaunchDebugInfo:
        tiles = tiles_of(function, self.program.layouts, self.kernel)
        tensors = {
            buffer.name: Tensor(
                buffer.name,
                array.shape,
                tuple(s // array.itemsize for s in array.strides),
                array.itemsize,
                buffer.span,
            )
            for buffer, array in self.arrays.items()
        }
        text = tuple(self.printed.text.splitlines())
        return LaunchDebugInfo(self.printed.lines, tiles, tensors, len(function.launch.grid), text)


MOST_TOGETHER = 128
"""Blocks that the emulator runs together; ``MAX_BLOCKS`` of its runtime."""
_ACTORS, _ENGINES_OF_A_BLOCK = 1 << 15, 64


def check_together(name: str, blocks: int, function: DeviceFunction) -> None:
    """Refuse a cooperative grid of more blocks than run at a time."""
    most = min(MOST_TOGETHER, _ACTORS // (function.threads + _ENGINES_OF_A_BLOCK))
    if blocks > most:
        raise LaunchError(
            f"{name}: the {blocks} blocks of the grid wait for each other, and at most {most} of "
            f"{function.threads} threads run at a time in the emulator",
            span=function.launch.span,
            hint="launch fewer blocks, each of which does more",
        )


def cluster_of(launch: Launch) -> tuple[int, int, int]:
    """Return how many blocks run together, in x, y, z."""
    x, y, z = (*launch.cluster, 1, 1, 1)[:3]
    return x, y, z


def scalar(value: Any, dtype: DType) -> Any:
    """Return a number in the bytes of `dtype`, as a kernel takes it; a handle is an address."""
    if dtype.is_handle:
        return ctypes.c_uint64(address_of(value))
    raw = np.asarray(value).astype(dtype.numpy()).tobytes()
    return (ctypes.c_ubyte * len(raw)).from_buffer_copy(raw)


def symbols_of(program: DeviceProgram) -> tuple[Var, ...]:
    """Return the symbols that shapes and strides of parameters determine."""
    extents = (
        e
        for p in program.kernel.params
        if isinstance(p, Buffer)
        for e in (*p.shape, *(p.strides or ()))
    )
    found = dict.fromkeys(v for extent in extents for v in free_variables(extent))
    taken = {*program.kernel.params}
    return tuple(v for v in found if v not in taken)
