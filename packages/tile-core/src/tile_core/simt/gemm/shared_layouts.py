"""Layouts of matrix operands in shared memory that nobody has fixed yet."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.layout import Layout, shared_operand
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.rule import InferContext
from tile_core.simt.subbyte_access import storage_dtype


def open_operand_layout(
    buffer: Buffer,
    ctx: InferContext,
    layout: Callable[[tuple[int, ...], int], Layout] = shared_operand,
) -> dict[Buffer, Layout]:
    """Return the layout of a shared tile, or nothing if it is not ours to choose.

    Tiles with a layout keep it. Tiles that are also seen in another shape or element type stay
    as they are: a view may not survive a swizzle. Tiles that the copy engine copies have a layout
    that it knows.

    Parameters
    ----------
    layout
        Where elements of so many bits lie in a tile of that shape.
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
    try:
        return {buffer: layout(shape, storage_dtype(buffer.dtype, buffer.scope).bits)}
    except LayoutError:
        return {}


def _is_copied_in_bulk(buffer: Buffer, ctx: InferContext) -> bool:
    """Whether the copy engine copies the tile, which writes no patterns but its own."""
    return any(isinstance(user, BulkCopy) for user in ctx.users_of(buffer))
