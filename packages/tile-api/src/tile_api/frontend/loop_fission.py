"""Barriers in data-parallel loops: all elements get there before any goes on."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.frontend.assignments import is_pure
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, substitute, walk_once
from tile_core.ir.stmt import Alloc, Let, Parallel, Seq, Stmt, flattened
from tile_core.ops.control import Barrier


def split_at_barriers(loop: Parallel) -> list[Stmt]:
    """Return `loop` as loops with the barriers of its body between them.

    Before   parallel i in (64):              After   parallel i in (64):
                 S[i] = A[i]                              S[i] = A[i]
                 barrier                              barrier
                 B[i] = S[63 - i]                     parallel i in (64):
                                                          B[i] = S[63 - i]

    Names of values that do not change are made again behind a barrier. A loop with other names,
    or variables, that are used there is returned as it is.
    """
    body = flattened(loop.body)
    found: list[Stmt] = []
    names: list[Let] = []
    lost: set[Node] = set()
    while body:
        count = next((k for k, stmt in enumerate(body) if isinstance(stmt, Barrier)), len(body))
        part, barrier, body = body[:count], body[count : count + 1], body[count + 1 :]
        if any(node in lost for stmt in part for node in walk_once(stmt)):
            return [loop]
        if part:
            found.append(_loop(loop, (*names, *part), again=bool(found)))
        found += barrier
        names += [stmt for stmt in part if isinstance(stmt, Let) and is_pure(stmt.value)]
        lost |= {stmt.var for stmt in part if isinstance(stmt, Let)} - {let.var for let in names}
        lost |= {stmt.buffer for stmt in part if isinstance(stmt, Alloc)}
    return found


def _loop(loop: Parallel, body: Sequence[Stmt], *, again: bool) -> Parallel:
    """Return a loop like `loop` around `body`; `again`, with names of its own."""
    made = Parallel(
        loop.vars,
        loop.extents,
        Seq(tuple(body), span=loop.body.span),
        loop.coalesced_width,
        loop.loop_layout,
        span=loop.span,
    )
    if not again:
        return made
    bound = (*loop.vars, *(stmt.var for stmt in body if isinstance(stmt, Let)))
    fresh: dict[Node, Node] = {v: Var(v.name, v.dtype, span=v.span) for v in bound}
    return substitute(made, fresh)
