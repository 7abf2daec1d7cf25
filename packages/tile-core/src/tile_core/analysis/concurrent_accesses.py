"""What threads of an explicit program access in branches and loops that they run apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tile_core.analysis.memory_access import (
    ExecutingThreads,
    MemoryAccess,
    inlined,
    is_plain,
    memory_accesses,
)
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node
from tile_core.ir.stmt import For, If, Leaf, Let, OnThreads, Parallel, Pipelined, Seq, Stmt, While
from tile_core.ir.visitor import expressions_in, scoped
from tile_core.records import dataclass, replace


@dataclass(frozen=True, slots=True)
class _Scope:
    """Names that stand for an expression, and the conditions under which threads get here."""

    names: Mapping[Var, Expr]
    when: tuple[Expr, ...] = ()

    def after(self, stmt: Stmt) -> _Scope:
        if not isinstance(stmt, Let) or not is_plain(stmt.value):
            return self
        return replace(self, names={**self.names, stmt.var: stmt.value})

    def within(self, stmt: Stmt) -> _Scope:
        return self

    def assuming(self, cond: Expr, *, holds: bool) -> _Scope:
        known = inlined(cond, self.names)
        if not isinstance(known, Expr) or not is_plain(known):
            return self
        return replace(self, when=(*self.when, known if holds else ~known))


def concurrent_accesses(stmt: Stmt, meaning: Mapping[Var, Expr]) -> tuple[MemoryAccess, ...]:
    """Return what `stmt` accesses, each with the conditions under which threads get to it.

    Before   if tx < 32: s[tx] = s[tx + 32]
    After    read s[tx + 32] when tx < 32;  write s[tx] when tx < 32

    Boxes are in terms of the indices of loops inside `stmt`. Data-parallel loops and operators
    are the work of all threads that get there. `meaning` are names outside of `stmt` that stand for
    an expression.
    """
    return tuple(_found(stmt, _Scope(meaning)))


def _found(stmt: Stmt, scope: _Scope) -> Iterator[MemoryAccess]:
    if isinstance(stmt, (Seq, If, For, Pipelined, While, OnThreads)):
        for expr in expressions_in(stmt):
            yield from _made(expr, scope)
        for inner, inside in scoped(stmt, scope):
            yield from _found(inner, inside)
    elif not (isinstance(stmt, Let) and is_plain(stmt.value)):
        yield from _made(stmt, scope)


def _made(root: Node, scope: _Scope) -> Iterator[MemoryAccess]:
    together = isinstance(root, (Leaf, Parallel))
    by = ExecutingThreads.TILE if together else ExecutingThreads.THREAD
    return (replace(a, when=scope.when) for a in memory_accesses(root, by, scope.names))
