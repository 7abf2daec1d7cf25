"""A tile product whose second operand is packed straight from global memory."""

from __future__ import annotations

from typing import ClassVar

from tile_core.ir.buffer import Region
from tile_core.ir.expr import Const, Expr
from tile_core.ops.operator import TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.records import dataclass


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
