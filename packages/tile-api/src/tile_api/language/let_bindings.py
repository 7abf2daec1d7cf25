"""Names for values, in the form in which TVM's scripts write them: `T.let` and `T.Let`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_api.frontend.builder import Builder, Frame, current
from tile_api.frontend.values import as_value
from tile_core.errors import FrontendTypeError
from tile_core.ir import build_expr
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node, substitute
from tile_core.ir.stmt import Let as Named

__all__ = ["Let", "let"]


class _LetFrame(Frame):
    def __init__(self, name: Var, value: Expr) -> None:
        self.name, self.value = name, value

    def enter(self, builder: Builder, names: tuple[str, ...]) -> Var:
        """Take the value: from here on the name stands for it."""
        builder.emit(Named(self.name, self.value))
        return self.name


def let(v: Any, value: Any, body: Any = None) -> Any:
    """Name a value: from here to the end of the block, or in `body`, `v` stands for it.

    An assignment ``v = value`` does the same.

    Parameters
    ----------
    v
        A name that has no value yet, such as ``T.int32()`` in a kernel.
    value
        A scalar; it is converted to the dtype of `v`, and taken once.
    body
        None for what ``with`` enters, or a statement of its own; or an expression of `v`, which
        is returned.

    Raises
    ------
    FrontendTypeError
        If `v` is no such name.
    """
    if not isinstance(v, Var):
        raise FrontendTypeError(
            f"T.let names a value, and {v!r} is no name",
            hint="write `v = T.int32()` before it, or assign the value: v = value",
        )
    if body is not None:
        return Let(body, {v: value})
    return _LetFrame(v, build_expr.cast(as_value(value, v.dtype), v.dtype))


def Let(expr: Any, where: Mapping[Any, Any]) -> Expr:
    """Return an expression in which names stand for values; see `let`.

    Parameters
    ----------
    expr
        The expression.
    where
        Values by name; a later one may use the names before it.
    """
    builder, known = current(), dict[Node, Node]()
    for v, value in where.items():
        frame = let(v, substitute(as_value(value), known))
        known[v] = builder.let(v.name, frame.value)
    return substitute(as_value(expr), known)
