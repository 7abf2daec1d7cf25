"""Shared tiles that the copy engine stores into tensors, where it can."""

from __future__ import annotations

from tile_core.analysis.uniformity import is_thread_program
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import accesses
from tile_core.ir.gpu_intrinsics import COPY_ENGINE_WORDS
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import For, Kernel, Launch, Parallel, Pipelined, Seq, While
from tile_core.ir.visitor import map_launches
from tile_core.machine import SimtMachine
from tile_core.ops.bulk_copy import BulkCopy, BulkWait
from tile_core.ops.copy import Copy
from tile_core.passes.lower_bulk_loads import refusal
from tile_core.passes.warp_specialisation.bulk_copies import BulkCopyKind, bulk_way
from tile_core.passes.warp_specialisation.contiguous_copies import facts_in_loops
from tile_core.remarks import NotApplicable, remark


def lower_bulk_stores(kernel: Kernel, machine: SimtMachine) -> Kernel:
    """Return `kernel` with its copies from shared tiles into tensors made in bulk.

    Before   copy C_s, C[by*128:+128, bx*128:+128]
    After    bulk_copy C_s, C[by*128:+128, bx*128:+128];  bulk_wait

    Rows of one dimension that are known to stay inside of their tensor are contiguous bytes.

    One thread starts the copy, and waits until the tile has been read; until the tensor is
    written, where another statement of the launch accesses it. In a loop it first waits for the
    copy of the iteration before, long over by then: two copies to one place have no order of their
    own. Copies that the copy engine cannot make stay as they are, and so does everything on
    machines without one and in programs that name their threads.

    Raises
    ------
    UnsupportedOnTarget
        If the program asks for the copy engine and it cannot make a copy; the reason is named.
    """
    if not machine.has("copy_engine"):
        return kernel

    def stored(launch: Launch) -> Launch:
        if is_thread_program(launch):
            return launch
        return _with_bulk_stores(launch, kernel, machine.name)

    return map_launches(kernel, stored)


def _with_bulk_stores(launch: Launch, kernel: Kernel, name: str) -> Launch:
    stores = [n for n in nodes_of(launch.body, Copy) if _stores(n)]
    if not stores:
        return launch
    inside = {n for p in nodes_of(launch.body, Parallel) for n in nodes_of(p, Copy)}
    env = facts_in_loops(kernel, launch)
    loops = nodes_of(launch.body, For, Pipelined, While)
    repeated = {n for loop in loops for n in nodes_of(loop, Copy)}
    done: dict[Node, Node] = {}
    for copy in stores:
        asked = copy.prefer_instruction in COPY_ENGINE_WORDS
        try:
            if copy in inside:
                raise NotApplicable("it is a part of a loop over elements")
            way = bulk_way(copy, env, {}, launch, asked=asked)
        except NotApplicable as why:
            if asked:
                raise refusal(copy, name, why.reason) from None
            told = f"{copy.src.buffer.name!r} is stored by the threads: {why.reason}"
            remark("missed", "lower_bulk_stores", told, copy.span)
            continue
        tensor = copy.dst.buffer.storage
        wait = BulkWait(is_read_enough=_users(launch, tensor) == 1, span=copy.span)
        moved = BulkCopy(
            copy.src, copy.dst, eviction_policy=copy.eviction_policy,
            is_1d=way is BulkCopyKind.CONTIGUOUS, span=copy.span,
        )  # fmt: skip
        before = [BulkWait(is_read_enough=False, span=copy.span)] if copy in repeated else []
        done[copy] = Seq((*before, moved, wait), span=copy.span)
    return substitute(launch, done) if done else launch


def _stores(copy: Copy) -> bool:
    return copy.src.buffer.scope is Scope.SHARED and copy.dst.buffer.scope is Scope.GLOBAL


def _users(launch: Launch, tensor: Buffer) -> int:
    return len({a.node for a in accesses(launch.body) if a.buffer.storage is tensor})
