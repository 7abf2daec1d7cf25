"""A kernel as functions for threads: what lowering hands to the printer and the launcher."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Var
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Check, Kernel, Launch, Let

if TYPE_CHECKING:
    from tile_core.machine import SimtMachine
    from tile_core.passes.infer_layouts import Layouts


@dataclass(frozen=True, slots=True, eq=False)
class DeviceFunction:
    """One launch: the program of one thread, and what the host passes to it.

    Parameters
    ----------
    name
        The symbol; the kernel's name, numbered if the kernel has several launches.
    params
        Flat global buffers (rank 1, contiguous elements) and scalars, in the order of the
        printed parameters. A flat buffer stands for the kernel parameter, or the workspace,
        that `arguments` names.
    arguments
        For each of `params`, the kernel's own buffer or scalar (a parameter, a symbol of a
        shape, or a name given between launches) whose address or value is passed.
    launch
        Grid and thread extents, and a body without tile operators, `Parallel` and
        `Pipelined`: every buffer flat and every index an offset in elements.
    shared
        Byte offset of each flat shared buffer in the block's arena.
    shared_bytes
        Size of that arena.
    """

    name: str
    params: tuple[Buffer | Var, ...]
    arguments: tuple[Buffer | Var, ...]
    launch: Launch
    shared: Mapping[Buffer, int]
    shared_bytes: int

    @property
    def threads(self) -> int:
        """Threads of a block."""
        x, y, z = self.launch.threads
        return x * y * z


HostStep: TypeAlias = "Let | Check | DeviceFunction"


@dataclass(frozen=True, slots=True, eq=False)
class DeviceProgram:
    """A kernel as its host runs it: launches in order, with scalar work between them.

    Parameters
    ----------
    kernel
        The tile kernel it was lowered from, with parameters, outputs and C texts.
    machine
        What it was lowered for.
    steps
        What the host does, in order.
    workspaces
        Global buffers that the runtime allocates for each call, not zeroed.
    layouts
        Where tiles are stored, and who asked for that.
    compile_flags
        What the user adds to the toolchain's command.
    """

    kernel: Kernel
    machine: SimtMachine
    steps: tuple[HostStep, ...]
    layouts: Layouts
    workspaces: tuple[Buffer, ...] = ()
    compile_flags: tuple[str, ...] = ()
    facts: Mapping[str, object] = field(default_factory=dict)

    @property
    def functions(self) -> tuple[DeviceFunction, ...]:
        """The launches, in order."""
        return tuple(step for step in self.steps if isinstance(step, DeviceFunction))

    def __str__(self) -> str:
        return "\n".join(print_kernel(Kernel(f.name, f.params, f.launch)) for f in self.functions)
