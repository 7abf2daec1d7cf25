"""Layouts of shared tiles that results of products pass through on their way to tensors."""

from __future__ import annotations

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.layout import Fragment
from tile_core.layout.swizzle import staged_rows
from tile_core.ops.copy import Copy
from tile_core.ops.rule import InferContext, InferLevel, LayoutMap
from tile_core.simt.subbyte_access import storage_dtype

CHUNK_BITS = 128
"""What one thread reads and stores at once."""


def infer_copy(op: Copy, ctx: InferContext, level: InferLevel) -> LayoutMap:
    """Return a layout without bank conflicts for a tile that a matrix fragment is copied to.

    Only where nobody else wants one: copies alone touch the tile, and no view of it exists.
    Fragments whose threads hold 16 bytes of a row side by side need nothing but rows in order,
    unless the next thread has those of the next row.
    """
    tile = op.dst.buffer
    if level is not InferLevel.FREE or tile.scope is not Scope.SHARED:
        return {}
    held = ctx.layout_of(op.src.buffer) if op.src.buffer.scope is Scope.FRAGMENT else None
    if not isinstance(held, Fragment) or not _is_open(tile, ctx) or tile.static_shape is None:
        return {}
    bits = storage_dtype(tile.dtype, tile.scope).bits
    if _holds_chunks(held, CHUNK_BITS // bits) and not goes_down(held):
        return {}
    try:
        return {tile: staged_rows(tile.static_shape, bits)}
    except LayoutError:
        return {}


def _is_open(tile: Buffer, ctx: InferContext) -> bool:
    return (
        ctx.layout_of(tile) is None
        and not ctx.is_viewed(tile)
        and all(isinstance(user, Copy) for user in ctx.users_of(tile))
    )


def _holds_chunks(held: Fragment, count: int) -> bool:
    """Whether the thread that holds the first element has its row's first `count` of them."""
    if held.rank < 2 or held.shape[-1] < count:
        return True
    first = (0,) * (held.rank - 1)
    return held.owners(*first, 0) == held.owners(*first, count - 1)


def goes_down(held: Fragment) -> bool:
    """Whether the thread after that of the first element has the one below it.

    Examples
    --------
    >>> goes_down(Fragment((8, 4), lambda i, j: (i, j)))
    True
    """
    if held.rank != 2 or held.shape[0] < 2:
        return False
    return held.owners(1, 0)[0] == held.owners(0, 0)[0] + 1
