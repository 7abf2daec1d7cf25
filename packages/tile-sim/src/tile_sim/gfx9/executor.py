"""The interpreter as an executor: ``@isa`` behind a HIP target runs what the compiler made."""

from __future__ import annotations

import ctypes
from typing import Any, Protocol

import numpy as np

from tile_core.codegen import print_program
from tile_core.errors import InternalError, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.stmt import Kernel
from tile_core.simt.program import Argument, DeviceFunction, DeviceProgram, TensorMap
from tile_sim.artifact import EmulatorArtifact
from tile_sim.executable import Call, scalar, symbols_of
from tile_sim.gfx9.arrays import Array
from tile_sim.gfx9.code import Code
from tile_sim.gfx9.launch import WaveReport, run
from tile_sim.memory import DeviceTensor
from tile_sim.settings import current_settings


class Compiled(Protocol):
    """What a backend's own compiler made: anything that keeps the program and its assembly."""

    program: DeviceProgram

    def asm(self) -> str:
        """Return the assembly."""


class Executable:
    """A compiled kernel that is interpreted: ``run(*args)``, one argument per parameter."""

    def __init__(self, artifact: Compiled, kernel: Kernel) -> None:
        self.reports: tuple[WaveReport, ...] = ()
        self._kernel = kernel
        self._artifact = EmulatorArtifact(artifact.program, print_program(artifact.program))
        self._code = Code.of(artifact.asm())
        self._symbols = symbols_of(artifact.program)

    def __call__(self, *args: Any) -> None:
        """Interpret the kernel on NumPy arrays, torch CPU tensors, or what speaks DLPack.

        Raises
        ------
        OutOfBounds, MissingWait, DataRace, Deadlock, InstructionHazard
            What was found first; then the arguments stay as they were.
        """
        call = _IsaCall(self._artifact, self._kernel, self._code)
        call.run(args, self._symbols)
        self.reports = tuple(call.reports)


class _IsaCall(Call):
    """One call, whose launches are interpreted."""

    def __init__(self, artifact: EmulatorArtifact, kernel: Kernel, code: Code) -> None:
        super().__init__(artifact, kernel, current_settings())
        self.code = code
        self.reports: list[WaveReport] = []

    def _launch(self, function: DeviceFunction, name: str) -> None:
        launch = function.launch
        if function.cooperative:
            raise UnsupportedOnTarget(
                f"{name}: blocks wait for each other, and machine code runs block by block here",
                span=launch.span,
                hint="run the kernel on the same target with @sim",
            )
        given = [self._value(argument) for argument in function.arguments]
        report = run(
            self.code,
            name,
            grid=self._grid(launch, name),
            block=launch.threads,
            arguments=given,
            shared_bytes=function.shared_bytes,
            seed=self.settings.seed if self.settings.schedule == "random" else None,
        )
        self.reports.append(report)

    def _value(self, argument: Argument) -> Any:
        if isinstance(argument, TensorMap):
            raise InternalError(f"AMD GPUs have no maps such as {argument.name}")
        if isinstance(argument, Buffer):
            return _memory(self.memory.places.get(argument, DeviceTensor(0, 0)))
        return bytes(scalar(self.values[argument], argument.dtype))


def _memory(place: DeviceTensor) -> Array | None:
    """Return the bytes of a tensor; None for one that is not there."""
    if not place.address:
        return None
    raw = (ctypes.c_ubyte * place.bytes).from_address(place.address)
    return np.ctypeslib.as_array(raw)
