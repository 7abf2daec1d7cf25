"""Short ways to write what lowering writes often."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from tile_core.errors import Span
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import as_expr
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, Expr, Extent, Var
from tile_core.ir.stmt import Evaluate, For, LoopKind, Seq, Stmt
from tile_core.simt.context import SimtContext


def seq(*parts: Stmt | Iterable[Stmt] | None) -> Stmt:
    """Return the statements one after the other, nested sequences opened, None left out."""
    flat: list[Stmt] = []
    for part in parts:
        if part is None:
            continue
        if isinstance(part, Seq):
            flat.extend(part.body)
        elif isinstance(part, Iterable):
            flat.extend(part)
        else:
            flat.append(part)
    return flat[0] if len(flat) == 1 else Seq(tuple(flat))


def unrolled(
    ctx: SimtContext,
    name_hint: str,
    count: int,
    body: Callable[[Expr], Stmt],
    *,
    start: int = 0,
    kind: LoopKind = LoopKind.UNROLL,
) -> Stmt:
    """Return `body` of `start`, ... ``count - 1``: a loop that the compiler unrolls.

    One iteration, or none, needs no loop.
    """
    if count <= start:
        return Seq(())
    if count == start + 1:
        return body(as_expr(start))
    var = ctx.fresh_var(name_hint)
    return For(var, as_expr(start), as_expr(count), as_expr(1), body(var), kind)


def looped(ctx: SimtContext, name_hint: str, count: int, body: Callable[[Expr], Stmt]) -> Stmt:
    """Return `body` of 0, 1, ... ``count - 1`` as a loop that stays one."""
    return unrolled(ctx, name_hint, count, body, kind=LoopKind.SERIAL)


def counted(
    var: Var, count: Extent, body: Stmt, kind: LoopKind = LoopKind.UNROLL, span: Span | None = None
) -> For:
    """Return the loop in which `var` is 0, 1, ... ``count - 1``."""
    zero, stop, one = (as_expr(n, var.dtype) for n in (0, count, 1))
    return For(var, zero, stop, one, body, kind, span=span)


def do(name: str, *args: Expr | int | bool, span: Span | None = None) -> Evaluate:
    """Return the statement that calls the device header's function `name`, at the user's line."""
    return Evaluate(device(name, *args), span=span)


def at(flat: Buffer, offset: Extent, access: str = "rw") -> AddressOf:
    """Return the address of element `offset` of a flat buffer."""
    return AddressOf(flat, (as_expr(offset),), access)
