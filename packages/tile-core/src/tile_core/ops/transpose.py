"""Transposing tiles."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import ShapeMismatch
from tile_core.ir.buffer import Region
from tile_core.ir.stmt import Stmt
from tile_core.ops.loop_builders import load, nest, store
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.region_pairing import describe
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Transpose(TileOperator):
    """``dst[..., j, i] = src[..., i, j]`` on the last two dimensions."""

    mnemonic: ClassVar[str] = "transpose"
    spellings: ClassVar[tuple[str, ...]] = ("transpose",)
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    src: Region
    dst: Region

    def reads(self) -> tuple[Region, ...]:
        """Return the source."""
        return (self.src,)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def verify(self) -> None:
        """Check that the last two extents are swapped and the others equal."""
        a, b = self.src.static_extents, self.dst.static_extents
        if a is None or b is None or len(a) < 2 or (*a[:-2], a[-1], a[-2]) != b:
            raise ShapeMismatch(
                f"cannot transpose {describe(self.src)} into {describe(self.dst)}",
                span=self.span,
                hint="swap the last two extents of the destination",
            )

    def serial_form(self) -> Stmt:
        """Return loops over the source that store with the last two indices swapped."""
        rank = len(self.src.extents)
        src_axes = tuple(range(rank))
        dst_axes = (*range(rank - 2), rank - 1, rank - 2)
        return nest(
            self.src.extents, lambda at: store(self.dst, dst_axes, at, load(self.src, src_axes, at))
        )
