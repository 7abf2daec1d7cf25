"""What variables are while a program is acted out for one block."""

from __future__ import annotations

from dataclasses import dataclass, field

from tile_core.arith.evaluate import evaluate
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Expr, Extent, Load, Var
from tile_core.ir.node import Node, rewrite, walk

USUAL = 512
"""What symbolic sizes are taken to be, or the next number that their contracts allow."""


@dataclass(slots=True)
class Values:
    """Integers that are known, of variables and of mutable scalars (``local.var``)."""

    of: dict[Var, int] = field(default_factory=dict)
    kept: dict[Buffer, int] = field(default_factory=dict)

    def copy(self) -> Values:
        """Return the same values, to be changed apart."""
        return Values(dict(self.of), dict(self.kept))

    def number(self, expr: Extent) -> int | None:
        """Return the value of `expr`, None if it depends on data or on what nobody knows."""
        if isinstance(expr, int):
            return expr
        known: Expr = expr
        if any(isinstance(node, Load) for node in walk(expr)):
            known = rewrite(expr, self._read)
        try:
            return int(evaluate(known, self.of))
        except (InternalError, ArithmeticError, KeyError, ValueError):
            return None

    def store(self, buffer: Buffer, value: Expr) -> None:
        """Change a mutable scalar; it has no value if `value` has none."""
        if buffer.scope is not Scope.VAR:
            return
        number = self.number(value)
        if number is None:
            self.kept.pop(buffer, None)
        else:
            self.kept[buffer] = number

    def _read(self, node: Node) -> Node:
        if isinstance(node, Load) and node.buffer in self.kept:
            return Const(self.kept[node.buffer], node.dtype)
        return node


def usual_size(var: Var) -> int:
    """Return a size that the contract of a symbolic dimension allows."""
    promised = var.contract
    if promised is None:
        return USUAL
    size = max(-(-USUAL // promised.multiple_of) * promised.multiple_of, promised.smallest)
    return size if promised.largest is None else min(size, promised.largest)
