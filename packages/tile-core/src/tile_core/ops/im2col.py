"""Gathering image patches."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import DtypeMismatch, FrontendValueError, ShapeMismatch
from tile_core.ir.buffer import Buffer, Region, static_value, whole
from tile_core.ir.build_expr import all_of, as_expr, const, select
from tile_core.ir.expr import Expr, Extent, Load, Var
from tile_core.ir.stmt import Stmt
from tile_core.ops.loop_builders import nest, store
from tile_core.ops.operator import Execution, TileOperator
from tile_core.ops.operator_work import OperatorWork
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Im2col(TileOperator):
    """Gather image patches: one tile of the matrix whose product with a filter convolves.

    Parameters
    ----------
    image : Buffer[N, H, W, C], global
    columns : Region[..., BM, BK], same dtype
        Element (i, j) is row ``m = nhw_step * BM + i`` and column ``k = c_step * BK + j``.
    kernel, stride, dilation, pad
        The filter's extent and how it moves, equal in both directions.

    Notes
    -----
    With ``OH = (H + 2 pad - dilation (kernel - 1) - 1) // stride + 1`` and OW alike:
    ``n = m // (OH OW)``, ``h = (m % (OH OW)) // OW * stride + k // (kernel C) * dilation - pad``,
    ``w = m % OW * stride + k // C % kernel * dilation - pad``, ``c = k % C``; zero outside.
    """

    mnemonic: ClassVar[str] = "im2col"
    spellings: ClassVar[tuple[str, ...]] = ("im2col", "c2d_im2col")
    execution: ClassVar[Execution] = Execution.ELEMENT_WISE
    image: Buffer
    columns: Region
    nhw_step: Expr
    c_step: Expr
    kernel: int
    stride: int
    dilation: int
    pad: int

    def reads(self) -> tuple[Region, ...]:
        """Return the whole image."""
        return (whole(self.image),)

    def writes(self) -> tuple[Region, ...]:
        """Return the tile of columns."""
        return (self.columns,)

    def work(self) -> OperatorWork:
        """Return that as many elements are read as are written."""
        return OperatorWork(gathered=self.columns.extents)

    def verify(self) -> None:
        """Check rank, scope, dtype and the filter's geometry."""
        if self.image.rank != 4 or not self.image.scope.is_global:
            raise ShapeMismatch(
                f"T.im2col reads a global NHWC tensor of rank 4, got {self.image.name!r} of rank "
                f"{self.image.rank} in {self.image.scope.value}",
                hint="pass the image tensor itself, with dimensions N, H, W, C",
            )
        if self.image.dtype != self.columns.buffer.dtype:
            raise DtypeMismatch(
                f"T.im2col does not convert: {self.image.dtype} to {self.columns.buffer.dtype}",
                hint="give the column tile the image's element type",
            )
        if min(self.kernel, self.stride, self.dilation) < 1 or self.pad < 0:
            raise FrontendValueError(
                "T.im2col needs kernel, stride and dilation of at least 1 and pad of at least 0",
                hint="write T.im2col(image, col, step, c_step, kernel, stride, dilation, pad)",
            )

    def serial_form(self) -> Stmt:
        """Return loops over the tile of columns; patches beyond the image give zero."""
        n_images, height, width, channels = (as_expr(e) for e in self.image.shape)
        out_h, out_w = (_patch_count(self, self.image.shape[axis]) for axis in (1, 2))
        rows, columns = self.columns.extents[-2:]
        rank = len(self.columns.extents)

        def body(at: tuple[Var, ...]) -> Stmt:
            i, j = at[-2:]
            m = self.nhw_step * as_expr(rows) + i
            k = self.c_step * as_expr(columns) + j
            n = m // (out_h * out_w)
            tap_y, tap_x = k // (channels * self.kernel), k // channels % self.kernel
            y = m % (out_h * out_w) // out_w * self.stride + tap_y * self.dilation - self.pad
            x = m % out_w * self.stride + tap_x * self.dilation - self.pad
            zero = const(0, self.image.dtype)
            inside = all_of(
                [n < n_images, y >= 0, y < height, x >= 0, x < width, tap_y < self.kernel]
            )
            value = select(inside, Load(self.image, (n, y, x, k % channels)), zero)
            return store(self.columns, tuple(range(rank)), at, value)

        return nest(self.columns.extents, body)


def _patch_count(op: Im2col, size: Extent) -> Expr:
    """Return how many patches fit along an image dimension of `size` pixels."""
    reach = op.dilation * (op.kernel - 1) + 1
    fixed = static_value(size)
    if fixed is not None:
        return const((fixed + 2 * op.pad - reach) // op.stride + 1)
    return (as_expr(size) + (2 * op.pad - reach)) // op.stride + 1
