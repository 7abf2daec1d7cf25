"""Data-parallel loops: fusing direct nests, and what their bodies may contain."""

from __future__ import annotations

from tile_core.errors import Note, ParallelBodyError
from tile_core.ir.buffer import Scope
from tile_core.ir.node import Node
from tile_core.ir.stmt import (
    Alloc,
    Launch,
    Leaf,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    flattened,
)
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
    if not isinstance(body, Parallel) or any(v in _vars_of(body) for v in map(id, loop.vars)):
        return loop
    return Parallel(
        (*loop.vars, *body.vars),
        (*loop.extents, *body.extents),
        body.body,
        body.coalesced_width if loop.coalesced_width is None else loop.coalesced_width,
        body.loop_layout if loop.loop_layout is None else loop.loop_layout,
        span=loop.span,
    )


def _vars_of(loop: Parallel) -> set[int]:
    """Return the identities of variables in the extents: those keep a nest apart."""
    from tile_core.ir.expr import Var
    from tile_core.ir.node import walk

    return {id(n) for e in loop.extents for n in walk(e) if isinstance(n, Var)}


def parallel_parts(loop: Parallel) -> list[Stmt]:
    """Return a data-parallel loop as the loops and barriers that it stands for.

    Raises
    ------
    ParallelBodyError
        For a tile operator, a barrier that does not split the loop, a `T.Parallel` that is not
        directly nested, a `T.Pipelined` or launch inside, an allocation of a whole tile.
    """
    parts: list[Stmt] = [loop]
    if any(isinstance(stmt, Barrier) for stmt in flattened(loop.body)):
        from tile_api.frontend.loop_fission import split_at_barriers  # few kernels need it

        parts = split_at_barriers(loop)
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
