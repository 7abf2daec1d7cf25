"""Reductions and scans of tiles along one dimension, and accumulators across iterations."""

from __future__ import annotations

import math
from enum import Enum
from typing import ClassVar

from tile_core.dtypes import DType
from tile_core.errors import DtypeMismatch, FrontendValueError, ScopeMismatch, ShapeMismatch
from tile_core.ir.arith import integer_bounds
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.expr import Expr, Extent
from tile_core.ir.stmt import Leaf
from tile_core.ops.operator import TileOperator
from tile_core.ops.pairing import describe
from tile_core.ops.work import OperatorWork
from tile_core.records import dataclass


class ReduceKind(Enum):
    """Which associative operation combines elements."""

    SUM = "sum"
    MAX = "max"
    MIN = "min"
    ABSSUM = "abssum"
    ABSMAX = "absmax"
    BITAND = "bitand"
    BITOR = "bitor"
    BITXOR = "bitxor"

    @property
    def is_bitwise(self) -> bool:
        """Whether elements must be integers or bools."""
        return self in (ReduceKind.BITAND, ReduceKind.BITOR, ReduceKind.BITXOR)

    @property
    def takes_magnitudes(self) -> bool:
        """Whether elements are replaced by their absolute values first."""
        return self in (ReduceKind.ABSSUM, ReduceKind.ABSMAX)

    def identity(self, dtype: DType) -> int | float:
        """Return the value that changes nothing when combined."""
        match self:
            case ReduceKind.MAX:
                return lowest(dtype)
            case ReduceKind.MIN:
                return highest(dtype)
            case ReduceKind.BITAND:
                return True if dtype.is_bool else -1 if dtype.kind.value == "int" else (
                    integer_bounds(dtype)[1]
                )  # fmt: skip
            case _:
                return 0


def lowest(dtype: DType) -> int | float:
    """Return the identity of max: minus infinity, or the smallest integer."""
    if dtype.is_bool:
        return False
    return -math.inf if dtype.is_float else integer_bounds(dtype)[0]


def highest(dtype: DType) -> int | float:
    """Return the identity of min: infinity, or the largest integer."""
    if dtype.is_bool:
        return True
    return math.inf if dtype.is_float else integer_bounds(dtype)[1]


@dataclass(frozen=True, slots=True, eq=False)
class Reduce(TileOperator):
    """Combine the elements of `src` along `dim` into `dst`.

    Parameters
    ----------
    dim : int
        The dimension of `src.extents` that disappears, counted from 0.
    dst
        The extents of `src` without `dim`, or with extent 1 there; rank 1 reduces to (1,).
    clear
        Overwrite `dst`; otherwise combine with its old contents, once.
    nan_propagate
        float16 and bfloat16 max and min give NaN if any element is NaN; by default NaN
        elements are ignored.

    Notes
    -----
    Elements are converted to the dtype of `dst` first and combined in it (16-bit floats:
    combined in float32, rounded once). The order is free.
    """

    mnemonic: ClassVar[str] = "reduce"
    kind: ReduceKind
    src: Region
    dst: Region
    dim: int
    clear: bool = True
    nan_propagate: bool = False

    def reads(self) -> tuple[Region, ...]:
        """Return the source, and the destination if it is combined with."""
        return (self.src,) if self.clear else (self.src, self.dst)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def work(self) -> OperatorWork:
        """Return an operation for each element, another one for magnitudes."""
        return OperatorWork(elements=self.src.extents, operations=1 + self.kind.takes_magnitudes)

    @property
    def dst_axes(self) -> tuple[int | None, ...]:
        """For each dimension of `dst` the source dimension that moves along it, or None."""
        kept: list[int | None] = [k for k in range(len(self.src.extents)) if k != self.dim]
        if len(self.dst.extents) == len(self.src.extents):
            kept.insert(self.dim, None)
        return tuple(kept) if kept else (None,)

    def verify(self) -> None:
        """Check `dim`, the destination's extents and the element type."""
        rank = len(self.src.extents)
        if not 0 <= self.dim < rank:
            raise FrontendValueError(
                f"T.reduce_{self.kind.value}: dim {self.dim} is outside {describe(self.src)}",
                span=self.span,
                hint=f"use a dim between {-rank} and {rank - 1}",
            )
        dropped = [e for k, e in enumerate(self.src.extents) if k != self.dim] or [1]
        kept: list[Extent] = list(self.src.extents)
        kept[self.dim] = 1
        if not any(_equal(self.dst.extents, want) for want in (dropped, kept)):
            raise ShapeMismatch(
                f"T.reduce_{self.kind.value} of {describe(self.src)} along dim {self.dim} "
                f"does not give {describe(self.dst)}",
                span=self.span,
                hint="drop the reduced dimension from the destination, or give it extent 1",
            )
        if self.kind.is_bitwise and any(r.buffer.dtype.is_float for r in (self.src, self.dst)):
            raise DtypeMismatch(
                f"T.reduce_{self.kind.value} works on integers and bools, got "
                f"{self.src.buffer.dtype} to {self.dst.buffer.dtype}",
                span=self.span,
                hint="reduce the bits: view the tile as integers with T.view(tile, dtype='int32')",
            )


def _equal(extents: tuple[Extent, ...], wanted: list[Extent]) -> bool:
    return len(extents) == len(wanted) and all(
        a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
        for a, b in zip(extents, wanted, strict=True)
    )


@dataclass(frozen=True, slots=True, eq=False)
class Scan(TileOperator):
    """Running sum or maximum along `dim`, inclusive; from the end if `reverse`.

    `src` and `dst` have equal extents and may be the same region.
    """

    mnemonic: ClassVar[str] = "scan"
    kind: ReduceKind
    src: Region
    dst: Region
    dim: int
    reverse: bool = False

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
                span=self.span,
                hint=f"use a dim between {-len(self.src.extents)} and {len(self.src.extents) - 1}",
            )
        if not _equal(self.dst.extents, list(self.src.extents)):
            raise ShapeMismatch(
                f"T.{name} of {describe(self.src)} does not give {describe(self.dst)}",
                span=self.span,
                hint="give source and destination the same shape",
            )


@dataclass(frozen=True, slots=True, eq=False)
class ReducerInit(TileOperator):
    """Open an epoch of `reducer` (scope `local.reducer`), with a start value or the identity."""

    mnemonic: ClassVar[str] = "reducer_init"
    reducer: Buffer
    kind: ReduceKind
    init: Expr | None = None

    def reads(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Return the accumulator."""
        return (whole(self.reducer),)

    def verify(self) -> None:
        """Check the scope and the element type."""
        if self.reducer.scope is not Scope.REDUCER:
            raise ScopeMismatch(
                f"{self.reducer.name!r} is not a reducer", span=self.span,
                hint="allocate it with T.alloc_reducer(shape, dtype, op)",
            )  # fmt: skip


@dataclass(frozen=True, slots=True, eq=False)
class ReducerUpdate(Leaf):
    """Combine `value` into ``reducer[indices]``, once per logical iteration. Element-wise."""

    mnemonic: ClassVar[str] = "reducer_update"
    reducer: Buffer
    kind: ReduceKind
    indices: tuple[Expr, ...]
    value: Expr

    def reads(self) -> tuple[Region, ...]:
        """Return the element updated."""
        return self.writes()

    def writes(self) -> tuple[Region, ...]:
        """Return the element updated."""
        ones = (1,) * len(self.indices)
        return (Region(self.reducer, self.indices, ones, is_element=True),)


@dataclass(frozen=True, slots=True, eq=False)
class ReducerFinalize(TileOperator):
    """Close the epoch: write the accumulated values to `dst`."""

    mnemonic: ClassVar[str] = "reducer_finalize"
    reducer: Buffer
    kind: ReduceKind
    dst: Region

    def reads(self) -> tuple[Region, ...]:
        """Return the accumulator."""
        return (whole(self.reducer),)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def work(self) -> OperatorWork:
        """Return an operation for each element."""
        return OperatorWork(elements=self.dst.extents, operations=1)

    def verify(self) -> None:
        """Check that the destination has the reducer's shape."""
        if not _equal(self.dst.extents, list(self.reducer.shape)):
            raise ShapeMismatch(
                f"T.finalize_reducer of {self.reducer.name}{list(self.reducer.shape)} does not "
                f"give {describe(self.dst)}",
                span=self.span,
                hint="give the destination the shape of the reducer",
            )
