"""Where elements lie physically: flat buffers, and the offset of an element in them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import field
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError, Note, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.build_expr import as_expr, cast
from tile_core.ir.expr import Expr, Extent
from tile_core.ir.node import nodes_of
from tile_core.ir.stmt import Kernel
from tile_core.layout import Fragment, Layout
from tile_core.layout.mixed_radix import row_major_position
from tile_core.records import dataclass, replace
from tile_core.simt.subbyte_access import is_narrow, is_packed, storage_dtype

INT32_ELEMENTS = 2**31
"""Offsets reach further only in tensors of at least so many elements."""


@dataclass(slots=True)
class BufferAddresses:
    """The flat buffer that stands for each storage.

    Tensors keep their strides, tiles in shared memory follow their layout, and fragments
    become the registers of one thread.

    `layouts` has the layout of each tile (see `tile_core.passes.infer_layouts.Layouts`),
    `flats` the flat buffers made so far, by the buffer (or view) they stand for.
    """

    layouts: Any
    flats: dict[Buffer, Buffer] = field(default_factory=dict)

    def flat(self, buffer: Buffer) -> Buffer:
        """Return the flat buffer of `buffer`: rank 1, extents in its own elements.

        A view in another element type gets a flat buffer of its own whose `origin` is that of
        its storage; views of the same element type share it.
        """
        found = self.flats.get(buffer)
        if found is None:
            found = self.flats[buffer] = self._made(buffer)
        return found

    def _made(self, buffer: Buffer) -> Buffer:
        origin = buffer.origin
        dtype = storage_dtype(buffer.dtype, buffer.scope)
        if isinstance(origin, Buffer):
            below = self.flat(buffer.storage)
            if below.dtype == dtype:
                return below
            room = (static_value(below.shape[0]) or 0) * below.dtype.bits // dtype.bits
            name = f"{below.name}_{dtype}"
            return replace(below, name=name, shape=(room,), dtype=dtype, origin=below)
        if buffer.scope.is_thread_private and buffer.rank == 1 and buffer.dtype == dtype:
            return buffer  # such as registers that lowering itself made
        scope = Scope.LOCAL if buffer.scope is Scope.FRAGMENT else buffer.scope
        return Buffer(
            buffer.name, (self._room(buffer),), dtype, scope,
            origin=origin, workspace=buffer.workspace, span=buffer.span,
        )  # fmt: skip

    def _room(self, buffer: Buffer) -> int:
        """Return how many elements the storage has; tensors of dynamic extents count as 0."""
        match buffer.scope:
            case Scope.GLOBAL | Scope.SIGNALS:
                shape = buffer.static_shape
                count = 0 if shape is None or buffer.strides else math.prod(shape)
                return -(-count // 2) if is_packed(buffer) else count
            case Scope.SHARED:
                return int(self.layout(buffer).cosize)
            case Scope.FRAGMENT | Scope.REDUCER:
                return int(self.fragment(buffer).slots)
        return math.prod(buffer.static_shape or (1,))

    def layout(self, buffer: Buffer) -> Layout:
        """Return the layout of a shared tile, in the shape of `buffer`."""
        found = self.layouts.layout_of(buffer)
        if not isinstance(found, Layout):
            raise InternalError(f"shared tile {buffer.name!r} has no layout", span=buffer.span)
        return found

    def fragment(self, buffer: Buffer) -> Fragment:
        """Return which thread holds each element of `buffer`, and in which register."""
        found = self.layouts.layout_of(buffer)
        if not isinstance(found, Fragment):
            raise InternalError(f"tile {buffer.name!r} has no fragment", span=buffer.span)
        return found

    def offset(self, buffer: Buffer, indices: Sequence[Extent]) -> Expr:
        """Return the offset of an element in the flat buffer, in elements; not guarded."""
        coords = tuple(as_expr(i) for i in indices)
        match buffer.scope:
            case Scope.GLOBAL | Scope.SIGNALS:
                return _strided(buffer, coords)
            case Scope.SHARED:
                return as_expr(self.layout(buffer).address(*coords))
            case Scope.FRAGMENT | Scope.REDUCER:
                return as_expr(self.fragment(buffer).slot_at(*coords))
            case Scope.VAR:
                return as_expr(0)
        return as_expr(row_major_position(coords, buffer.shape))


def check_views(kernel: Kernel) -> None:
    """Refuse to see as whole bytes what has a byte for each of its narrow elements."""
    for view in nodes_of(kernel.body, Buffer):
        below = view.storage
        if is_narrow(below.dtype) and not is_packed(below) and view.dtype != below.dtype:
            raise UnsupportedOnTarget(
                f"the {below.dtype} elements of {below.name!r} cannot be seen as {view.dtype}: "
                "a tile gives each of them a byte of its own",
                span=view.span,
                notes=(Note(f"{below.name} is declared here", below.span),),
                hint=f"allocate the tile as {view.dtype} and view it as {below.dtype}",
            )


def _strided(buffer: Buffer, coords: Sequence[Expr]) -> Expr:
    """Return the offset of an element of a tensor, in 64 bits where 32 might not reach."""
    strides = buffer.strides or row_major_strides(buffer.shape)
    wide = _may_be_large(buffer)
    total: Expr = as_expr(0)
    for x, stride in zip(coords, strides, strict=True):
        far = wide and static_value(stride) != 1
        term = cast(x, dtype_of("int64")) if far else x
        total = total + term * stride
    return total


def row_major_strides(shape: Sequence[Extent]) -> tuple[Extent, ...]:
    """Return the strides of a contiguous tensor, in elements."""
    strides: list[Extent] = [1]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    return tuple(strides[: len(shape)])


def _may_be_large(buffer: Buffer) -> bool:
    """Whether an offset in the tensor may not fit 32 bits."""
    shape, strides = buffer.static_shape, buffer.strides
    if shape is None:
        return True
    steps = [static_value(s) for s in strides or row_major_strides(shape)]
    if any(s is None for s in steps):
        return True
    reach = sum((n - 1) * abs(s or 0) for n, s in zip(shape, steps, strict=True))
    return reach + 1 >= INT32_ELEMENTS
