"""Copies from tensors into shared tiles that go on while the threads do something else."""

from __future__ import annotations

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.amd_calls import LDS_LOAD
from tile_core.ir.arith import const, truth
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.device_calls import PREFIX, device
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Load, Select
from tile_core.ir.node import Node, substitute, walk
from tile_core.ir.stmt import Evaluate, For, If, Seq, Stmt, Store
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.copy import Copy
from tile_core.ops.parallel_form import as_parallel
from tile_core.passes.pipelines.counted import COUNTED
from tile_core.simt.context import SimtContext
from tile_core.simt.lanes import part
from tile_core.simt.partition import partition
from tile_core.simt.rules.counted_copy import lower_counted
from tile_core.simt.strides import Lanes, is_steady
from tile_core.simt.vector_access import Vector, widest
from tile_core.simt.vectorise import vectorise

CHUNKS = (16, 8, 4)
"""Bytes that one asynchronous copy moves."""

FEATURE = "cp_async"

COPIES = (PREFIX + FEATURE, PREFIX + LDS_LOAD)
"""Calls that begin a copy; the last argument of each says whether there is anything to copy."""


def lower_async(op: Copy, ctx: SimtContext) -> Stmt:
    """Return the part of one thread in an asynchronous copy.

    Before   copy A[bx*64:+64, k*32:+32], T, is_async
    After    for r in unrolled(2):
                 cp_async<16>(T + …, A + …, bx*64 + … < M)

    Each copy moves 16, 8 or 4 bytes that are neighbours, and aligned to their size, on both
    sides; the predicate is false outside of the tensor, where zeros are written. Where that
    cannot be shown, elements are converted, or the safe value is not zero, the copy goes
    through registers, at once: whoever waits for it then finds it finished. Machines whose waves
    copy, and count their copies, do as `counted_copy` says.
    """
    if ctx.machine.has(COUNTED):
        made = lower_counted(op, ctx)
        if not isinstance(made, str):
            return made
        ctx.places.layouts.note(f"a copy is waited for, by way of registers: {made}", op.span)
    return partition(as_parallel(op), ctx.places.layouts.loop_of(op), ctx, async_lanes)


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
    match body.value:
        case Load() as load:
            pass
        case Select(cond=inside, then=Load() as load, otherwise=Const() as other) if _is_zero(
            other
        ):
            pass
        case _:
            return None
    if load.buffer.scope is not Scope.GLOBAL or load.buffer.dtype != body.buffer.dtype:
        return None
    return around, body, load, inside


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
    call = device(
        "cp_async",
        nbytes,
        AddressOf(store.buffer, (substitute(store.indices[0], here),), "w"),
        AddressOf(load.buffer, (substitute(load.indices[0], here),), "r"),
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


def lower_commit(op: CopyCommit, ctx: SimtContext) -> Stmt:
    """Return the end of a group of copies; nothing where copies are done when they return."""
    if not _has_groups(ctx):
        return Seq(())
    return Evaluate(device("cp_async_commit"), span=op.span)


def lower_wait(op: CopyWait, ctx: SimtContext) -> Stmt:
    """Return the wait until at most `pending` groups are in flight; barriers come apart.

    Where waves count copies, `tile_core.simt.count_copies` finds out how many those are.
    """
    if not _has_groups(ctx):
        return Seq(())
    return Evaluate(device("cp_async_wait", op.pending), span=op.span)


def _has_groups(ctx: SimtContext) -> bool:
    return ctx.machine.has(FEATURE) or ctx.machine.has(COUNTED)


def lower_at_once(op: Copy, ctx: SimtContext) -> Stmt:
    """Return a copy by asynchronous instructions that is finished when it returns.

    Raises
    ------
    UnsupportedOnTarget
        If the copy cannot be made of such instructions.
    """
    made = lower_async(op, ctx)
    if not any(isinstance(n, Call) and n.function in COPIES for n in walk(made)):
        raise UnsupportedOnTarget(
            f"this copy cannot use asynchronous instructions of {ctx.machine.name}",
            span=op.span,
            hint="they move 4, 8 or 16 aligned neighbours in bytes from a tensor to a shared "
            "tile, unchanged; leave prefer_instruction out",
        )
    return Seq((made, Evaluate(device("cp_async_commit")), Evaluate(device("cp_async_wait", 0))))
