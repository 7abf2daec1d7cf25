"""What can be told about a statement before it runs, found once and remembered."""

from __future__ import annotations

from dataclasses import dataclass

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import accesses, storages_written
from tile_core.ir.expr import Call, Expr, Var
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import Launch


@dataclass(frozen=True, slots=True)
class Facts:
    """Facts about a statement.

    Parameters
    ----------
    variables
        Every variable that occurs in it, bound in it or not.
    private
        Storages of thread-private buffers it mentions.
    written
        Storages it may change.
    votes
        Calls in its own expressions that wait for all threads of the block.
    """

    variables: frozenset[Var]
    private: tuple[Buffer, ...]
    written: frozenset[Buffer]
    votes: tuple[Call, ...]


def facts_of(stmt: Node) -> Facts:
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
        for child in stmt.children()
        if isinstance(child, Expr)
        for call in walk(child)
        if isinstance(call, Call) and effect_of(call.function) & Effect.BLOCK
    ]
    return Facts(
        frozenset(variables), tuple(private), frozenset(storages_written(stmt)), tuple(votes)
    )


def is_thread_program(launch: Launch) -> bool:
    """Return whether the body says something about single threads.

    It does if it mentions a thread index, or exchanges values between threads. Otherwise it
    is a tile program, which runs once per block.
    """
    indices = set(launch.thread_vars)
    for node in walk(launch.body):
        if isinstance(node, Var) and node in indices:
            return True
        if isinstance(node, Call) and effect_of(node.function) & (Effect.WARP | Effect.BLOCK):
            return True
    return False


def mentioned(root: Node) -> frozenset[Buffer]:
    """Return every buffer that occurs below `root`."""
    found = {a.buffer for a in accesses(root)}
    return frozenset(found | {n for n in walk(root) if isinstance(n, Buffer)})
