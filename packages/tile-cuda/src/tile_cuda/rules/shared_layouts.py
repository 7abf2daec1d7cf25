"""Layouts of matrix operands in shared memory that nobody has fixed yet."""

from __future__ import annotations

from typing import Any

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.layout import Layout, shared_operand
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.operator import InferContext
from tile_core.simt.packing import storage_dtype

_LINE_BITS = 1024
"""All banks of shared memory: rows this far apart collide."""


def open_operand_layout(
    buffer: Buffer, ctx: InferContext, *, by_elements: bool = False
) -> dict[Buffer, Layout]:
    """Return the swizzled layout of a shared tile, or nothing if it is not ours to choose.

    Tiles with a layout keep it. Tiles that are also seen in another shape or element type stay
    as they are: a view may not survive a swizzle. Tiles that an engine copies have a layout
    that it knows.

    Parameters
    ----------
    by_elements
        Warps read elements of four rows at a time, not 8 rows of 16 bytes.
    """
    shape = buffer.static_shape
    if (
        buffer.scope is not Scope.SHARED
        or shape is None
        or ctx.layout_of(buffer) is not None
        or ctx.is_viewed(buffer)
        or _is_copied_in_bulk(buffer, ctx)
    ):
        return {}
    bits = storage_dtype(buffer.dtype, buffer.scope).bits
    try:
        own = read_by_elements(shape, bits) if by_elements else None
        return {buffer: own or shared_operand(shape, bits)}
    except LayoutError:
        return {}


def _is_copied_in_bulk(buffer: Buffer, ctx: InferContext) -> bool:
    """Whether an engine copies the tile, which writes no patterns but its own."""
    return any(isinstance(user, BulkCopy) for user in ctx.users_of(buffer))


def read_by_elements(shape: tuple[int, ...], bits: int) -> Layout | None:
    """Return the layout by rows for operands whose elements are loaded one by one.

    Four threads are neighbours along one dimension, eight along the other. With 32-bit and
    64-bit elements they read 32 bytes of each of four rows that follow each other (half a warp
    at a time if elements are 64 bits wide); with bytes, 8 bytes of every fourth row. Parts of
    a row, of 32 or 16 bytes, change places so that these lie in different banks.

    Parameters
    ----------
    shape
        Tile of rows and columns; leading dimensions stay outermost.
    bits
        8, 32 or 64.

    Returns
    -------
    None if rows are too short, or too few.
    """
    if len(shape) < 2 or bits not in (8, 32, 64) or shape[-2] % 4:
        return None
    part = (128 if bits == 8 else 256) // bits
    count = _LINE_BITS // bits // part
    while shape[-1] % (count * part):
        count //= 2
    if count == 1:
        return None
    every = 4 if bits == 8 else 4 // count

    def place(*coords: Any) -> Any:
        *lead, i, j = coords
        turned = j // part % count ^ i // every % count
        span = count * part
        return (*lead, i, j // span * span + turned * part + j % part)

    return Layout(shape, place, shape)
