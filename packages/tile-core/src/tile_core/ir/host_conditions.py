"""What every run of a kernel states about its arguments: conditions, and grids to fill."""

from __future__ import annotations

from tile_core.ir.expr import Expr
from tile_core.ir.node import Node
from tile_core.ir.stmt import Check, Kernel, Launch, Seq


def host_conditions(kernel: Kernel) -> list[Check | Launch]:
    """Return the launches, and the checks that every run reaches unconditionally."""
    found: list[Check | Launch] = []

    def visit(stmt: Node) -> None:
        if isinstance(stmt, Seq):
            for item in stmt.body:
                visit(item)
        elif isinstance(stmt, Launch):
            found.append(stmt)
            visit(stmt.body)
        elif isinstance(stmt, Check) and isinstance(stmt.cond, Expr):
            found.append(stmt)

    visit(kernel.body)
    return found
