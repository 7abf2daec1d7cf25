"""Data-parallel loops: fusing direct nests, splitting at barriers, and what bodies may contain."""

from __future__ import annotations

from collections.abc import Sequence

from tile_api.frontend.assignments import is_pure
from tile_core.errors import Note, ParallelBodyError
from tile_core.ir.buffer import Scope
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, substitute, walk, walk_once
from tile_core.ir.stmt import Alloc, Launch, Leaf, Let, Parallel, Pipelined, Seq, Stmt, flattened
from tile_core.ir.visitor import statements_in
from tile_core.ops.control import Barrier
from tile_core.ops.printing import Print
from tile_core.ops.reducer import ReducerUpdate


def fuse_parallel(loop: Parallel) -> Parallel:
    """Return one loop for a `Parallel` whose whole body is another `Parallel`.

    Before: ``parallel i in (4): parallel j in (8): body``.
    After: ``parallel i, j in (4, 8): body``.
    """
    body = loop.body
    while isinstance(body, Seq) and len(body.body) == 1:
        body = body.body[0]
    if not isinstance(body, Parallel):
        return loop
    own = {*loop.vars}
    if any(node in own for extent in body.extents for node in walk(extent)):
        return loop  # the extents depend on the loop around
    return Parallel(
        (*loop.vars, *body.vars),
        (*loop.extents, *body.extents),
        body.body,
        body.coalesced_width if loop.coalesced_width is None else loop.coalesced_width,
        body.loop_layout if loop.loop_layout is None else loop.loop_layout,
        span=loop.span,
    )


def parallel_parts(loop: Parallel) -> list[Stmt]:
    """Return a data-parallel loop as the loops and barriers it stands for; bodies are checked."""
    parts = _split_at_barriers(loop)
    for part in parts:
        if isinstance(part, Parallel):
            _check(part.body, part)
    return parts


def _check(stmt: Stmt, loop: Parallel) -> None:
    match stmt:
        case Print(source=None) | ReducerUpdate():
            return
        case Barrier():
            raise _error(
                stmt,
                loop,
                "a barrier in T.Parallel ends the loop and begins another: it stands in the body "
                "itself, and values and variables do not reach behind it",
                "keep what is needed behind it in a tile, as in F[i] = A[i]",
            )
        case Leaf():
            raise _error(
                stmt,
                loop,
                f"the tile operator {type(stmt).mnemonic!r} works on a whole tile and cannot "
                "stand in the element-wise body of T.Parallel",
                "move it out of the loop, or assign single elements, as in B[i, j] = A[i, j]",
            )
        case Parallel():
            raise _error(
                stmt,
                loop,
                "T.Parallel inside T.Parallel must be nested directly, with no other statement "
                "between",
                "use one loop with all extents: for i, j in T.Parallel(M, N)",
            )
        case Pipelined() | Launch():
            what = "T.Pipelined" if isinstance(stmt, Pipelined) else "T.Kernel"
            raise _error(
                stmt,
                loop,
                f"{what} cannot stand inside T.Parallel",
                "put T.Parallel inside the pipelined loop",
            )
        case Alloc(buffer=buffer) if buffer.scope not in (Scope.LOCAL, Scope.VAR):
            raise _error(
                stmt,
                loop,
                f"the tile {buffer.name!r} cannot be allocated inside T.Parallel",
                "allocate it before the loop",
            )
    for inner in statements_in(stmt):
        _check(inner, loop)


def _error(node: Node, loop: Parallel, message: str, hint: str) -> ParallelBodyError:
    note = Note("the data-parallel loop is here", loop.span)
    return ParallelBodyError(message, span=node.span, notes=(note,), hint=hint)


def _split_at_barriers(loop: Parallel) -> list[Stmt]:
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
    if not any(isinstance(stmt, Barrier) for stmt in body):
        return [loop]
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
