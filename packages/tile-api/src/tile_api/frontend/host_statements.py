"""Statements outside of `T.Kernel`: they run once, as one block of one thread would run them."""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Scope
from tile_core.ir.expr import Const, Load, Var
from tile_core.ir.node import walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    AnnotateSafeValue,
    Check,
    Hint,
    Launch,
    Let,
    Seq,
    Stmt,
)

INT32 = dtype_of("int32")


def with_launches(body: Seq) -> Seq:
    """Return the body of a kernel with a launch around each run of statements that has none.

    Before   for i in T.Parallel(64):                After   with T.Kernel(1, threads=1):
                 B[i] = A[i] + 1                                 for i in T.Parallel(64):
                                                                     B[i] = A[i] + 1

    All machines then run the same program; on a GPU there is nothing else to run it. What the
    host does stays where it is: checks, names of numbers, workspaces, and what is only noted.
    """
    if all(_is_for_the_host(item) or _has_launch(item) for item in body.body):
        return body
    found: list[Stmt] = []
    run: list[Stmt] = []
    for item in body.body:
        if _has_launch(item) or (not run and _is_for_the_host(item)):
            found += _launched(run)
            found.append(item)
            run = []
        else:
            run.append(item)
    return Seq((*found, *_launched(run)), span=body.span)


def _has_launch(stmt: Stmt) -> bool:
    return any(isinstance(node, Launch) for node in walk(stmt))


def _is_for_the_host(stmt: Stmt) -> bool:
    match stmt:
        case Check() | Let():
            return not any(isinstance(node, Load) for node in walk(stmt))
        case Alloc(buffer=buffer):
            return buffer.scope is Scope.GLOBAL
        case Seq(body=body):
            return all(map(_is_for_the_host, body))
        case AnnotateLayout() | AnnotateSafeValue() | Hint():
            return True
    return False


def _launched(run: list[Stmt]) -> list[Stmt]:
    """Return a launch of the statements, if there are any."""
    if not run:
        return []
    span = run[0].span
    block, *threads = (Var(name, INT32, span=span) for name in ("bx", "tx", "ty", "tz"))
    grid = (Const(1, INT32, span=span),)
    body = Seq(tuple(run), span=span)
    x, y, z = threads
    return [Launch((block,), grid, (x, y, z), (1, 1, 1), body, span=span)]
