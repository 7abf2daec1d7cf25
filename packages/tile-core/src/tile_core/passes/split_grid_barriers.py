"""Barriers of the whole grid as the border between two launches."""

from __future__ import annotations

from dataclasses import replace

from tile_core.errors import Note, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Call, Load, Var
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateSafeValue,
    Hint,
    Kernel,
    Launch,
    Let,
    Seq,
    Stmt,
    flattened,
)
from tile_core.ops.control import Barrier


def split_grid_barriers(kernel: Kernel) -> Kernel:
    """Return `kernel` with a launch in place of each part of a body between grid barriers.

    Before   launch (4): A[bx] = bx;  barrier(scope="grid");  B[bx] = A[3 - bx]
    After    launch (4): A[bx] = bx
             launch (4): B[bx] = A[3 - bx]

    Names of pure values are repeated in each launch. Returns the same object when no barrier
    spans the grid.

    Raises
    ------
    UnsupportedOnTarget
        If a barrier stands in a branch or loop, or if a block would have to remember
        something across it.
    """

    def rule(node: Node) -> Node:
        if isinstance(node, Launch) and any(_spans_grid(n) for n in walk(node.body)):
            return Seq(tuple(_launches(node)))
        return node

    return rewrite(kernel, rule)


def _spans_grid(node: Node) -> bool:
    return isinstance(node, Barrier) and node.scope == "grid"


def _launches(launch: Launch) -> list[Stmt]:
    parts: list[list[Stmt]] = [[]]
    for item in flattened(launch.body):
        if _spans_grid(item):
            parts.append([])
            continue
        inner = next((n for n in walk(item) if _spans_grid(n)), None)
        if inner is not None:
            raise _refusal("a barrier of the whole grid stands inside a branch or a loop", inner)
        parts[-1].append(item)
    before: list[Stmt] = []
    result: list[Stmt] = []
    for part in parts:
        _require_forgetful(before, part)
        shared = [item for item in before if _is_repeatable(item)]
        result.append(_renamed(replace(launch, body=Seq((*shared, *part)))))
        before += part
    return result


def _is_repeatable(stmt: Stmt) -> bool:
    """Whether a statement only says something about what follows, the same at every time."""
    if isinstance(stmt, Let):
        return not any(isinstance(n, (Load, Call)) for n in walk(stmt.value))
    return isinstance(stmt, (Hint, AnnotateSafeValue))


def _require_forgetful(before: list[Stmt], part: list[Stmt]) -> None:
    """Raise if `part` uses what a block or thread remembers from `before`."""
    own = {
        item.buffer: item
        for item in before
        if isinstance(item, Alloc) and not item.buffer.scope.is_global
    }
    names = {
        item.var: item for item in before if isinstance(item, Let) and not _is_repeatable(item)
    }
    for item in part:
        for node in walk(item):
            kept: Node | None = None
            if isinstance(node, Buffer):
                kept = own.get(node.storage)
            elif isinstance(node, Var):
                kept = names.get(node)
            if kept is not None:
                name = node.name if isinstance(node, (Buffer, Var)) else ""
                raise _refusal(f"{name!r} is kept across a barrier of the whole grid", item, kept)


def _refusal(what: str, node: Node, kept: Node | None = None) -> UnsupportedOnTarget:
    notes = (Note("it is made here", kept.span),) if kept is not None and kept.span else ()
    return UnsupportedOnTarget(
        f"{what}, and blocks that run one after another cannot do that",
        span=node.span,
        notes=notes,
        hint="put the barrier at the top level of the kernel, and what must outlive it into "
        "T.alloc_global or a tensor",
    )


def _renamed(launch: Launch) -> Launch:
    """Return the launch with indices and names of its own."""
    bound: list[Var] = [*launch.block_vars, *launch.thread_vars]
    bound += [n.var for n in walk(launch.body) if isinstance(n, Let)]
    fresh: dict[Node, Node] = {v: replace(v) for v in bound}
    return substitute(launch, fresh)
