"""Copies between tiles: whole regions, image patches, transposes."""

from __future__ import annotations

from typing import ClassVar

from tile_core.errors import DtypeMismatch, FrontendValueError, ScopeMismatch, ShapeMismatch
from tile_core.ir.buffer import Buffer, Region, Scope, static_value, whole
from tile_core.ir.expr import Expr
from tile_core.ops.operator import TileOperator
from tile_core.ops.pairing import boxes, describe, pair
from tile_core.ops.work import OperatorWork
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class Copy(TileOperator):
    """Copy every element of `src` to the matching coordinate of `dst`, converting the dtype.

    Parameters
    ----------
    src, dst : Region, any dtype and scope
        Matched by `tile_core.ops.pairing.pair`.
    coalesced_width, disable_tma, eviction_policy, prefer_instruction, loop_layout
        Performance wishes; `prefer_instruction` must be honoured or refused.
    is_async
        The copy may still be in flight afterwards, until the program waits for it.

    Raises
    ------
    ShapeMismatch
        If the shapes do not match.

    Notes
    -----
    Elements outside a global source give its safe value; elements outside a global
    destination are skipped. Synchronous unless `is_async`: later operators see the data.
    """

    mnemonic: ClassVar[str] = "copy"
    src: Region
    dst: Region
    coalesced_width: int | None = None
    disable_tma: bool = False
    eviction_policy: str | None = None
    prefer_instruction: str | None = None
    loop_layout: object | None = None
    is_async: bool = False

    def reads(self) -> tuple[Region, ...]:
        """Return the source."""
        return (self.src,)

    def writes(self) -> tuple[Region, ...]:
        """Return the destination."""
        return (self.dst,)

    @property
    def moving_part(self) -> Region | None:
        """The part of a register tile that begins at a place known at run time only.

        None unless each thread has the other side for itself: all threads may then need elements
        of all others, which go through shared memory.
        """
        src, dst = boxes(self.src, self.dst)
        for held, other in ((src, dst), (dst, src)):
            is_private = held.buffer.scope.is_spread and other.buffer.scope.is_thread_private
            moves = any(static_value(start) is None for start in held.starts)
            if is_private and moves and held.static_extents is not None:
                return held
        return None

    def work(self) -> OperatorWork:
        """Return the boxes on both sides."""
        src, dst = boxes(self.src, self.dst)
        return OperatorWork(touched=((src,), (dst,)))

    def verify(self) -> None:
        """Check that the shapes match and that an asynchronous copy goes global to shared."""
        pair(self.src, self.dst, self.span)
        scopes = (self.src.buffer.scope, self.dst.buffer.scope)
        if self.is_async and scopes != (Scope.GLOBAL, Scope.SHARED):
            raise ScopeMismatch(
                f"an asynchronous copy goes from global to shared memory, not from "
                f"{scopes[0].value} to {scopes[1].value}",
                span=self.span,
                hint="use T.copy",
            )


@dataclass(frozen=True, slots=True, eq=False)
class Transpose(TileOperator):
    """``dst[..., j, i] = src[..., i, j]`` on the last two dimensions."""

    mnemonic: ClassVar[str] = "transpose"
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
                span=self.span,
                hint="pass the image tensor itself, with dimensions N, H, W, C",
            )
        if self.image.dtype != self.columns.buffer.dtype:
            raise DtypeMismatch(
                f"T.im2col does not convert: {self.image.dtype} to {self.columns.buffer.dtype}",
                span=self.span,
                hint="give the column tile the image's element type",
            )
        if min(self.kernel, self.stride, self.dilation) < 1 or self.pad < 0:
            raise FrontendValueError(
                "T.im2col needs kernel, stride and dilation of at least 1 and pad of at least 0",
                span=self.span,
                hint="write T.im2col(image, col, step, c_step, kernel, stride, dilation, pad)",
            )
