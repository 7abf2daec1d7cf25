"""Filling a tile with one value."""

from __future__ import annotations

from typing import ClassVar

from tile_core.ir.buffer import Region
from tile_core.ir.expr import Expr
from tile_core.ops.operator import TileOperator
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Fill(TileOperator):
    """Set every element of `dst` to `value`, which has the buffer's dtype.

    The region may be in any scope and its bounds may be known only at run time. Elements
    outside a global buffer are skipped.
    """

    mnemonic: ClassVar[str] = "fill"
    dst: Region
    value: Expr

    def reads(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Return the region filled."""
        return (self.dst,)
