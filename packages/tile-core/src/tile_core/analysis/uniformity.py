"""Which values differ between the threads of a block."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import counts_threads, effects_of
from tile_core.ir.expr import AddressOf, Call, Load, Var
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import Node, analysis, nodes_of, walk
from tile_core.ir.stmt import (
    Break,
    Continue,
    Evaluate,
    For,
    If,
    Launch,
    Leaf,
    Let,
    Parallel,
    Pipelined,
    Store,
    While,
)
from tile_core.ir.visitor import expressions_in, statements_in

_PER_THREAD = Effect.ATOMIC | Effect.WARP | Effect.STATE | Effect.OUTPUT
_EXCHANGES = Effect.WARP | Effect.BLOCK


@analysis
def is_thread_program(launch: Launch) -> bool:
    """Whether the body speaks of single threads.

    It names an index, exchanges values, or does what each thread does for itself, such as
    atomic additions outside of data-parallel loops.
    """
    indices = set(launch.thread_vars)
    return (
        counts_threads(launch)
        or not indices.isdisjoint(nodes_of(launch.body, Var))
        or bool(effects_of(launch.body) & _EXCHANGES)
    )


class Uniformity:
    """Variables and thread-private storages whose value may differ between threads.

    Conservative in one direction: what is not listed is certainly the same for all threads. The
    storages of `private` count as different from the start.
    """

    def __init__(self, launch: Launch, private: Iterable[Buffer] = ()) -> None:
        self.variables: set[Var] = set(launch.thread_vars)
        self.storages: set[Buffer] = set(private)
        before = -1
        while before != (before := len(self.variables) + len(self.storages)):
            self._visit(launch.body, controlled=False)

    def varies(self, root: Node) -> bool:
        """Whether the value of an expression may differ, or evaluating it acts per thread."""
        for node in walk(root):
            match node:
                case Var() if node in self.variables:
                    return True
                case Load(buffer=buffer) | AddressOf(buffer=buffer) if (
                    buffer.storage in self.storages
                ):
                    return True
                case Call(function=function):
                    if function.startswith("extern:") or effect_of(function) & _PER_THREAD:
                        return True
        return False

    def is_private(self, buffer: Buffer) -> bool:
        """Whether each thread has, and uses, a copy of `buffer` of its own."""
        return buffer.storage in self.storages

    def _visit(self, stmt: Node, *, controlled: bool) -> None:
        match stmt:
            case Let(var=var, value=value):
                if controlled or self.varies(value):
                    self.variables.add(var)
            case Store(buffer=buffer):
                differs = controlled or any(self.varies(e) for e in (*stmt.indices, stmt.value))
                self._written(buffer, differs)
            case Evaluate(value=value):
                for node in nodes_of(value, AddressOf):
                    if "w" in node.access:
                        self._written(node.buffer, True)
            case Leaf():
                differs = controlled or any(
                    self.varies(c) for c in stmt.children() if not isinstance(c, Buffer)
                )
                differs |= any(self.is_private(r.buffer) for r in stmt.reads())
                for region in stmt.writes():
                    self._written(region.buffer, differs)
            case _:
                self._visit_control(stmt, controlled)

    def _visit_control(self, stmt: Node, controlled: bool) -> None:
        if isinstance(stmt, (For, Pipelined, While, If)):
            controlled |= any(map(self.varies, expressions_in(stmt)))
            if controlled and isinstance(stmt, (For, Pipelined)):
                self.variables.add(stmt.var)
            controlled |= isinstance(stmt, (For, While)) and self.leaves_apart(stmt.body)
        for inner in statements_in(stmt):
            self._visit(inner, controlled=controlled)

    def leaves_apart(self, body: Node, *, controlled: bool = False) -> bool:
        """Whether threads may leave or cut short an iteration of the loop at different times."""
        match body:
            case Break() | Continue():
                return controlled
            case If(cond=cond):
                controlled |= self.varies(cond)
            case For() | While() | Pipelined() | Parallel():
                return False
        return any(self.leaves_apart(s, controlled=controlled) for s in statements_in(body))

    def _written(self, buffer: Buffer, differs: bool) -> None:
        if differs and buffer.storage.scope.is_thread_private:
            self.storages.add(buffer.storage)
