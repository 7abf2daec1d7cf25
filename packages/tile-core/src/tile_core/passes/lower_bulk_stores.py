"""Shared tiles that an engine stores into tensors, where it can."""

from __future__ import annotations

from typing import Protocol

from tile_core.errors import Note
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import accesses
from tile_core.ir.gpu_intrinsics import COPY_ENGINE_WORDS
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.stmt import For, Kernel, Launch, Parallel, Pipelined, Seq, While
from tile_core.ops.bulk_copy import BulkCopy, BulkWait
from tile_core.ops.copy import Copy
from tile_core.passes.lower_bulk_loads import refusal
from tile_core.passes.pipelines.analysis import facts_of
from tile_core.passes.specialise.bulk import Way, bulk_way
from tile_core.passes.specialise.side_by_side import within_loops
from tile_core.passes.uniformity import is_thread_program


class Machine(Protocol):
    """What this pass asks of a machine."""

    @property
    def name(self) -> str:
        """The architecture, for messages."""

    def has(self, feature: str) -> bool:
        """Whether the machine has an instruction or ability."""


def lower_bulk_stores(kernel: Kernel, machine: Machine) -> Kernel:
    """Return `kernel` with its copies from shared tiles into tensors made in bulk.

    Before   copy C_s, C[by*128:+128, bx*128:+128]
    After    bulk_copy C_s, C[by*128:+128, bx*128:+128];  bulk_wait

    Rows of one dimension that are known to stay inside of their tensor are stretches of bytes.

    One thread starts the copy, and waits until the tile has been read; until the tensor is
    written, where another statement of the launch accesses it. In a loop it first waits for the
    copy of the round before, long over by then: two copies to one place have no order of their
    own. Copies that the engine cannot make stay as they are, and so does everything on machines
    without one and in programs that name their threads.

    Raises
    ------
    UnsupportedOnTarget
        If the program asks for the engine and it cannot make a copy; the reason is named.
    """
    if not machine.has("copy_engine"):
        return kernel

    def rule(node: Node) -> Node:
        if not isinstance(node, Launch) or is_thread_program(node):
            return node
        return _with_bulk_stores(node, kernel, machine.name)

    return rewrite(kernel, rule)


def notes_on_stores(kernel: Kernel, machine: Machine) -> tuple[Note, ...]:
    """Return why the engine of a machine that has one does not make copies out of shared tiles."""
    notes: list[Note] = []
    for launch in (n for n in walk(kernel.body) if isinstance(n, Launch)):
        if machine.has("copy_engine") and not is_thread_program(launch):
            for copy, way in _ways(launch, kernel).items():
                if isinstance(way, str):
                    stored = f"{copy.src.buffer.name!r} is stored by the threads"
                    notes.append(Note(f"{stored}: {way}", copy.span))
    return tuple(notes)


def _ways(launch: Launch, kernel: Kernel) -> dict[Copy, Way | str]:
    """Return how the engine can make each copy out of a shared tile, or why it cannot."""
    inside = {n for p in walk(launch.body) if isinstance(p, Parallel) for n in walk(p)}
    stores = [n for n in walk(launch.body) if isinstance(n, Copy) and _stores(n)]
    if not stores:
        return {}
    env = within_loops(launch, facts_of(kernel, launch))
    return {
        copy: "it is a part of a loop over elements"
        if copy in inside
        else bulk_way(copy, env, {}, launch, asked=copy.prefer_instruction in COPY_ENGINE_WORDS)
        for copy in stores
    }


def _with_bulk_stores(launch: Launch, kernel: Kernel, name: str) -> Launch:
    loops = (n for n in walk(launch.body) if isinstance(n, (For, Pipelined, While)))
    repeated = {n for loop in loops for n in walk(loop)}
    done: dict[Node, Node] = {}
    for copy, way in _ways(launch, kernel).items():
        if isinstance(way, str):
            if copy.prefer_instruction in COPY_ENGINE_WORDS:
                raise refusal(copy, name, way)
            continue
        tensor = copy.dst.buffer.storage
        wait = BulkWait(is_read_enough=_users(launch, tensor) == 1, span=copy.span)
        moved = BulkCopy(
            copy.src, copy.dst, eviction_policy=copy.eviction_policy,
            is_stretch=way is Way.STRETCH, span=copy.span,
        )  # fmt: skip
        before = [BulkWait(is_read_enough=False, span=copy.span)] if copy in repeated else []
        done[copy] = Seq((*before, moved, wait), span=copy.span)
    return substitute(launch, done) if done else launch


def _stores(copy: Copy) -> bool:
    return copy.src.buffer.scope is Scope.SHARED and copy.dst.buffer.scope is Scope.GLOBAL


def _users(launch: Launch, tensor: Buffer) -> int:
    return len({a.node for a in accesses(launch.body) if a.buffer.storage is tensor})
