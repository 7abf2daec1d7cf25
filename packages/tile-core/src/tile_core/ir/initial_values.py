"""Variables without an initial value are zero."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum, auto

from tile_core.ir.arith import const
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.effects import accesses
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    If,
    Kernel,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)
from tile_core.ir.visitor import static_range


class _Meets(Enum):
    """What happens to a variable first."""

    NOTHING = auto()  # surely neither read nor stored to, or stored to only at times
    READ = auto()  # it may be read, or lent to a function
    STORED = auto()  # it is surely stored to


def define_variables(kernel: Kernel) -> Kernel:
    """Return `kernel` with a store of zero for each variable that may be read before any other.

    Before   alloc s: local.var int32[1];  while …: s[0] = s[0] + i[0]
    After    alloc s: local.var int32[1];  s[0] = 0;  while …: s[0] = s[0] + i[0]

    Where something else is surely stored first, nothing is put in. A variable that is declared
    inside of a loop is a new one in each round. Returns the same object when there is nothing
    to do.
    """
    if not any(isinstance(n, Alloc) and n.buffer.scope is Scope.VAR for n in walk(kernel)):
        return kernel

    def rule(node: Node) -> Node:
        return _defined(node) if isinstance(node, Seq) else node

    return rewrite(kernel, rule)


def _defined(sequence: Seq) -> Seq:
    body: list[Stmt] = []
    for place, item in enumerate(sequence.body):
        body.append(item)
        if isinstance(item, Alloc) and item.buffer.scope is Scope.VAR:
            variable = item.buffer
            if _first(sequence.body[place + 1 :], variable) is _Meets.READ:
                zero = const(0, variable.dtype)
                body.append(Store(variable, (const(0),), zero, span=item.span))
    return sequence if len(body) == len(sequence.body) else Seq(tuple(body), span=sequence.span)


def _first(body: Sequence[Stmt], variable: Buffer) -> _Meets:
    for item in body:
        how = _meets(item, variable)
        if how is not _Meets.NOTHING:
            return how
    return _Meets.NOTHING


def _meets(stmt: Stmt, variable: Buffer) -> _Meets:
    if not any(isinstance(n, Buffer) and n.storage is variable for n in walk(stmt)):
        return _Meets.NOTHING
    match stmt:
        case Seq(body=body):
            return _first(body, variable)
        case If(cond=cond, then=then, otherwise=otherwise):
            if _is_named(cond, variable):
                return _Meets.READ
            ways = [_meets(then, variable)]
            ways.append(_Meets.NOTHING if otherwise is None else _meets(otherwise, variable))
            return _Meets.READ if _Meets.READ in ways else ways[0] if ways[0] is ways[1] else (
                _Meets.NOTHING
            )  # fmt: skip
        case For() | Pipelined() | While() | Parallel():
            heads = [c for c in stmt.children() if c is not stmt.body]
            inner = _meets(stmt.body, variable)
            if inner is _Meets.READ or any(_is_named(h, variable) for h in heads):
                return _Meets.READ
            return inner if _runs(stmt) else _Meets.NOTHING
        case Store(buffer=buffer) if buffer is variable:
            parts = (*stmt.indices, stmt.value)
            return _Meets.READ if any(_is_named(p, variable) for p in parts) else _Meets.STORED
    touched = any(a.buffer.storage is variable for a in accesses(stmt))
    return _Meets.READ if touched else _Meets.NOTHING


def _is_named(root: Node, variable: Buffer) -> bool:
    return any(isinstance(n, Buffer) and n.storage is variable for n in walk(root))


def _runs(loop: For | Pipelined | While | Parallel) -> bool:
    """Whether every thread certainly runs a first round of a loop to its end."""
    if not isinstance(loop, (For, Pipelined)):
        return False
    return bool(static_range(loop)) and not any(
        isinstance(n, (Break, Continue)) for n in walk(loop.body)
    )
