"""How wide the boxes of a shared tile are, with all MMAs in view that read it.

Warpgroups that share columns among them each begin at the border of a box, and so does a part of
a tile: the tile's boxes must not be wider than that. Narrower ones divide wider ones, so all
others who read the tile can live with them: warps, the copy engine and threads with any, products
of warpgroups with all that are as narrow as they need them. Each MMA says how wide boxes may be for
it; a tile gets the narrowest of these, and they exchange chunks in 128 bytes rather than in 64, in
64 rather than in 32, and in 32 rather than not at all.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from itertools import product as all_of

from tile_core.errors import LayoutError
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.layout import Fragment, Layout, OperandTile, box_spans, boxed_operand, row_major
from tile_core.layout.operand_tile import UNIT
from tile_core.layout.swizzle import PERIOD
from tile_core.machine import SimtMachine
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferContext
from tile_core.passes.inference.inference_state import NOBODY
from tile_core.passes.layout_report import Reason
from tile_core.passes.register_estimate import threads_together
from tile_core.remarks import NotApplicable
from tile_core.simt.context import SimtContext
from tile_cuda.atoms_wgmma import THREADS, wgmma_for
from tile_cuda.rules.bulk_copy import span_for_parts
from tile_cuda.rules.wgmma_operands import LayoutOf, SharedOperand, shared_operand, width_of
from tile_cuda.rules.wgmma_plan import (
    grids,
    on_grid,
    refusal,
    registers_of,
    spreads_as,
    warpgroup_plan,
)

_WIDE = 128
"""Columns from which on an instruction multiplies for longer than it reads its first operand."""


def layouts_for_all(op: Gemm, machine: SimtMachine, ctx: InferContext) -> LayoutOf:
    """Return what is known of the operands of `op`, and what suits all MMAs if nothing is.

    Before   gemm K_s, Q_s^T, S;  gemm dS_s^T, K_s, dQ    (dQ: 64 x 64 of two warpgroups)
    After    K_s in boxes of 64 bytes, 32 columns: half of those of dQ
    """
    chosen: dict[Buffer, Layout] = {}
    for region in (op.a, op.b):
        tile = region.buffer
        if tile.scope is Scope.SHARED and _known(tile, ctx) is None and tile not in chosen:
            span = _narrowest(tile, machine, ctx)
            if span is not None:
                chosen[tile] = boxed_operand(tile.static_shape or (), width_of(tile), span)
    return lambda buffer: chosen.get(buffer) or _known(buffer, ctx)


def in_the_way(op: Gemm, why: str, machine: SimtMachine, ctx: SimtContext) -> str:
    """Return why warpgroups cannot share `op`, and who wants the layouts it is for, if it is.

    It is not if boxes as narrow as there are do not help either: tiles may be stored as they are
    because warpgroups cannot share the MMA.
    """
    tiles = [r.buffer for r in (op.a, op.b) if r.buffer.scope is Scope.SHARED]
    try:
        narrow = {t: boxed_operand(t.static_shape or (), width_of(t), UNIT) for t in tiles}
    except LayoutError:
        return why
    threads = threads_together(ctx.launch)
    try:
        warpgroup_plan(op, machine, ctx.threads, narrow.get, threads)
    except NotApplicable as otherwise:
        return otherwise.reason
    wanted = [(tile, ctx.places.layouts.reasons.get(tile.storage)) for tile in narrow]
    return why + "".join(
        f"; {tile.name!r} is {_requirement(reason)}"
        for tile, reason in wanted
        if reason is not None and reason != Reason(op.mnemonic, op.span)
    )


def _requirement(reason: Reason) -> str:
    if reason == NOBODY:
        return "seen in another shape"
    line = "" if reason.span is None else f" in line {reason.span.line}"
    return f"stored as {reason.who} demands{line}"


def _known(buffer: Buffer, ctx: InferContext) -> Layout | Fragment | None:
    """Return the layout of a tile; one whose rows others see otherwise stays as it is."""
    known = ctx.layout_of(buffer)
    if known is None and any(not _as_rows(v, buffer.storage) for v in ctx.views_of(buffer)):
        return row_major(buffer.static_shape or ())
    return known


def _as_rows(view: Buffer, tile: Buffer) -> bool:
    """Whether boxes for a view are boxes for its tile: rows may only be numbered otherwise.

    Then the pattern must begin with each group of rows, as the copy engine may copy one at a time.
    """
    (rows, *row), (others, *other) = _rows(view), _rows(tile)
    return row == other and (rows == others or rows % PERIOD == others % PERIOD == 0)


def _rows(tile: Buffer) -> tuple[int, int, bool]:
    """Return how many rows a tile has, and their bits: boxes are the same for all with these.

    Elements of less than a byte, of which a tile has one in each, are the same for their like.
    """
    *_, rows, columns = (1, 1, *(tile.static_shape or ()))
    return rows, columns * width_of(tile), tile.dtype.bits < 8


def _narrowest(tile: Buffer, machine: SimtMachine, ctx: InferContext) -> int | None:
    """Return how wide boxes of `tile` may be for all products of warpgroups that read it.

    Nor are they wider than parts of it that the copy engine copies.
    """
    wanted = [
        spans[tile.storage]
        for user in ctx.users_of(tile)
        if isinstance(user, Gemm) and ctx.rule_of(user).is_asynchronous
        for spans in [_widest(user, machine, ctx)]
        if tile.storage in spans
    ]
    if not wanted:
        return None
    copied = span_for_parts(tile, width_of(tile), ctx)
    return min(wanted) if copied is None else min(copied, *wanted)


def _widest(op: Gemm, machine: SimtMachine, ctx: InferContext) -> dict[Buffer, int]:
    """Return how wide boxes of storages may be for `op`; empty if warpgroups cannot share it.

    The grid of warpgroups by which the accumulators are spread, if they are. Instructions that read
    whole boxes, as those do that the manual shows. The grid that the policy prefers, unless another
    one has swizzles where this one has none; instructions that are wide enough; the widest boxes.
    """
    groups, rest = divmod(ctx.threads_of(op), THREADS)
    product = wgmma_for(machine, *(str(r.buffer.dtype) for r in (op.a, op.b, op.c)))
    if rest or product is None or refusal(op, machine) is not None:
        return {}
    registers = registers_of(machine, ctx.block_threads)
    best: tuple[tuple[int, ...], dict[Buffer, int]] | None = None
    for order, grid in enumerate(grids(op, groups)):
        for a, b in all_of(_first_operands(op, ctx), _operands(op.b, op.transpose_b, ctx)):
            try:
                plan = on_grid(op, product, grid, registers, a, b)
            except NotApplicable:
                continue
            if plan is None:
                continue
            read = [f for f in (a, b) if f is not None]
            spans = {f.region.buffer.storage: f.tile.span for f in read}
            if any(spans[f.region.buffer.storage] != f.tile.span for f in read):
                continue  # both operands are parts of one tile
            apart = not spreads_as(op, plan, ctx.layout_of(op.c.buffer))
            cut = not b.is_k_last and plan.tiling.atom.n % b.tile.span_elements != 0
            lost = sum(_is_lost(f.tile) for f in read)
            width = min(plan.tiling.atom.n, _WIDE)
            cost = (apart, cut, lost, order, -width, -sum(spans.values()))
            if best is None or cost < best[0]:
                best = (cost, spans)
    return best[1] if best else {}


def _first_operands(op: Gemm, ctx: InferContext) -> Iterator[SharedOperand | None]:
    if op.a.buffer.scope is Scope.SHARED:
        yield from _operands(op.a, not op.transpose_a, ctx)
    else:
        yield None


def _operands(region: Region, is_k_last: bool, ctx: InferContext) -> Iterator[SharedOperand]:
    """Yield the operand in all boxes that its tile can have; as it is, if that is known."""
    tile = region.buffer
    if _known(tile, ctx) is not None:
        with suppress(NotApplicable):
            yield shared_operand(region, is_k_last, lambda buffer: _known(buffer, ctx))
        return
    shape, bits = tile.static_shape or (), width_of(tile)
    try:
        spans = box_spans(shape, bits)
    except LayoutError:
        return
    rows, columns = shape[-2:]
    for span in spans:
        yield SharedOperand(region, OperandTile(rows, columns, bits, span), is_k_last)


def _is_lost(tile: OperandTile) -> bool:
    """Whether chunks are not exchanged although rows are long enough for it."""
    return tile.span == UNIT and tile.columns * tile.bits % (2 * UNIT * 8) == 0
