"""Shared tiles that the copy engine copies in parts: which layouts suit all of its copies."""

from __future__ import annotations

from functools import partial

from tile_core.ir.buffer import Buffer
from tile_core.layout import box_spans, boxed_operand
from tile_core.layout.copy_engine_boxes import Part, suits
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.rule import InferContext
from tile_core.passes.warp_specialisation.bulk_copies import is_part, starts_of


def parts_of(tile: Buffer, ctx: InferContext) -> tuple[Part, ...]:
    """Return the parts of `tile` that are bulk copies; nothing if rows and columns are whole."""
    parts = {
        (extents, starts_of(user.tile, partial(ctx.multiple_at, user)))
        for user in ctx.users_of(tile)
        if isinstance(user, BulkCopy) and not user.is_1d and user.tile.buffer is tile
        if (extents := user.tile.static_extents) is not None
    }
    is_cut = any(is_part(tile, extents) for extents, _ in parts)
    return tuple(sorted(parts, key=repr)) if is_cut else ()


def span_for_parts(tile: Buffer, bits: int, ctx: InferContext) -> int | None:
    """Return how wide boxes of `tile` may be for its copies in part; None if that is no matter.

    Products read boxes of any width: what they prefer is the widest.
    """
    parts = parts_of(tile, ctx)
    shape = tile.static_shape
    if not parts or shape is None:
        return None
    spans = (s for s in box_spans(shape, bits) if suits(boxed_operand(shape, bits, s), bits, parts))
    return next(spans, None)
