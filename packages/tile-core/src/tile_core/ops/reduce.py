"""Reductions of tiles along one dimension."""

from __future__ import annotations

import math
from enum import Enum
from typing import ClassVar

from tile_core.dtypes import DType
from tile_core.errors import DtypeMismatch, FrontendValueError, ShapeMismatch
from tile_core.ir.buffer import Region
from tile_core.ir.build_expr import binary, call, cast, const, integer_bounds, select
from tile_core.ir.expr import BinaryOp, Expr, Extent, Var
from tile_core.ir.stmt import Alloc, Stmt
from tile_core.ops.loop_builders import accumulator, count, load, nest, read, seq, store, write
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.ops.region_pairing import describe
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


_OPS = {
    ReduceKind.SUM: BinaryOp.ADD,
    ReduceKind.ABSSUM: BinaryOp.ADD,
    ReduceKind.MAX: BinaryOp.MAX,
    ReduceKind.ABSMAX: BinaryOp.MAX,
    ReduceKind.MIN: BinaryOp.MIN,
    ReduceKind.BITAND: BinaryOp.BITAND,
    ReduceKind.BITOR: BinaryOp.BITOR,
    ReduceKind.BITXOR: BinaryOp.BITXOR,
}


def combine(kind: ReduceKind, a: Expr, b: Expr, *, nan_propagate: bool = False) -> Expr:
    """Return `a` and `b`, of one dtype, combined by `kind`; magnitudes are taken by callers."""
    combined = binary(_OPS[kind], a, b)
    if _OPS[kind] not in (BinaryOp.MIN, BinaryOp.MAX):
        return cast(combined, a.dtype)
    if not (nan_propagate and a.dtype.is_float):
        return combined
    spoiled = binary(BinaryOp.OR, call("isnan", a), call("isnan", b))
    return select(spoiled, const(math.nan, a.dtype), combined)


def magnitude(value: Expr) -> Expr:
    """Return the absolute value; truth values are their own."""
    return value if value.dtype.is_bool else call("abs", value)


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
    spellings: ClassVar[tuple[str, ...]] = tuple(f"reduce_{kind.value}" for kind in ReduceKind)
    execution: ClassVar[Execution] = Execution.COLLECTIVE
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
                hint=f"use a dim between {-rank} and {rank - 1}",
            )
        dropped = [e for k, e in enumerate(self.src.extents) if k != self.dim] or [1]
        kept: list[Extent] = list(self.src.extents)
        kept[self.dim] = 1
        if not any(equal_extents(self.dst.extents, want) for want in (dropped, kept)):
            raise ShapeMismatch(
                f"T.reduce_{self.kind.value} of {describe(self.src)} along dim {self.dim} "
                f"does not give {describe(self.dst)}",
                hint="drop the reduced dimension from the destination, or give it extent 1",
            )
        if self.kind.is_bitwise and any(r.buffer.dtype.is_float for r in (self.src, self.dst)):
            raise DtypeMismatch(
                f"T.reduce_{self.kind.value} works on integers and bools, got "
                f"{self.src.buffer.dtype} to {self.dst.buffer.dtype}",
                hint="reduce the bits: view the tile as integers with T.view(tile, dtype='int32')",
            )

    def serial_form(self) -> Stmt:
        """Return loops over the kept dimensions with one accumulator each."""
        kept = [n for axis, n in enumerate(self.src.extents) if axis != self.dim]
        return nest(kept, lambda at: self.serial_form_at(at))

    def serial_form_at(self, at: tuple[Var, ...]) -> Stmt:
        """Return the reduction of the one row at `at`, with an accumulator of its own.

        `at` has one index per kept dimension; a reduction to a single element ignores it.
        """
        rank = len(self.src.extents)
        kept = [k for k in range(rank) if k != self.dim]
        dst_axes = tuple(None if d is None else kept.index(d) for d in self.dst_axes)
        r = Var("r", at[0].dtype if at else const(0).dtype)
        src_axes = tuple(len(kept) if d == self.dim else kept.index(d) for d in range(rank))
        total = accumulator("total", self.dst.buffer.dtype)
        value = cast(load(self.src, src_axes, (*at[: len(kept)], r)), self.dst.buffer.dtype)
        value = cast(value, total.dtype)
        if self.kind.takes_magnitudes:
            value = magnitude(value)
        result: Expr = read(total)
        if not self.clear:
            old = cast(load(self.dst, dst_axes, at), total.dtype)
            result = combine(self.kind, result, old, nan_propagate=self.nan_propagate)
        step = combine(self.kind, read(total), value, nan_propagate=self.nan_propagate)
        return seq(
            Alloc(total),
            write(total, const(self.kind.identity(self.dst.buffer.dtype), total.dtype)),
            count(r, self.src.extents[self.dim], write(total, step)),
            store(self.dst, dst_axes, at, result),
        )


def equal_extents(extents: tuple[Extent, ...], wanted: list[Extent]) -> bool:
    """Return whether extents are known to be those wanted."""
    return len(extents) == len(wanted) and all(
        a is b or (isinstance(a, int) and isinstance(b, int) and a == b)
        for a, b in zip(extents, wanted, strict=True)
    )
