"""Operators that CPU passes introduce; users never write them: products read from global memory."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tile_core.dtypes import DType
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Region, static_value, whole
from tile_core.ir.expr import Const, Expr
from tile_core.ops.operator import TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class BlockedGemm(TileOperator):
    """``dst = op(a) @ op(b)``, plus `start` if there is one, over the first `k` columns of `a`.

    Parameters
    ----------
    a : Region[M, K] of a global tensor, or [K, M] if `transpose_a`
    b : Region[K, N] of a global tensor, or [N, K] if `transpose_b`
        The K extent written there is one step's; `k` is how far to go. Elements outside
        the tensors count as zero.
    dst : Region[M, N]
        Where the result is stored, converted from the accumulator's dtype. Elements outside
        a global tensor are skipped; the valid rows are those of `a`, the columns those of `b`.
    a_rows, b_rows, dst_rows : int
        Which dimension of each region the matrix rows run along; columns run along the
        last one, every other dimension has extent 1.
    start : Buffer[M, N], or None
        The tile the products are added to.
    accumulator : DType
        What the products are added up in.
    k : Expr, int32
        Columns of `a` to multiply.
    """

    mnemonic: ClassVar[str] = "cpu.blocked_gemm"
    a: Region
    b: Region
    dst: Region
    accumulator: DType
    k: Expr
    a_rows: int
    b_rows: int
    dst_rows: int
    transpose_a: bool
    transpose_b: bool
    start: Buffer | None = None

    def reads(self) -> tuple[Region, ...]:
        """Return both operands and the start tile."""
        start = () if self.start is None else (whole(self.start),)
        return (self.a, self.b, *start)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    def work(self) -> OperatorWork:
        """Return the product over all of K, and the rows and columns that it reads."""
        a_axis = self.a_rows if self.transpose_a else self.a.buffer.rank - 1
        b_axis = self.b.buffer.rank - 1 if self.transpose_b else self.b_rows
        operands = (self._along_k(self.a, a_axis), self._along_k(self.b, b_axis))
        start = () if self.start is None else (whole(self.start),)
        return OperatorWork(
            product=(*self.mn, self.k),
            operands=self.a.buffer.dtype.base,
            touched=((*operands, *start), (self.dst,)),
        )

    def _along_k(self, region: Region, axis: int) -> Region:
        extents = tuple(self.k if d == axis else e for d, e in enumerate(region.extents))
        return replace(region, extents=extents)

    @property
    def mn(self) -> tuple[int, int]:
        """The block's extents M and N."""
        m = self.a.extents[-1 if self.transpose_a else self.a_rows]
        n = self.b.extents[self.b_rows if self.transpose_b else -1]
        rows, columns = static_value(m), static_value(n)
        if rows is None or columns is None:
            raise InternalError("a blocked product has static tiles", span=self.span)
        return rows, columns


@dataclass(frozen=True, slots=True, eq=False)
class StreamedGemm(TileOperator):
    """``c += op(a) @ op(b)`` as `Gemm`, with `b` in global memory.

    Parameters
    ----------
    b : Region[K, N] of a global tensor, or [N, K] if `transpose_b`
        Elements outside the tensor count as zero.
    b_rows : int
        Which dimension of `b` the matrix rows run along; columns run along the last one.
    """

    mnemonic: ClassVar[str] = "cpu.streamed_gemm"
    a: Region
    b: Region
    c: Region
    b_rows: int
    transpose_a: bool
    transpose_b: bool
    clear: Expr

    def reads(self) -> tuple[Region, ...]:
        """Return both operands, and the accumulator unless it is always cleared."""
        if isinstance(self.clear, Const) and self.clear.value:
            return (self.a, self.b)
        return (self.a, self.b, self.c)

    def writes(self) -> tuple[Region, ...]:
        """Return the accumulator."""
        return (self.c,)

    def work(self) -> OperatorWork:
        """Return the product of whole tiles."""
        m, n = self.c.extents[-2:]
        k = self.a.extents[-2 if self.transpose_a else -1]
        return OperatorWork(product=(m, n, k), operands=self.a.buffer.dtype.base)
