"""Loops whose copies run ahead of the work on what they copied."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Protocol, TypeGuard

from tile_core.errors import Span, TileWarning
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Expr, Var
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    Check,
    Kernel,
    Launch,
    Let,
    Pipelined,
    Seq,
    Stmt,
)
from tile_core.layout import Layout
from tile_core.passes.hazards import Memory
from tile_core.passes.liveness import flows_out
from tile_core.passes.pipelines.body import Body, CannotOverlap, take_apart
from tile_core.passes.pipelines.dependences import Dependences
from tile_core.passes.pipelines.inject import put_together
from tile_core.passes.pipelines.instances import Versions, make_versions, why_not_versioned
from tile_core.passes.pipelines.schedule import Plan, automatic, by_hand
from tile_core.passes.ranges import Env
from tile_core.passes.touches import is_plain

ASYNCHRONOUS = "cp_async"
"""The feature of machines whose copies into shared memory run beside the threads."""


class Machine(Protocol):
    """What this pass asks of a machine."""

    def has(self, feature: str) -> bool:
        """Whether the machine has an instruction or ability."""


class PipelineWarning(TileWarning):
    """A loop, or a copy in it, is not overlapped as the program asks; results are the same."""


def plan_pipelines(kernel: Kernel, machine: Machine) -> Kernel:
    """Return `kernel` with its pipelined loops as explicit software pipelines.

    Before   pipelined k < 8, 3 stages: copy A[k], A_s;  gemm A_s
    After    copy async A[0], A_s[0]; commit;  copy async A[1], A_s[1]; commit
             for k < 6: wait 1;  copy async A[k + 2], A_s[(k + 2) % 3]; commit;  gemm A_s[k % 3]
             wait 1; gemm A_s[0];  wait 0; gemm A_s[1]

    The meaning is that of the sequential loop for every number of rounds. A tile that copies
    fill ahead has several versions, one leading dimension more. Every dependence between any
    two rounds is proven to be kept; a copy for which that fails stays in its place, and a
    loop without any other runs round after round: a `PipelineWarning` says why. Loops that
    ask for fewer than two stages, and loops around pipelined ones, are left alone, as is
    everything on machines whose copies occupy their threads.

    Raises
    ------
    ScheduleError
        If ``order=`` and ``stage=`` of a loop break a dependence.
    """
    if not machine.has(ASYNCHRONOUS):
        return kernel

    def rule(node: Node) -> Node:
        return _planned(node, kernel) if isinstance(node, Launch) else node

    return rewrite(kernel, rule)


@dataclass(slots=True)
class _Done:
    """Loops that were replaced, and the tiles with versions that were made."""

    loops: dict[Pipelined, Stmt] = field(default_factory=dict)
    versions: dict[tuple[Buffer, int], Versions] = field(default_factory=dict)


def _planned(launch: Launch, kernel: Kernel) -> Launch:
    wishes = [n for n in walk(launch.body) if _asks(n)]
    inner = [n for n in wishes if not any(_asks(m) for m in walk(n.body))]
    if not inner:
        return launch
    done = _Done()
    for loop in inner:
        try:
            _plan_loop(loop, launch, _facts(kernel, launch), done)
        except CannotOverlap as refused:
            _warn(
                f"a pipelined loop runs round after round: {refused.reason}",
                refused.span or loop.span,
            )
    if not done.loops:
        return launch
    body = rewrite(launch.body, lambda n: done.loops.get(n, n))  # type: ignore[call-overload]
    return replace(launch, body=_with_allocations(body, done))


def _asks(node: Node) -> TypeGuard[Pipelined]:
    return isinstance(node, Pipelined) and (node.num_stages >= 2 or bool(node.order))


def _warn(message: str, span: Span | None) -> None:
    if span is None:
        warnings.warn(message, PipelineWarning, stacklevel=2)
    else:
        warnings.warn_explicit(message, PipelineWarning, span.file, span.line)


def _facts(kernel: Kernel, launch: Launch) -> Env:
    """Return what is known of numbers everywhere in the launch."""
    env = Env()
    for param in kernel.params:
        extents = (*param.shape, *(param.strides or ())) if isinstance(param, Buffer) else ()
        symbols = {v for e in extents if isinstance(e, Expr) for v in walk(e)}
        for var in sorted((s for s in symbols if isinstance(s, Var)), key=lambda v: v.name):
            env = env.with_symbol(var)
    body = kernel.body.body if isinstance(kernel.body, Seq) else (kernel.body,)
    for stmt in body:
        if isinstance(stmt, Let):
            env = env.with_let(stmt.var, stmt.value)
        elif isinstance(stmt, Check):
            env = env.assuming(stmt.cond)
    for var, extent in zip(launch.block_vars, launch.grid, strict=True):
        env = env.with_loop(var, 0, extent)
    for node in walk(launch.body):
        if isinstance(node, Let) and is_plain(node.value):
            env = env.with_let(node.var, node.value)
    return env


def _plan_loop(loop: Pipelined, launch: Launch, env: Env, done: _Done) -> None:
    body = take_apart(loop)
    memory = Memory(env=env.with_loop(loop.var, loop.start, loop.stop))
    deps = Dependences(body, loop.var, memory)

    def obstacle(storage: Buffer) -> str | None:
        return _obstacle(storage, body, loop, launch)

    plan = by_hand(loop, deps, obstacle) if loop.order else automatic(loop, deps, obstacle)
    for piece, why in plan.left:
        _warn(f"a copy in a pipelined loop does not run ahead: {why}", piece.span or loop.span)
    versions = _versions(plan, body, done)
    made = put_together(loop, body.pieces, plan, versions, memory.env)
    done.loops[loop] = Seq((*body.outside, *made), span=loop.span)


def _obstacle(storage: Buffer, body: Body, loop: Pipelined, launch: Launch) -> str | None:
    """Why `storage` cannot have several versions."""
    if storage.scope is not Scope.SHARED:
        return f"{storage.name!r} is not in shared memory, where a tile can have versions"
    if flows_out(launch.body, loop, storage):
        return f"what the loop leaves in {storage.name!r} is used after it"
    return why_not_versioned((p.stmt for p in body.pieces), storage)


def _versions(plan: Plan, body: Body, done: _Done) -> Versions:
    """Return the new tiles; loops that need as many versions of one tile share them."""
    tiles: dict[Buffer, Buffer] = {}
    counts = {s: n for s, n in plan.schedule.versions.items() if n > 1}
    used = {n for p in body.pieces for n in walk(p.stmt) if isinstance(n, Buffer)}
    for storage, count in counts.items():
        views = sorted((b for b in used if b.storage is storage), key=lambda b: b.name)
        known = done.versions.get((storage, count), Versions())
        known = make_versions(views, {storage: count}, known)
        done.versions[storage, count] = known
        tiles.update(known.tiles)
    return Versions(tiles, counts)


def _with_allocations(body: Stmt, done: _Done) -> Stmt:
    """Return the body with allocations and layouts of versions beside those of the tiles."""
    used = {
        child.storage
        for node in walk(body)
        if not isinstance(node, (Alloc, AnnotateLayout))
        for child in node.children()
        if isinstance(child, Buffer)
    }

    def rule(node: Node) -> Node:
        match node:
            case Alloc(buffer=buffer):
                made = [v.tiles[s] for (s, _), v in done.versions.items() if s is buffer]
                kept = [node] if buffer in used or not made else []
                return Seq((*kept, *(Alloc(tile, span=node.span) for tile in made)))
            case AnnotateLayout(buffer=buffer):
                added = list(_annotations(node, done))
                kept_hint = [node] if buffer.storage in used or not added else []
                return Seq((*kept_hint, *added))
            case Seq(body=items):
                return replace(node, body=tuple(_opened(items)))
        return node

    return rewrite(body, rule)


def _annotations(node: AnnotateLayout, done: _Done) -> Iterator[AnnotateLayout]:
    """Yield the user's layout of a tile for each tile of its versions."""
    layout = node.layout
    if not isinstance(layout, Layout):
        return
    for (storage, count), versions in done.versions.items():
        if storage is node.buffer.storage:
            tiles = make_versions([node.buffer], {storage: count}, versions).tiles
            yield AnnotateLayout(tiles[node.buffer], layout.expand(count), span=node.span)


def _opened(items: tuple[Stmt, ...]) -> list[Stmt]:
    """Return the statements of a sequence, sequences in it opened."""
    opened: list[Stmt] = []
    for item in items:
        opened.extend(_opened(item.body) if isinstance(item, Seq) else (item,))
    return opened
