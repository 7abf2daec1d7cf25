"""Tiles that the copy engine adds to tensors, where it can."""

from __future__ import annotations

from tile_core.analysis.uniformity import is_thread_program
from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.buffer import Buffer, Region, Scope, whole
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import Alloc, Kernel, Launch, Parallel, Seq, Stmt
from tile_core.ir.visitor import map_launches
from tile_core.machine import SimtMachine
from tile_core.ops.atomic import AtomicKind, AtomicTile
from tile_core.ops.bulk_copy import BulkCopy, BulkWait
from tile_core.ops.copy import Copy
from tile_core.passes.warp_specialisation.bulk_copies import BulkCopyKind, bulk_way, require_boxes
from tile_core.passes.warp_specialisation.contiguous_copies import facts_in_loops
from tile_core.remarks import NotApplicable, remark

_ADDED = frozenset({"float16", "bfloat16", "float32", "int32", "uint32", "uint64"})
_COMPARED = frozenset({"float16", "bfloat16", "int32", "uint32", "int64", "uint64"})


def lower_bulk_reductions(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with atomic updates by shared tiles made in bulk.

    Before   atomic add C_s, C[by*128:+128, bx*128:+128]
    After    bulk_copy C_s, C[by*128:+128, bx*128:+128], reduce add;  bulk_wait

    An element is updated once and for all, whatever other blocks add at the same time. Tiles in
    registers take the way through shared memory where the program asks for the copy engine
    (``use_bulk``). Updates that are ordered against other accesses, or that the copy engine cannot
    make, stay as they are. Source: PTX ISA, "cp.reduce.async.bulk.tensor".
    """
    if not machine.has("copy_engine"):
        return kernel

    def updated(launch: Launch) -> Launch:
        updates = [] if is_thread_program(launch) else _updates(launch)
        env = facts_in_loops(kernel, launch) if updates else ConstraintSet()
        done: dict[Node, Node] = {}
        for op in updates:
            try:
                done[op] = _in_bulk(op, _way(op, env, launch))
            except NotApplicable as why:
                told = f"{op.dst.buffer.name!r} is updated by the threads: {why.reason}"
                remark("missed", "lower_bulk_reductions", told, op.span)
        return substitute(launch, done) if done else launch

    return map_launches(kernel, updated)


def _updates(launch: Launch) -> list[AtomicTile]:
    """Return the updates that the copy engine may make.

    Those by tiles in registers are left out, unless the program asks for the copy engine.
    """
    inside = {n for p in nodes_of(launch.body, Parallel) for n in nodes_of(p, AtomicTile)}
    found = nodes_of(launch.body, AtomicTile)
    return [op for op in found if op not in inside and _asks(op)]


def _asks(op: AtomicTile) -> bool:
    scope = op.src.buffer.scope
    by_registers = scope is Scope.FRAGMENT and op.use_bulk and op.src.static_extents is not None
    return (scope is Scope.SHARED or by_registers) and op.dst.buffer.scope is Scope.GLOBAL


def _way(op: AtomicTile, env: ConstraintSet, launch: Launch) -> BulkCopyKind:
    known = _ADDED if op.kind is AtomicKind.ADD else _COMPARED
    if op.memory_order != "relaxed":
        raise NotApplicable("it is ordered against other accesses")
    if str(op.dst.buffer.dtype) not in known:
        raise NotApplicable(
            f"the copy engine does not reduce elements of {op.dst.buffer.dtype} this way"
        )
    copy = Copy(_source(op), op.dst, span=op.span)
    way = bulk_way(copy, env, {}, launch, made_for=op)
    if way is not BulkCopyKind.CONTIGUOUS or op.kind is AtomicKind.ADD:
        return way
    require_boxes(copy, env, {})  # contiguous bytes can only be added
    return BulkCopyKind.TENSOR


def _source(op: AtomicTile) -> Region:
    """Return the shared tile that an update is made by: one that rows go through, or its own."""
    if op.src.buffer.scope is Scope.SHARED:
        return op.src
    name, extents = f"{op.src.buffer.name}_rows", op.src.static_extents or ()
    return whole(Buffer(name, extents, op.dst.buffer.dtype, Scope.SHARED, span=op.span))


def _in_bulk(op: AtomicTile, way: BulkCopyKind) -> Stmt:
    """Return the update as the copy engine makes it."""
    before: tuple[Stmt, ...] = ()
    source = _source(op)
    if source is not op.src:
        before = (Alloc(source.buffer, span=op.span), Copy(op.src, source, span=op.span))
    update = BulkCopy(
        source, op.dst, reduce=op.kind.value, is_1d=way is BulkCopyKind.CONTIGUOUS, span=op.span
    )
    wait = BulkWait(is_read_enough=False, span=op.span)
    return Seq((*before, update, wait), span=op.span)
