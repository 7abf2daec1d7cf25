"""Loops over neighbours in a tensor as copies that go on while the threads do something else."""

from __future__ import annotations

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, const, truth
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, BinaryOp, Const, Expr, Load, Select
from tile_core.ir.node import Node, contains, substitute
from tile_core.ir.stmt import Evaluate, For, If, Seq, Stmt, Store
from tile_core.simt.context import SimtContext
from tile_core.simt.lane_strides import Lanes, is_steady
from tile_core.simt.vector_access import Vector, widest
from tile_core.simt.vector_lanes import part
from tile_core.simt.vectorise import vectorise

CHUNKS = (16, 8, 4)
"""Bytes that one asynchronous copy moves."""

FEATURE = "async_copy"
"""The feature of machines that have such copies."""


def async_lanes(loop: For, ctx: SimtContext) -> Stmt:
    """Return a loop over neighbours as asynchronous copies, or else as `vectorise` does."""
    stop = loop.stop
    moved = _moved(loop.body)
    if moved is None or not isinstance(stop, Const) or not ctx.machine.has(FEATURE):
        return vectorise(loop, ctx)
    around, store, load, inside = moved
    lanes = Lanes(loop.var, int(stop.value), ctx.env.with_loop(loop.var, 0, int(stop.value)))
    for nbytes in CHUNKS:
        made = _chunks(nbytes, store, load, inside, around, lanes, ctx)
        if made is not None:
            return made
    return vectorise(loop, ctx)


def _moved(body: Stmt) -> tuple[list[Expr], Store, Load, Expr | None] | None:
    """Return conditions, store, load and predicate of a body that moves one element."""
    around: list[Expr] = []
    while True:
        match body:
            case Seq(body=(only,)):
                body = only
            case If(cond=cond, then=then, otherwise=None):
                around.append(cond)
                body = then
            case _:
                break
    if not isinstance(body, Store) or body.buffer.scope is not Scope.SHARED:
        return None
    inside: Expr | None = None
    value = body.value
    while isinstance(value, Select) and isinstance(value.otherwise, Const):
        if not _is_zero(value.otherwise):
            return None
        cond = truth(value.cond)
        inside = cond if inside is None else binary(BinaryOp.AND, inside, cond)
        value = value.then
    if not isinstance(value, Load) or value.buffer.scope is not Scope.GLOBAL:
        return None
    return (around, body, value, inside) if value.buffer.dtype == body.buffer.dtype else None


def _is_zero(value: Const) -> bool:
    return str(value.value) in ("0", "0.0", "False")  # not -0.0, which has a bit set


def _chunks(
    nbytes: int,
    store: Store,
    load: Load,
    inside: Expr | None,
    around: list[Expr],
    lanes: Lanes,
    ctx: SimtContext,
) -> Stmt | None:
    """Return copies of `nbytes` each, or None if some could not be one."""
    width, rest = divmod(nbytes * 8, load.buffer.dtype.bits)
    if rest or width == 0 or lanes.count % width:
        return None
    conditions = [*around, *([] if inside is None else [inside])]
    source = _vector(load.buffer, load.indices[0], width, lanes, ctx)
    target = _vector(store.buffer, store.indices[0], width, lanes, ctx)
    if source is None or target is None:
        return None
    piece = part(lanes, width, ctx)
    lane, first = piece.lane, piece.first
    if not all(is_steady(substitute(c, {lanes.var: lane}), piece.lanes) for c in conditions):
        return None
    predicate = const(True) if inside is None else truth(substitute(inside, {lanes.var: first}))
    here: dict[Node, Node] = {lanes.var: first}
    place = substitute(load.indices[0], here)
    if inside is not None and contains(place, Load):
        place = Select(predicate, place, const(0, place.dtype))  # a table may end where tiles do
    call = device(
        "async_copy",
        nbytes,
        *ctx.cache_hint(load.buffer),
        AddressOf(store.buffer, (substitute(store.indices[0], here),), "w"),
        AddressOf(load.buffer, (place,), "r"),
        predicate,
    )
    made: Stmt = Evaluate(call, span=store.span)
    for condition in reversed(around):
        made = If(substitute(condition, here), made, span=store.span)
    return piece.each(made)


def _vector(
    buffer: Buffer, index: Expr, width: int, lanes: Lanes, ctx: SimtContext
) -> Vector | bool | None:
    """Return whether `width` lanes are neighbours in memory, aligned; one lane always is."""
    if width == 1:
        return True
    return widest(buffer, index, (), lanes, ctx, allowed=(width,))
