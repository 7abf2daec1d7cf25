"""The context that can emit: ties expressions and statements together."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Expr, Extent
from tile_core.ir.stmt import Stmt
from tile_core.passes.guards.registry import located, open_registry
from tile_cpu.lowering import expressions, statements, storage
from tile_cpu.lowering.buffer_addresses import FlatBuffer
from tile_cpu.lowering.context import Context
from tile_cpu.tir.nodes import PrimExpr
from tile_cpu.tir.nodes import Stmt as TirStmt


class Emitter(Context):
    """A `Context` that emits."""

    def value(self, expr: Expr) -> PrimExpr:
        """Return the TIR value of `expr`, in its value type."""
        return expressions.value(self, expr)

    def unrounded(self, expr: Expr) -> PrimExpr:
        """Return the value of `expr` for a place that rounds it to its type anyway."""
        return expressions.unrounded(self, expr)

    def index(self, extent: Extent, dtype: str = "int32") -> PrimExpr:
        """Return an integer of tile IR as a TIR value of type `dtype`."""
        return expressions.index(self, extent, dtype)

    def place(self, buffer: Buffer) -> FlatBuffer:
        """Return where `buffer` lies; views are placed on first use."""
        return storage.place_of(self, buffer)

    def stmt(self, stmt: Stmt) -> TirStmt:
        """Return the TIR of `stmt`."""
        ledger = open_registry()
        if ledger is None:
            return statements.emit(self, stmt)
        with located(ledger, stmt):
            return statements.emit(self, stmt)
