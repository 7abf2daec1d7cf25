"""Errors of launchers, told as errors of the compiler: with the place where it was written."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from tile_core import errors
from tile_core.errors import InternalError, Note, TileError
from tile_core.ir.buffer import Buffer

if TYPE_CHECKING:
    from tile_core.simt.program import DeviceProgram


@cache
def _classes() -> dict[str, type[TileError]]:
    found = vars(errors).values()
    kinds = [c for c in found if inspect.isclass(c) and issubclass(c, TileError)]
    return {c.code: c for c in kinds if "code" in vars(c)}


def as_tile_error(fault: Any, hint: str | None = None) -> TileError:
    """Return an error of `tile_launch` as the error of the same code.

    Parameters
    ----------
    fault
        Has a ``code``, a ``message`` and a ``hint``.
    hint
        What to advise instead.
    """
    kind = _classes().get(fault.code, InternalError)
    return kind(fault.message, hint=hint or fault.hint)


def teller(program: DeviceProgram) -> Callable[[Any], TileError]:
    """Return what turns errors of the launcher of `program` into errors that show its lines."""

    def told(fault: Any) -> TileError:
        error = as_tile_error(fault)
        match fault.subject:
            case ("step", int() as number):
                from tile_core.simt.manifest import host_steps
                from tile_core.simt.program import DeviceFunction

                step = host_steps(program)[number]
                error.span = step.launch.span if isinstance(step, DeviceFunction) else step.span
            case ("parameter", str() as name):
                for param in program.kernel.params:
                    if isinstance(param, Buffer) and param.name == name and param.span:
                        error.notes = (Note("the parameter is declared here", param.span),)
        return error

    return told
