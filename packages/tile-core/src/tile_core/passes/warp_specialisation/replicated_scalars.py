"""Scalars that every range of threads can compute for itself."""

from __future__ import annotations

from collections import Counter

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import storages_written
from tile_core.ir.expr import Call, Expr, Load
from tile_core.ir.intrinsics import Effect, effect_of
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.stmt import Alloc, For, If, Launch, Seq, Stmt, Store, While
from tile_core.ir.visitor import LOOPS, expressions_in, statements_in
from tile_core.records import replace


def common_scalars(launch: Launch) -> set[Buffer]:
    """Return the variables of the program that do not depend on what the block computes.

    Their values, and the branches and loops around the statements that set them, are made of
    numbers, of tensors that the launch does not write, and of each other.
    """
    written = storages_written(launch.body)
    found = {n.buffer for n in nodes_of(launch.body, Alloc) if _is_scalar(n.buffer)}
    while True:
        wrong = set(_dependent(launch.body, found, written, governed=False))
        if not wrong & found:
            return found
        found -= wrong


def _is_scalar(buffer: Buffer) -> bool:
    return buffer.scope is Scope.VAR and buffer.origin is None


def _dependent(
    stmt: Stmt, scalars: set[Buffer], written: dict[Buffer, None], *, governed: bool
) -> set[Buffer]:
    """Return the variables that are set to, or under, something the block computes."""
    if isinstance(stmt, Store) and not governed and _is_free(stmt.value, scalars, written):
        return set()
    if isinstance(stmt, (Seq, If, *LOOPS)):
        governed = governed or not all(
            _is_free(value, scalars, written) for value in expressions_in(stmt)
        )
        parts = (_dependent(s, scalars, written, governed=governed) for s in statements_in(stmt))
        return set().union(*parts)
    return {b.storage for b in storages_written(stmt) if b.scope is Scope.VAR}


def _is_free(value: Expr, scalars: set[Buffer], written: dict[Buffer, None]) -> bool:
    for node in walk(value):
        if isinstance(node, Load):
            storage = node.buffer.storage
            if storage not in scalars and (storage.scope is not Scope.GLOBAL or storage in written):
                return False
        if isinstance(node, Call) and effect_of(node.function) & ~Effect.READS:
            return False
    return True


def without_unused(stmt: Stmt, scalars: set[Buffer]) -> Stmt | None:
    """Return a producer's program without the scalars that nothing in it needs."""
    while True:
        needed = _needed(stmt, scalars)
        smaller = _pruned(stmt, scalars - needed)
        if smaller is None or smaller is stmt:
            return smaller
        stmt = smaller


def _needed(stmt: Stmt, scalars: set[Buffer]) -> set[Buffer]:
    """Return the scalars that are read anywhere but in what sets themselves."""
    reads = Counter(n.buffer for n in nodes_of(stmt, Load))
    for store in nodes_of(stmt, Store):
        own = (n.buffer for value in expressions_in(store) for n in nodes_of(value, Load))
        reads[store.buffer] -= sum(buffer is store.buffer for buffer in own)
    return {buffer for buffer in scalars if reads[buffer]}


def _pruned(stmt: Stmt, unused: set[Buffer]) -> Stmt | None:
    """Return `stmt` without what sets scalars in `unused`; None if nothing is left."""
    match stmt:
        case Store(buffer=buffer) | Alloc(buffer=buffer) if buffer in unused:
            return None
        case Seq(body=body):
            kept = [p for p in (_pruned(s, unused) for s in body) if p is not None]
            same = len(kept) == len(body) and all(a is b for a, b in zip(kept, body, strict=True))
            return stmt if same else (Seq(tuple(kept), span=stmt.span) if kept else None)
        case For(body=body) | While(body=body):
            inner = _pruned(body, unused)
            if inner is None:
                return None
            return stmt if inner is body else replace(stmt, body=inner)
        case If(then=then, otherwise=otherwise):
            yes = _pruned(then, unused)
            no = None if otherwise is None else _pruned(otherwise, unused)
            if yes is then and no is otherwise:
                return stmt
            if yes is None and no is None:
                return None
            return If(stmt.cond, yes or Seq(()), no, span=stmt.span)
    return stmt
