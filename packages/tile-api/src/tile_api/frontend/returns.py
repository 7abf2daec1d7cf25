"""Threads that leave a kernel early, as branches around what they leave out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import binary, const
from tile_core.ir.expr import BinaryOp, Expr, Load
from tile_core.ir.node import Node, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    Break,
    For,
    Hint,
    If,
    Leaf,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
    flattened,
)
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class ThreadReturn(Leaf):
    """The thread leaves the kernel here; only what is being traced holds one."""

    mnemonic: ClassVar[str] = "thread_return"

    def reads(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()

    def writes(self) -> tuple[Region, ...]:
        """Nothing."""
        return ()


def without_returns(body: Seq) -> Seq:
    """Return the body of a launch with branches in place of each `ThreadReturn`.

    Before   if b >= n: return;  B[b] = 1
    After    if not b >= n: B[b] = 1

    Where a loop is left, or not every way through a branch leaves, a variable of each thread
    remembers that it is gone. Returns the same object when no thread leaves.
    """
    if not _returns(body):
        return body
    writer = _Writer()
    items = writer.block(flattened(body), flagged=False)
    return replace(body, body=(*writer.prelude(), *items))


class _Writer:
    """Writes one body; `gone` is the variable that remembers, if one is needed."""

    def __init__(self) -> None:
        self.gone: Buffer | None = None

    def prelude(self) -> list[Stmt]:
        """Return what must stand in front of the body."""
        if self.gone is None:
            return []
        return [Alloc(self.gone), Store(self.gone, (const(0),), const(0))]

    def flag(self) -> Buffer:
        """Return the variable that is 1 in threads that have left."""
        if self.gone is None:
            self.gone = Buffer("gone", (1,), dtype_of("int32"), Scope.VAR)
        return self.gone

    def is_flagged(self, value: int) -> Expr:
        """Return whether the variable has a value."""
        return binary(BinaryOp.EQ, Load(self.flag(), (const(0),)), const(value))

    def block(self, items: Sequence[Stmt], *, flagged: bool) -> list[Stmt]:
        """Return statements without what those do that have left.

        Parameters
        ----------
        flagged
            Whether statements outside of these must hear who left.
        """
        made: list[Stmt] = []
        for place, item in enumerate(items):
            if not _returns(item):
                made.append(item)
                continue
            if isinstance(item, ThreadReturn):
                if flagged:
                    made.append(Store(self.flag(), (const(0),), const(1), span=item.span))
                return made
            kept, rest = _declarations(items[place + 1 :])
            made += kept
            if isinstance(item, If) and _is_decided(item.then) and _is_decided(item.otherwise):
                return [*made, self.decided(item, rest, flagged=flagged)]
            made.append(self.inside(item))
            if rest:
                others = tuple(self.block(rest, flagged=flagged))
                made.append(If(self.is_flagged(0), Seq(others), span=item.span))
            return made
        return made

    def decided(self, stmt: If, rest: Sequence[Stmt], *, flagged: bool) -> Stmt:
        """Return a branch with what follows it on the sides that do not leave."""
        sides: list[Seq] = []
        for side in (stmt.then, stmt.otherwise):
            items = [] if side is None else flattened(side)
            follows = [] if side is not None and _leaves(side) else rest
            sides.append(Seq(tuple(self.block([*items, *follows], flagged=flagged))))
        then, otherwise = sides
        if not then.body:
            return replace(stmt, cond=~stmt.cond, then=otherwise, otherwise=None)
        return replace(stmt, then=then, otherwise=otherwise if otherwise.body else None)

    def inside(self, stmt: Stmt) -> Stmt:
        """Return a statement that some threads leave in its middle."""
        match stmt:
            case If(then=then, otherwise=otherwise):
                sides = [None if side is None else self.nested(side) for side in (then, otherwise)]
                assert sides[0] is not None
                return replace(stmt, then=sides[0], otherwise=sides[1])
            case For(body=body) | While(body=body):
                leave = If(self.is_flagged(1), Seq((Break(span=stmt.span),)), span=stmt.span)
                return replace(stmt, body=Seq((*self.nested(body).body, leave)))
            case Pipelined(body=body):
                still = If(self.is_flagged(0), self.nested(body), span=stmt.span)
                return replace(stmt, body=Seq((still,)))
            case OnThreads(body=body):
                return replace(stmt, body=self.nested(body))
        return stmt

    def nested(self, body: Stmt) -> Seq:
        """Return the body of a statement that others hear of."""
        return Seq(tuple(self.block(flattened(body), flagged=True)), span=body.span)


def _returns(stmt: Node) -> bool:
    return any(isinstance(node, ThreadReturn) for node in walk(stmt))


def _leaves(stmt: Stmt) -> bool:
    """Whether every thread that runs `stmt` leaves."""
    if isinstance(stmt, If):
        return stmt.otherwise is not None and _leaves(stmt.then) and _leaves(stmt.otherwise)
    if isinstance(stmt, Seq):
        return any(_leaves(item) for item in stmt.body)
    return isinstance(stmt, ThreadReturn)


def _is_decided(side: Stmt | None) -> bool:
    """Whether all threads on a side of a branch leave, or none."""
    return side is None or _leaves(side) or not _returns(side)


def _declarations(items: Sequence[Stmt]) -> tuple[list[Stmt], list[Stmt]]:
    """Return what only declares, which may stand earlier, and the rest."""
    first = [s for s in items if isinstance(s, (AnnotateLayout, Hint)) or _is_fixed(s)]
    return first, [s for s in items if s not in first]


def _is_fixed(stmt: Stmt) -> bool:
    return (
        isinstance(stmt, Alloc)
        and stmt.buffer.static_shape is not None
        and stmt.buffer.origin is None
    )
