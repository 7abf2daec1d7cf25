"""Layouts of matrix operands in shared memory that nobody has fixed yet."""

from __future__ import annotations

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.layout import Layout, shared_operand
from tile_core.ops.operator import InferContext
from tile_core.simt.packing import storage_dtype


def open_operand_layout(buffer: Buffer, ctx: InferContext) -> dict[Buffer, Layout]:
    """Return the swizzled layout of a shared tile, or nothing if it is not ours to choose.

    Tiles with a layout keep it. Tiles that are also seen in another shape or element type stay
    as they are: a view may not survive a swizzle.
    """
    shape = buffer.static_shape
    if (
        buffer.scope is not Scope.SHARED
        or shape is None
        or ctx.layout_of(buffer) is not None
        or ctx.is_viewed(buffer)
    ):
        return {}
    try:
        return {buffer: shared_operand(shape, storage_dtype(buffer.dtype, buffer.scope).bits)}
    except LayoutError:
        return {}
