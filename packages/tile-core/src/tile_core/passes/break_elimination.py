"""Loops around barriers of the whole grid as `While`, with conditions for `break`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, cast, const, select
from tile_core.ir.expr import BinaryOp, Const, Load, Var
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    If,
    Let,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
    flattened,
)
from tile_core.ir.visitor import jumps
from tile_core.records import replace

_GOES_ON, _NEXT_ROUND, _LEFT = 0, 1, 2
_FIRST = (const(0),)


def counted(loop: For | Pipelined) -> list[Stmt]:
    """Return a loop that counts as one that asks before each iteration.

    Before   for k in (a, b, s): body
    After    alloc at; at[0] = a;  last = b;  while at[0] < last: k = at[0]; body; at[0] += s
    """
    span, kind = loop.span, loop.var.dtype
    step = loop.step
    at = Buffer(f"{loop.var.name}_at", (1,), kind, Scope.VAR, span=span)
    last = Var(f"{loop.var.name}_stop", kind)
    head: list[Stmt] = [
        Alloc(at, span=span),
        Store(at, _FIRST, cast(loop.start, kind), span=span),
        Let(last, cast(loop.stop, kind), span=span),
    ]
    if not isinstance(step, Const):
        width = Var(f"{loop.var.name}_step", kind)
        head.append(Let(width, cast(step, kind), span=span))
        step = width
    now = Load(at, _FIRST)
    forward, back = binary(BinaryOp.LT, now, last), binary(BinaryOp.GT, now, last)
    if isinstance(step, Const):
        more = forward if step.value > 0 else back
    else:
        more = select(binary(BinaryOp.GT, step, const(0, kind)), forward, back)
    advance = Store(at, _FIRST, cast(binary(BinaryOp.ADD, now, step), kind), span=span)
    name = Let(loop.var, now, span=span)
    whole = While(more, Seq((name, *flattened(loop.body))), span=span)
    if not jumps(loop.body):
        return [*head, replace(whole, body=Seq((name, *flattened(loop.body), advance)))]
    return [*head, *without_jumps(whole, advance)]


def without_jumps(loop: While, *last: Stmt) -> list[Stmt]:
    """Return a loop with conditions in place of its jumps; `last` ends every iteration.

    Before   while c: x; if d: break; y
    After    alloc way; way[0] = 0
             while c if way[0] != 2 else False:
               way[0] = 0;  x;  if d: way[0] = 2;  if way[0] == 0: y;  last
    """
    way = Buffer("way", (1,), const(0).dtype, Scope.VAR, span=loop.span)
    start = Store(way, _FIRST, const(_GOES_ON), span=loop.span)
    inside = binary(BinaryOp.NE, Load(way, _FIRST), const(_LEFT))
    cond = select(inside, loop.cond, const(0, loop.cond.dtype), lazy=True)
    body = [start, *_guarded(flattened(loop.body), way), *last]
    return [Alloc(way, span=loop.span), start, replace(loop, cond=cond, body=Seq(tuple(body)))]


def _guarded(items: Sequence[Stmt], way: Buffer) -> Iterator[Stmt]:
    """Yield statements in order, those behind a jump only where nothing has jumped."""
    for position, item in enumerate(items):
        if not jumps(item):
            yield item
            continue
        yield _told(item, way)
        rest = tuple(_guarded(items[position + 1 :], way))
        on = binary(BinaryOp.EQ, Load(way, _FIRST), const(_GOES_ON))
        if rest:
            yield If(on, Seq(rest), span=item.span)
        return


def _told(item: Stmt, way: Buffer) -> Stmt:
    """Return a statement that says which way it goes instead of jumping."""
    match item:
        case Break():
            return Store(way, _FIRST, const(_LEFT), span=item.span)
        case Continue():
            return Store(way, _FIRST, const(_NEXT_ROUND), span=item.span)
        case If(then=then, otherwise=otherwise):
            sides = [
                None if side is None else Seq(tuple(_guarded(flattened(side), way)))
                for side in (then, otherwise)
            ]
            return replace(item, then=sides[0] or Seq(()), otherwise=sides[1])
    return item
