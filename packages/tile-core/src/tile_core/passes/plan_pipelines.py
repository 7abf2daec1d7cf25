"""Loops whose copies run ahead of the work on what they copied."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import field

from tile_core.errors import TileWarning
from tile_core.ir.buffer import Buffer
from tile_core.ir.device_calls import MOST_UNDER_WAY
from tile_core.ir.node import Node, contains, nodes_of, rewrite, walk
from tile_core.ir.stmt import Alloc, AnnotateLayout, Kernel, Launch, Pipelined, Seq, Stmt, flattened
from tile_core.ir.visitor import map_launches
from tile_core.layout import Layout
from tile_core.machine import SimtMachine
from tile_core.ops.signals import SIGNALS
from tile_core.passes.pipelines.counted_copies import COUNTED, begun_by_a_wave, require_counted_loop
from tile_core.passes.pipelines.inject import put_together
from tile_core.passes.pipelines.loop_analysis import Analysis, analyse, facts_of
from tile_core.passes.pipelines.register_prefetch import prefetch_budget
from tile_core.passes.pipelines.stage_instances import Versions, make_versions
from tile_core.records import dataclass, replace
from tile_core.remarks import NotApplicable, remark, warn

ASYNCHRONOUS = "async_copy"
"""The feature of machines whose copies into shared memory are asynchronous."""


class PipelineWarning(TileWarning):
    """A loop, or a copy in it, is not overlapped as the program asks; results are the same."""


def plan_pipelines(kernel: Kernel, machine: SimtMachine, *, folded: bool = True) -> Kernel:
    """Return `kernel` with its pipelined loops as explicit software pipelines.

    Before   pipelined k < 8, 3 stages: copy A[k], A_s;  gemm A_s
    After    copy async A[0], A_s[0]; commit;  copy async A[1], A_s[1]; commit
             for k < 8:
               wait 1;  if k + 2 < 8: copy async A[k + 2], A_s[(k + 2) % 3]
               commit;  gemm A_s[k % 3]
             wait 0

    The meaning is that of the sequential loop for every number of iterations. A tile that copies
    fill ahead has several versions, one leading dimension more. Every dependence between any
    two iterations is proven to be kept; a copy for which that fails stays in its place, and a
    loop without any other runs iteration after iteration: a `PipelineWarning` says why. Loops that
    ask for fewer than two stages, and loops around pipelined ones, are left alone.

    On machines whose copies occupy their threads, copies run one iteration ahead through registers,
    however many stages, and whichever schedule, a loop asks for: see `register_prefetch`.

    Machines whose waves count copies do so with loops of which some copies are nothing for the
    instructions of waves: see `counted`. In others the steady state has no branch, as each
    iteration begins the same number of copies. With two stages an iteration begins its own before
    it waits for those of the iteration before, unless a mask may leave some out, or there are more
    than waves count: waiting for the last would mean for its own. With more stages they stand at
    the end of the iteration, where they begin while products are in flight. If `folded`, the last
    iterations are iterations of the steady state where nothing but copies runs ahead: the body is
    written once, and a branch per iteration, which all threads take together, is around the copies.
    Otherwise the steady state has no branch, and each of the last iterations is written after it,
    as it always is where threads compute ahead.

    Raises
    ------
    ScheduleError
        If ``order=`` and ``stage=`` of a loop break a dependence.
    """
    return map_launches(kernel, lambda n: _planned(n, kernel, machine, folded=folded))


@dataclass(slots=True)
class _Planned:
    """Loops that were replaced, and the tiles with versions that were made.

    The last iterations may be iterations of the steady state if `folded`; so many `threads` of the
    `machine` run the loops.
    """

    folded: bool
    machine: SimtMachine
    threads: int
    loops: dict[Pipelined, Stmt] = field(default_factory=dict)
    versions: dict[tuple[Buffer, int], Versions] = field(default_factory=dict)


def _planned(launch: Launch, kernel: Kernel, machine: SimtMachine, *, folded: bool) -> Launch:
    annotated = [n for n in nodes_of(launch.body, Pipelined) if _asks(n)]
    inner = [n for n in annotated if not any(map(_asks, nodes_of(n.body, Pipelined)))]
    if not inner:
        return launch
    counts = machine.has(COUNTED)
    done = _Planned(folded and not counts, machine, math.prod(launch.threads))
    facts = facts_of(kernel, launch)
    for loop in inner:
        if contains(loop, *SIGNALS):
            told = "a pipelined loop does not overlap its iterations: it signals or waits"
            warn(told, loop.span, PipelineWarning, pass_name="plan_pipelines")
            continue
        beside = machine.has(ASYNCHRONOUS)
        if counts:
            try:
                require_counted_loop(loop, launch, facts, machine)
                beside = True
            except NotApplicable as why:
                remark("missed", "plan_pipelines", why.reason, why.span)
        try:
            budget = None if beside else prefetch_budget(launch, machine)
            found = analyse(loop, launch, facts, budget, counts=counts)
            _plan_loop(found, done)
        except NotApplicable as refused:
            warn(
                f"a pipelined loop does not overlap its iterations: {refused.reason}",
                refused.span or loop.span,
                PipelineWarning,
                pass_name="plan_pipelines",
            )
    if not done.loops:
        return launch
    body = rewrite(launch.body, lambda n: done.loops.get(n, n))  # type: ignore[call-overload]
    return replace(launch, body=_with_allocations(body, done))


def _asks(loop: Pipelined) -> bool:
    return loop.num_stages >= 2 or bool(loop.order)


def _plan_loop(found: Analysis, done: _Planned) -> None:
    for piece, why in found.plan.left:
        span = piece.span or found.loop.span
        told = f"a copy in a pipelined loop does not run ahead: {why}"
        warn(told, span, PipelineWarning, pass_name="plan_pipelines")
    versions = _versions(found, done)
    made = put_together(
        found.loop,
        found.body.pieces,
        found.plan,
        versions,
        found.env,
        folded=done.folded and found.folds,
        waits_late=done.machine.has(COUNTED) and _waits_late(found, done),
    )
    done.loops[found.loop] = Seq((*found.body.outside, *made), span=found.loop.span)
    depth = f"iterations overlap: copies run {found.depth} of them ahead"
    remark("passed", "plan_pipelines", depth, found.loop.span)


def _waits_late(found: Analysis, done: _Planned) -> bool:
    """Whether an iteration should begin its copies before it waits for those of the last.

    That must leave all of its own in flight, as many as waves count.
    """
    if found.depth > 1 or found.is_masked:
        return False
    copies = [p.copy for p in found.producers if p.copy is not None]
    return begun_by_a_wave(copies, done.threads, done.machine, found.env) <= MOST_UNDER_WAY


def _versions(found: Analysis, done: _Planned) -> Versions:
    """Return the new tiles; loops that need as many versions of one tile share them."""
    tiles: dict[Buffer, Buffer] = {}
    counts = found.versions
    used = {n for p in found.body.pieces for n in nodes_of(p.stmt, Buffer)}
    for storage, count in counts.items():
        views = sorted((b for b in used if b.storage is storage), key=lambda b: b.name)
        known = done.versions.get((storage, count), Versions())
        known = make_versions(views, {storage: count}, known)
        done.versions[storage, count] = known
        tiles.update(known.tiles)
    return Versions(tiles, counts)


def _with_allocations(body: Stmt, done: _Planned) -> Stmt:
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
            case Seq():
                return replace(node, body=tuple(flattened(node)))
        return node

    return rewrite(body, rule)


def _annotations(node: AnnotateLayout, done: _Planned) -> Iterator[AnnotateLayout]:
    """Yield the user's layout of a tile for each tile of its versions."""
    layout = node.layout
    if not isinstance(layout, Layout):
        return
    for (storage, count), versions in done.versions.items():
        if storage is node.buffer.storage:
            tiles = make_versions([node.buffer], {storage: count}, versions).tiles
            yield AnnotateLayout(tiles[node.buffer], layout.expand(count), span=node.span)
