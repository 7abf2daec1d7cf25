"""What can be told about a statement before it runs, found once and remembered."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import storages_written
from tile_core.ir.expr import Call, Var
from tile_core.ir.gpu_intrinsics import RANGE_INTRINSICS
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.stmt import Evaluate, Launch, Let, OnThreads, Store
from tile_core.ir.visitor import expressions_in
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.ops.control import ClusterSync
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.ops.remote_copy import RemoteCopy


@dataclass(frozen=True, slots=True)
class StatementFacts:
    """Facts about a statement."""

    variables: frozenset[Var]  # every variable that occurs in it, bound in it or not
    private: tuple[Buffer, ...]  # storages of thread-private buffers it mentions
    written: frozenset[Buffer]  # storages it may change
    votes: tuple[Call, ...]  # calls in its own expressions that wait for all threads of the block


def facts_of(stmt: Node) -> StatementFacts:
    """Return the facts about `stmt`."""
    variables: set[Var] = set()
    private: dict[Buffer, None] = {}
    for node in walk(stmt):
        if isinstance(node, Var):
            variables.add(node)
        elif isinstance(node, Buffer) and node.storage.scope.is_thread_private:
            private[node.storage] = None
    votes = [
        call
        for child in expressions_in(stmt)
        for call in nodes_of(child, Call)
        if effect_of(call.function) & Effect.BLOCK
    ]
    return StatementFacts(
        frozenset(variables), tuple(private), frozenset(storages_written(stmt)), tuple(votes)
    )


def goes_apart(launch: Launch) -> bool:
    """Return whether threads of a block, or blocks of a cluster, do different things at a time.

    They do in statements for ranges of threads, and wherever they wait for each other at
    barriers in memory.
    """
    return any(
        isinstance(node, _APART) or (isinstance(node, Call) and node.function in RANGE_INTRINSICS)
        for node in walk(launch.body)
    )


_APART = (BarrierArrive, BarrierInit, BarrierWait, BulkCopy, ClusterSync, OnThreads, RemoteCopy)


def cuts(launch: Launch) -> list[int]:
    """Return where ranges of threads begin and end that do different things."""
    found = {0, math.prod(launch.threads)}

    def visit(node: Node, first: int) -> None:
        if isinstance(node, OnThreads):
            first += node.first
            found.update((first, first + node.count))
        for child in node.children():
            visit(child, first)

    visit(launch.body, 0)
    return sorted(found)


def acts_on_block(stmt: Node) -> bool:
    """Return whether a statement outside of tiles changes what all threads of a block share."""
    if isinstance(stmt, Store):
        return not (stmt.buffer.storage.scope.is_thread_private)
    if not isinstance(stmt, (Evaluate, Let)):
        return False
    return any(bool(effect_of(node.function) & _ACTS) for node in nodes_of(stmt.value, Call))


_ACTS = Effect.WRITES | Effect.ATOMIC | Effect.OUTPUT
