"""Copies into shared tiles that the program wants the copy engine to make, where they stand."""

from __future__ import annotations

from tile_core.arith.constraints import ConstraintSet
from tile_core.dtypes import dtype_of
from tile_core.errors import Note, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr, Load
from tile_core.ir.gpu_intrinsics import COPY_ENGINE_WORDS
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Alloc, AnnotateSafeValue, Kernel, Launch, Seq, Stmt, Store
from tile_core.ir.visitor import map_launches
from tile_core.machine import SimtMachine
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.control import Barrier
from tile_core.ops.copy import Copy
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.passes.warp_specialisation.bulk_copies import BulkCopyKind, bulk_way
from tile_core.passes.warp_specialisation.contiguous_copies import facts_in_loops, is_computed
from tile_core.records import replace
from tile_core.remarks import NotApplicable


def lower_bulk_loads(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with the copies that ask for it made in bulk.

    Before   copy A[by*128, 0], A_s  (prefer_instruction="bulk")
    After    barrier;  barrier_arrive A_s_here, bytes;  bulk_copy A[by*128, 0], A_s, A_s_here
             barrier_wait A_s_here, phase;  phase = phase ^ 1

    Every thread waits until the tile is there. Copies that run ahead of their use, in loops with
    producers, have been taken out before.

    Raises
    ------
    UnsupportedOnTarget
        If the machine has no copy engine, or it cannot make such a copy; the reason is named.
    """
    return map_launches(kernel, lambda launch: _with_loads(launch, kernel, machine))


def _with_loads(launch: Launch, kernel: Kernel, machine: SimtMachine) -> Launch:
    requested = [n for n in nodes_of(launch.body, Copy) if _asks(n)]
    by_hand = [
        n for n in nodes_of(launch.body, BulkCopy) if is_computed(n.tensor.buffer) and not n.is_1d
    ]
    if not (requested or by_hand):
        return launch
    safe_values: dict[Buffer, Expr] = {
        n.buffer: n.value for n in nodes_of(launch.body, AnnotateSafeValue)
    }
    env = facts_in_loops(kernel, launch)
    top: list[Stmt] = []
    done: dict[Node, Node] = {op: _as_contiguous(op, env, launch) for op in by_hand}
    for copy in requested:
        try:
            if not machine.has("copy_engine"):
                raise NotApplicable(NO_ENGINE)
            way = bulk_way(copy, env, safe_values, launch, asked=True)
        except NotApplicable as why:
            raise refusal(copy, machine.name, why.reason) from None
        before, here = _in_place(copy, way)
        top += before
        done[copy] = here
    body = substitute(launch.body, done)
    begun = Seq((*top, Barrier(), body)) if top else body
    return replace(launch, body=begun)


def _as_contiguous(op: BulkCopy, env: ConstraintSet, launch: Launch) -> BulkCopy:
    """Return a copy of a tensor of which there is no map as the copy engine can make it.

    Before   bulk_copy P[0:256], S, full       # P: at an address that the kernel computes
    After    bulk_copy P[0:256], S, full, contiguous
    """
    copy = Copy(op.src, op.dst, span=op.span)
    try:
        if op.multicast is not None or op.reduce not in (None, "add"):
            raise NotApplicable("bulk 1-D copies are neither multicast nor minima and maxima")
        bulk_way(copy, env, {}, launch, made_for=op, asked=True)
    except NotApplicable as why:
        src, dst = op.src.buffer, op.dst.buffer
        raise UnsupportedOnTarget(
            f"{src.name!r} cannot be copied to {dst.name!r} in bulk: {why.reason}",
            span=op.span,
            notes=(Note(f"the kernel computes the address of {op.tensor.buffer.name!r}"),),
            hint="use T.copy, which finds another way",
        ) from None
    return replace(op, is_1d=True)


NO_ENGINE = "it has no tensor memory accelerator"


def refusal(copy: Copy, machine: str, why: str) -> UnsupportedOnTarget:
    """Return the error that the copy engine cannot make a copy that asks for it."""
    return UnsupportedOnTarget(
        f"{machine} cannot make this copy in bulk: {why}",
        span=copy.span,
        hint="leave prefer_instruction out: T.copy finds a way",
    )


def _asks(copy: Copy) -> bool:
    return copy.prefer_instruction in COPY_ENGINE_WORDS and copy.dst.buffer.scope is Scope.SHARED


def _in_place(copy: Copy, way: BulkCopyKind) -> tuple[list[Stmt], Stmt]:
    """Return what the launch begins with for the sake of a copy, and what replaces it."""
    tile, span = copy.dst.buffer, copy.span
    full = Buffer(f"{tile.name}_here", (1,), dtype_of("uint64"), Scope.BARRIER, span=span)
    phase = Buffer(f"{tile.name}_phase", (1,), dtype_of("int32"), Scope.VAR, span=span)
    zero = as_expr(0)
    now = Load(phase, (zero,))
    top: list[Stmt] = [
        Alloc(full), BarrierInit(full, (1,)), Alloc(phase), Store(phase, (zero,), zero),
    ]  # fmt: skip
    bar = Region(full, (zero,), (1,), is_element=True)
    nbytes = tile.dtype.bits // 8
    for extent in copy.dst.static_extents or ():
        nbytes *= extent
    moved = BulkCopy(
        copy.src, copy.dst, bar, eviction_policy=copy.eviction_policy,
        is_1d=way is BulkCopyKind.CONTIGUOUS, span=span,
    )  # fmt: skip
    here = Seq(
        (
            Barrier(span=span),
            BarrierArrive(bar, nbytes, span=span),
            moved,
            BarrierWait(bar, now, span=span),
            Store(phase, (zero,), binary(BinaryOp.BITXOR, now, 1)),
        ),
        span=span,
    )
    return top, here
