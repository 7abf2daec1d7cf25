"""Copies of tiles as programs of one thread."""

from __future__ import annotations

from typing import Any

from tile_core.ir.gpu_intrinsics import PREFER_ASYNC_COPY, PREFER_COPY_ENGINE
from tile_core.ir.stmt import Stmt
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.copy import Copy
from tile_core.ops.rule import Rule
from tile_core.records import replace
from tile_core.simt.context import SimtContext
from tile_core.simt.elementwise import lower_element_wise
from tile_core.simt.rules.async_copy import lower_async, lower_at_once, lower_commit, lower_wait
from tile_core.simt.rules.convert_layout import lower_layout_conversion
from tile_core.simt.rules.staged_copy import (
    is_half_private,
    lower_by_memory,
    lower_half_private,
    needs_whole_bytes,
)
from tile_core.simt.rules.store_layouts import infer_copy
from tile_core.target import Target


def lower_copy(op: Copy, ctx: SimtContext) -> Stmt:
    """Return the part of one thread in a copy, in the way the program asks for.

    Accesses of a tensor that move 4, 8 or 16 bytes say to the cache the hint of the program.

    Raises
    ------
    UnsupportedOnTarget
        If it asks for asynchronous instructions that this copy cannot be made of.
    """
    ctx = replace(ctx, eviction=op.eviction_policy)
    if op.is_async:
        return lower_async(op, ctx)
    if op.prefer_instruction == PREFER_ASYNC_COPY:
        return lower_at_once(op, ctx)
    if ctx.places.layouts.is_exchanged(op):
        return lower_layout_conversion(op, ctx)
    if is_half_private(op):
        return lower_half_private(op, ctx)
    if needs_whole_bytes(op):
        return lower_by_memory(op, ctx)
    return lower_element_wise(op, ctx)


def _rejects(op: Copy, target: Target) -> str | None:
    if op.prefer_instruction == PREFER_COPY_ENGINE:
        return "the tensor memory accelerator copies between tensors and shared tiles only"
    return None


def copy_rules() -> tuple[Rule[Any], ...]:
    """Return the rules of copies; others may claim special ones with a higher priority."""
    return (
        Rule(
            name="simt.copy", op=Copy, lower=lower_copy, infer_layout=infer_copy, rejects=_rejects
        ),
        Rule(name="simt.copy_commit", op=CopyCommit, lower=lower_commit),
        Rule(name="simt.copy_wait", op=CopyWait, lower=lower_wait),
    )
