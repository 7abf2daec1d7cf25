"""Executors: behind a GPU target, ``@sim`` emulates its source, ``@isa`` its machine code."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from tile_core.plugins.executor import AccessCost, Executor
from tile_core.plugins.hookspecs import hookimpl

if TYPE_CHECKING:
    from tile_core.ir.stmt import Kernel
    from tile_core.simt.program import DeviceProgram
    from tile_core.target import Target
    from tile_sim.artifact import EmulatorArtifact


def compile_program(program: DeviceProgram, target: Target, options: Any) -> EmulatorArtifact:
    """Return the kernel, printed and compiled for this machine."""
    from tile_sim.artifact import compile_program

    return compile_program(program)


def load(artifact: EmulatorArtifact, kernel: Kernel) -> Callable[..., None]:
    """Return a function that emulates the kernel on host tensors."""
    from tile_sim.executable import Executable

    return Executable(artifact, kernel)


def toolchain(target: Target, options: Any) -> Mapping[str, str]:
    """Return the host's C++ compiler."""
    from tile_sim.toolchain import toolchain

    return toolchain()


def counted(run: Callable[[], object], seconds: float) -> Sequence[AccessCost]:
    """Emulate with counters on, and return what the accesses of each line cost."""
    from tile_sim.call_report import last_report
    from tile_sim.settings import COUNTERS, checking

    with checking((COUNTERS,), time_limit=seconds):
        run()
    report = last_report()
    return () if report is None else tuple(row.told() for row in report.rows)


def interpret(artifact: Any, kernel: Kernel) -> Callable[..., None]:
    """Return a function that interprets the machine code of a kernel on host tensors."""
    from tile_sim.gfx9.executor import Executable

    return Executable(artifact, kernel)


@hookimpl
def tile_executors() -> list[Executor]:
    """Provide the emulator, and the interpreter of AMD's machine code."""
    return [
        Executor(
            name="sim",
            compile=compile_program,
            load=load,
            toolchain=toolchain,
            kinds=frozenset({"cuda", "hip"}),
            counted=counted,
        ),
        Executor(name="isa", compile=None, load=interpret, kinds=frozenset({"hip"})),
    ]
