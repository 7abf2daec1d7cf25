"""Errors of launchers, with the place where what they are about was written."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tile_core.errors import Note, TileError
from tile_core.ir.buffer import Buffer
from tile_core.ir.stmt import Kernel

if TYPE_CHECKING:
    from tile_core.simt.program import DeviceProgram


def teller(program: DeviceProgram) -> Callable[[TileError], TileError]:
    """Return what gives errors of the launcher of `program` their place."""

    def told(error: TileError) -> TileError:
        match error.subject:
            case ("step", int() as number):
                from tile_core.simt.manifest import host_steps
                from tile_core.simt.program import DeviceFunction

                step = host_steps(program)[number]
                error.span = step.launch.span if isinstance(step, DeviceFunction) else step.span
            case ("parameter", str() as name):
                point_at_parameter(error, program.kernel, name)
        return error

    return told


def point_at_parameter(error: TileError, kernel: Kernel, name: str) -> None:
    """Add the note to an error that tells where a tensor is declared."""
    for param in kernel.params:
        if isinstance(param, Buffer) and param.name == name and param.span:
            error.notes = (Note("the parameter is declared here", param.span),)
