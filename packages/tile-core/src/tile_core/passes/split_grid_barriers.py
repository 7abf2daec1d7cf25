"""Barriers of the whole grid as the border between two launches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from tile_core.errors import Note, UnsupportedOnTarget
from tile_core.ir.arith import const
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import Call, Load, Var
from tile_core.ir.node import Node, rewrite, substitute, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateSafeValue,
    Break,
    Continue,
    For,
    Hint,
    Kernel,
    Launch,
    Let,
    Parallel,
    Pipelined,
    Seq,
    Stmt,
    flattened,
    is_statement,
)
from tile_core.ops.control import Barrier
from tile_core.passes.grid_state import GridState, first_need

_MOST_ROUNDS = 64
"""Rounds of a loop around a barrier of the grid that become launches of their own."""


def split_grid_barriers(kernel: Kernel) -> Kernel:
    """Return `kernel` with a launch in place of each part of a body between grid barriers.

    Before   launch (4): A[bx] = bx;  barrier(scope="grid");  B[bx] = A[3 - bx] + s[0]
    After    alloc s_kept
             launch (4): A[bx] = bx;  s_kept[bx, 0] = …
             launch (4): B[bx] = A[3 - bx] + s_kept[bx, 0]

    Names of pure values are repeated in each launch; tiles, variables and other values that a
    block or a thread needs behind a barrier are kept in global memory. A short loop of so many
    rounds as are known becomes launches too. Launches wait for each other whatever fits on
    the machine at a time. Returns the same object when no barrier spans the grid.

    Raises
    ------
    UnsupportedOnTarget
        If a barrier stands in a branch or in another loop, or if a block would have to remember
        something that has no place in memory, such as a barrier.
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
    launch = replace(launch, body=Seq(tuple(_unrolled(flattened(launch.body)))))
    for item in flattened(launch.body):
        if _spans_grid(item):
            parts.append([])
            continue
        inner = next((n for n in walk(item) if _spans_grid(n)), None)
        if inner is not None:
            raise _refusal("a barrier of the whole grid stands inside a branch or a loop", inner)
        parts[-1].append(item)
    state = GridState(launch)
    shared = [s for part in parts for s in part if isinstance(s, Alloc) and not _is_own(s)]
    bodies = _remembering(state, [[s for s in part if s not in shared] for part in parts])
    launches = [_renamed(replace(launch, body=Seq(tuple(body)))) for body in bodies]
    return [*shared, *state.allocations(), *launches]


def _unrolled(items: Sequence[Stmt]) -> Iterator[Stmt]:
    """Yield statements with the rounds of loops around a barrier one after the other."""
    for item in items:
        bounds = _rounds(item)
        if not isinstance(item, For) or bounds is None:
            yield item
            continue
        for number in bounds:
            fresh: dict[Node, Node] = {item.var: const(number, item.var.dtype)}
            for node in walk(item.body):
                fresh |= {made: replace(made) for made in _made_by(node)}
            yield from _unrolled(flattened(_anew(substitute(item.body, fresh))))


def _made_by(node: Node) -> tuple[Buffer | Var, ...]:
    """Return the names and tiles that a statement brings about."""
    match node:
        case Let(var=var) | For(var=var) | Pipelined(var=var):
            return (var,)
        case Parallel(vars=several):
            return several
        case Alloc(buffer=buffer):
            return (buffer,)
    return ()


def _rounds(item: Stmt) -> range | None:
    """Return the indices of a loop around a barrier, if there are few and all are known."""
    if not isinstance(item, For) or not any(_spans_grid(n) for n in walk(item.body)):
        return None
    bounds = [static_value(e) for e in (item.start, item.stop, item.step)]
    if None in bounds or any(isinstance(n, (Break, Continue)) for n in walk(item.body)):
        return None
    rounds = range(*(int(b) for b in bounds if b is not None))
    return rounds if len(rounds) <= _MOST_ROUNDS else None


def _remembering(state: GridState, parts: list[list[Stmt]]) -> list[list[Stmt]]:
    """Return the bodies of launches, each with what it needs of those before."""
    made = {item.buffer: item for part in parts for item in part if _is_own(item)}
    known: dict[Buffer | Var, Stmt] = {}
    kept: dict[Buffer | Var, Stmt] = {}
    for number, part in enumerate(parts):
        for thing, maker in known.items():
            user = next((item for item in part if _mentions(item, thing)), None)
            is_needed = isinstance(thing, Var) or first_need(_joined(parts[number:]), thing)
            if user is not None and is_needed and _may_hold(parts[:number], thing):
                if not state.can_keep(maker):
                    name = thing.name
                    raise _refusal(
                        f"{name!r} is kept across a barrier of the whole grid", user, maker
                    )
                kept[thing] = maker
        for item in part:
            if isinstance(item, Alloc) and item.buffer in made:
                known[item.buffer] = item
            elif isinstance(item, Let) and not _is_repeatable(item):
                known[item.var] = item
    moved = {t: None for t in kept if isinstance(t, Buffer) and state.is_by_element(t)}
    saved = [t for t in kept if t not in moved]
    bodies: list[list[Stmt]] = []
    before: list[Stmt] = []
    for number, part in enumerate(parts):
        ahead = [item for item in before if _is_repeatable(item)]
        ahead += [made[b] for b in made if made[b] in before and _uses(part, b)]
        ahead += [
            state.restored(t)
            for t in saved
            if kept[t] in before
            and _uses(part, t)
            and (isinstance(t, Var) or first_need(_joined(parts[number:]), t))
        ]
        ahead = [_anew(item) for item in ahead]
        later = _joined(parts[number + 1 :])
        behind = [
            state.saved(t)
            for t in saved
            if _uses(later, t) and (kept[t] in part if isinstance(t, Var) else _writes(part, t))
        ]
        before += part
        bodies.append(state.moved([*ahead, *part, *behind], [*moved]))
    return bodies


def _joined(parts: Sequence[Sequence[Stmt]]) -> list[Stmt]:
    return [item for part in parts for item in part]


def _is_own(item: Node) -> TypeGuard[Alloc]:
    """Whether a statement makes a tile of the block, or a variable of its threads."""
    return isinstance(item, Alloc) and not item.buffer.scope.is_global


def _anew(stmt: Stmt) -> Stmt:
    """Return the same statement for another place in the program."""
    return rewrite(stmt, lambda node: replace(node) if is_statement(node) else node)


def _mentions(item: Node, thing: Buffer | Var) -> bool:
    return any(n is thing or (isinstance(n, Buffer) and n.storage is thing) for n in walk(item))


def _uses(part: Sequence[Stmt], thing: Buffer | Var) -> bool:
    return any(_mentions(item, thing) for item in part)


def _may_hold(parts: Sequence[Sequence[Stmt]], thing: Buffer | Var) -> bool:
    """Whether something was put there before."""
    return isinstance(thing, Var) or any(_writes(part, thing) for part in parts)


def _writes(part: Sequence[Stmt], tile: Buffer) -> bool:
    return any(
        a.buffer.storage is tile and a.mode is not Mode.READ
        for item in part
        for a in accesses(item)
    )


def _is_repeatable(stmt: Stmt) -> bool:
    """Whether a statement only says something about what follows, the same at every time."""
    if isinstance(stmt, Let):
        return not any(isinstance(n, (Load, Call)) for n in walk(stmt.value))
    return isinstance(stmt, (Hint, AnnotateSafeValue))


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
    fresh |= {n.buffer: replace(n.buffer) for n in walk(launch.body) if _is_own(n)}
    return substitute(launch, fresh)
