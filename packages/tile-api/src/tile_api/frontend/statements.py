"""The meaning of every statement and expression that the rewrite routes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tile_api.frontend.assignments import Assignments
from tile_api.frontend.builder import current
from tile_api.frontend.control import Control
from tile_api.frontend.operands import Operands
from tile_api.frontend.source import SpanTable
from tile_api.frontend.values import BufferValue, VarHandle, as_value
from tile_api.frontend.vector_buffers import parameter_value
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr
from tile_core.ops.control import Breakpoint


class Activation(Assignments, Operands, Control):
    """One call of a traced function: the object that rewritten code talks to."""

    def unreachable(self, keyword: str) -> None:
        """Warn about statements after a `break` or `continue`."""
        self.builder.warn(f"statements after {keyword!r} are never executed and are dropped")

    def stop_here(self, number: int, names: dict[str, Any]) -> None:
        """Emit a breakpoint that shows the tensors and scalars among the local `names`."""
        self.at(number)
        seen: dict[str, Expr | Buffer] = {}
        for name, value in names.items():
            is_variable = isinstance(value, VarHandle) and value.buffer.scope is Scope.VAR
            if isinstance(value, BufferValue) or is_variable:
                seen[name] = value.buffer
            elif isinstance(value, (bool, int, float, Expr, VarHandle)):
                seen[name] = as_value(value)
        self.builder.emit(Breakpoint(tuple(seen), tuple(seen.values()), span=self.builder.span))

    def declare(self, name: str, old: Any, spec: Callable[[], Any]) -> Any:
        """Return the tensor that a bare annotation in an eager body declares."""
        eager = self.builder.eager
        if eager is None:
            return old
        self.note_binding(name)
        declared = spec()
        buffer = eager.declare(self.builder, name, old, declared)
        return old if buffer is None else parameter_value(buffer, declared.lanes)


def activation_factory(table: SpanTable, kind: str) -> Callable[[], Activation]:
    """Return the function that rewritten code calls first, to get its activation."""
    return lambda: Activation(current(), table, kind)
