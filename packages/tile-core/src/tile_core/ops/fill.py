"""Filling a tile with one value."""

from __future__ import annotations

from typing import ClassVar

from tile_core.ir.buffer import Region
from tile_core.ir.expr import Expr
from tile_core.ir.stmt import Stmt
from tile_core.ops.loop_builders import nest, store
from tile_core.ops.operator import Execution, TileOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Fill(TileOperator):
    """Set every element of `dst` to `value`, which has the buffer's dtype.

    The region may be in any scope and its bounds may be known only at run time. Elements
    outside a global buffer are skipped.
    """

    mnemonic: ClassVar[str] = "fill"
    spellings: ClassVar[tuple[str, ...]] = ("fill", "clear")
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    dst: Region
    value: Expr

    def reads(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Return the region filled."""
        return (self.dst,)

    def serial_form(self) -> Stmt:
        """Return loops that store the value to each element of the region."""
        axes = tuple(range(len(self.dst.extents)))
        return nest(self.dst.extents, lambda at: store(self.dst, axes, at, self.value))
