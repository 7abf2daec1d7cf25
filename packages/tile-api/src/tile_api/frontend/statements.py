"""The meaning of every statement and expression that the rewrite routes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_api.frontend.assignments import Assignments
from tile_api.frontend.builder import current
from tile_api.frontend.control import Control
from tile_api.frontend.operands import Operands
from tile_api.frontend.source import SpanTable
from tile_api.frontend.values import BufferValue


class Activation(Assignments, Operands, Control):
    """One call of a traced function: the object that rewritten code talks to.

    Parameters
    ----------
    builder
        The trace in progress.
    table
        The marked places of the function.
    kind
        "prim_func", "eager", "macro" or "inline".
    """

    def unreachable(self, keyword: str) -> None:
        """Warn about statements after a `break` or `continue`."""
        self.builder.warn(f"statements after {keyword!r} are never executed and are dropped")

    def declare(self, name: str, old: Any, spec: Callable[[], Any]) -> Any:
        """Return the tensor that a bare annotation in an eager body declares."""
        eager = self.builder.eager
        if eager is None:
            return old
        self.note_binding(name)
        buffer = eager.declare(self.builder, name, old, spec())
        return old if buffer is None else BufferValue(buffer)


def activation_factory(table: SpanTable, kind: str) -> Callable[[], Activation]:
    """Return the function that rewritten code calls first, to get its activation."""

    def enter() -> Activation:
        return Activation(current(), table, kind)

    return enter
