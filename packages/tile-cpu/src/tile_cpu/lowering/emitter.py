"""The context that can emit: ties expressions and statements together."""

from __future__ import annotations

from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Stmt
from tile_core.passes.guards.registry import located, open_registry
from tile_cpu.lowering import expressions, statements
from tile_cpu.lowering.context import Context
from tile_cpu.tir.nodes import PrimExpr
from tile_cpu.tir.nodes import Stmt as TirStmt


class Emitter(Context):
    """A `Context` whose `value` and `stmt` do the work."""

    def value(self, expr: Expr) -> PrimExpr:
        """Return the TIR value of `expr`, in its value type."""
        return expressions.value(self, expr)

    def stmt(self, stmt: Stmt) -> TirStmt:
        """Return the TIR of `stmt`."""
        ledger = open_registry()
        if ledger is None:
            return statements.emit(self, stmt)
        with located(ledger, stmt):
            return statements.emit(self, stmt)
