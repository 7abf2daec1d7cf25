"""What branches and loops touch that threads of an explicit program run apart."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node
from tile_core.ir.stmt import For, If, Leaf, Let, OnThreads, Parallel, Pipelined, Seq, Stmt, While
from tile_core.passes.memory_accesses import (
    ExecutingThreads,
    MemoryAccess,
    inlined,
    is_plain,
    memory_accesses,
)


def concurrent_accesses(stmt: Stmt, meaning: Mapping[Var, Expr]) -> tuple[MemoryAccess, ...]:
    """Return what `stmt` touches, each access with the conditions under which threads get to it.

    Before   if tx < 32: s[tx] = s[tx + 32]
    After    read s[tx + 32] when tx < 32;  write s[tx] when tx < 32

    Boxes are in terms of the indices of loops inside `stmt`. Data-parallel loops and operators
    are the work of all threads that get there.

    Parameters
    ----------
    meaning
        Names outside of `stmt` that stand for an expression.
    """
    return tuple(_found(stmt, dict(meaning), ()))


def _found(stmt: Stmt, names: dict[Var, Expr], when: tuple[Expr, ...]) -> Iterator[MemoryAccess]:
    match stmt:
        case Seq(body=body):
            for item in body:
                yield from _found(item, names, when)
        case If(cond=cond, then=then, otherwise=otherwise):
            yield from _made(cond, names, when)
            held = inlined(cond, names)
            known = (held,) if isinstance(held, Expr) and is_plain(held) else ()
            yield from _found(then, names, (*when, *known))
            if otherwise is not None:
                yield from _found(otherwise, names, (*when, *(~x for x in known)))
        case For(start=start, stop=stop) | Pipelined(start=start, stop=stop):
            for bound in (start, stop):
                if isinstance(bound, Expr):
                    yield from _made(bound, names, when)
            yield from _found(stmt.body, names, when)
        case While(cond=cond, body=body):
            yield from _made(cond, names, when)
            yield from _found(body, names, when)
        case OnThreads(body=body):
            yield from _found(body, names, when)
        case Let(var=var, value=value) if is_plain(value):
            names[var] = value
        case _:
            yield from _made(stmt, names, when)


def _made(root: Node, names: Mapping[Var, Expr], when: tuple[Expr, ...]) -> Iterator[MemoryAccess]:
    together = isinstance(root, (Leaf, Parallel))
    for touch in memory_accesses(
        root, ExecutingThreads.TILE if together else ExecutingThreads.THREAD, names
    ):
        yield replace(touch, when=when)
