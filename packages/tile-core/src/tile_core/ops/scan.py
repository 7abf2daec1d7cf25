"""Running totals of tiles along one dimension."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import FrontendValueError, ShapeMismatch
from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import as_expr, cast, const
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Alloc, Stmt
from tile_core.ops.loop_builders import accumulator, count, load, nest, read, seq, store, write
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.ops.reduce import ReduceKind, combine, equal_extents
from tile_core.ops.region_pairing import describe
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Scan(TileOperator):
    """Running sum or maximum along `dim`, inclusive; from the end if `reverse`.

    `src` and `dst` have equal extents and may be the same region. With `nan_propagate` a maximum
    is NaN from the first NaN on; by default NaN elements are ignored.
    """

    mnemonic: ClassVar[str] = "scan"
    spellings: ClassVar[tuple[str, ...]] = ("cumsum", "cummax")
    execution: ClassVar[Execution] = Execution.COLLECTIVE
    kind: ReduceKind
    src: Region
    dst: Region
    dim: int
    reverse: bool = False
    nan_propagate: bool = False

    def reads(self) -> tuple[Region, ...]:
        """Return the source."""
        return (self.src,)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def work(self) -> OperatorWork:
        """Return an operation for each element."""
        return OperatorWork(elements=self.src.extents, operations=1)

    def verify(self) -> None:
        """Check `dim` and the shapes."""
        name = {"sum": "cumsum", "max": "cummax"}[self.kind.value]
        if not 0 <= self.dim < len(self.src.extents):
            raise FrontendValueError(
                f"T.{name}: dim {self.dim} is outside {describe(self.src)}",
                hint=f"use a dim between {-len(self.src.extents)} and {len(self.src.extents) - 1}",
            )
        if not equal_extents(self.dst.extents, list(self.src.extents)):
            raise ShapeMismatch(
                f"T.{name} of {describe(self.src)} does not give {describe(self.dst)}",
                hint="give source and destination the same shape",
            )

    def serial_form(self) -> Stmt:
        """Return loops over the other dimensions around a running total."""
        rank = len(self.src.extents)
        kept = [k for k in range(rank) if k != self.dim]
        extent = self.src.extents[self.dim]

        def body(at: tuple[Var, ...]) -> Stmt:
            r = Var("r", at[0].dtype if at else const(0).dtype)
            where = as_expr(extent, r.dtype) - 1 - r if self.reverse else r
            axes = tuple(len(kept) if d == self.dim else kept.index(d) for d in range(rank))
            total = accumulator("total", self.dst.buffer.dtype)
            value = cast(load(self.src, axes, (*at, where)), self.dst.buffer.dtype)
            value = cast(value, total.dtype)
            step = combine(self.kind, read(total), value, nan_propagate=self.nan_propagate)
            return seq(
                Alloc(total),
                write(total, const(self.kind.identity(self.dst.buffer.dtype), total.dtype)),
                count(
                    r,
                    extent,
                    seq(write(total, step), store(self.dst, axes, (*at, where), read(total))),
                ),
            )

        return nest([self.src.extents[k] for k in kept], body)
