"""Which variables an expression mentions, and keys equal for expressions written alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tile_core.ir.expr import Binary, Cast, Const, Expr, Extent, Load, Select, Unary, Var
from tile_core.ir.node import analysis, nodes_of, walk_once


def free_variables(root: Extent) -> Mapping[Var, None]:
    """Return the variables `root` mentions, as an ordered set."""
    return {} if isinstance(root, int) else _variables(root)


@analysis
def _variables(root: Expr) -> Mapping[Var, None]:
    return {node: None for node in walk_once(root) if isinstance(node, Var)}


def is_host_evaluable(root: Expr, known: Mapping[Var, Any]) -> bool:
    """Tell whether `evaluate` can give `root` a value from `known` alone."""
    allowed = (Const, Binary, Unary, Select, Cast)
    return all(
        node in known if isinstance(node, Var) else isinstance(node, allowed)
        for node in nodes_of(root, Expr)
    )


def structure(expr: Expr, *, together: bool = False) -> object:
    """Return a hashable key equal for expressions written the same way on the same things.

    Loads are told apart by identity, as the element may change between two of them, unless
    the expressions are evaluated `together`.
    """
    match expr:
        case Const(value=value, dtype=dtype):
            return ("const", value, str(dtype))
        case Unary(op=op, a=a):
            return (op, structure(a, together=together))
        case Binary(op=op, a=a, b=b):
            return (op, structure(a, together=together), structure(b, together=together))
        case Cast(dtype=dtype, value=value):
            return ("cast", str(dtype), structure(value, together=together))
        case Load(buffer=buffer, indices=indices) if together:
            return ("load", buffer, *(structure(i, together=True) for i in indices))
    return Same(expr)


class Same:
    """A key that is equal for one expression object only; expressions' own `==` builds IR."""

    __slots__ = ("expr",)

    def __init__(self, expr: Expr) -> None:
        self.expr = expr

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and other.expr is self.expr

    def __hash__(self) -> int:
        return hash(self.expr)
