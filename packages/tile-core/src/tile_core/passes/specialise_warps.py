"""Blocks in which some threads copy and the others compute."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

from tile_core.analysis.uniformity import is_thread_program
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.node import Node, nodes_of, substitute, walk
from tile_core.ir.stmt import (
    Alloc,
    AnnotateLayout,
    Break,
    Continue,
    Hint,
    Kernel,
    Launch,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
)
from tile_core.layout import Layout
from tile_core.machine import SimtMachine
from tile_core.ops.control import Barrier, ClusterSync
from tile_core.ops.copy import Copy
from tile_core.ops.gemm import Gemm
from tile_core.ops.mbarrier import BarrierInit, SetRegisters
from tile_core.ops.signals import SIGNALS
from tile_core.passes.pipelines.loop_analysis import facts_of
from tile_core.passes.pipelines.stage_instances import Versions, make_versions
from tile_core.passes.register_estimate import TOGETHER, blocks_together
from tile_core.passes.warp_specialisation.circular_buffers import (
    LANES,
    CircularBuffer,
    CircularBuffers,
    find_circular_buffers,
)
from tile_core.passes.warp_specialisation.cluster_multicast import Sharing, ranks_of, shared_copies
from tile_core.passes.warp_specialisation.consumer import Consumer
from tile_core.passes.warp_specialisation.copy_warps import CopyWarps
from tile_core.passes.warp_specialisation.cost_heuristic import (
    asks_for_overlap,
    fitting,
    require_worth,
    tell_of_left,
)
from tile_core.passes.warp_specialisation.pipeline_state import Signals, Slots, signals_of
from tile_core.passes.warp_specialisation.producer import Producer, require_independence
from tile_core.passes.warp_specialisation.register_reallocation import fits, shared_out
from tile_core.passes.warp_specialisation.replicated_scalars import common_scalars
from tile_core.records import replace
from tile_core.remarks import NotApplicable, remark

WARP_GROUP = 128
"""Threads that hand registers to others together."""

WARPS = 4
"""Those of a group: one issues bulk copies where there are any, others fill tiles."""


UNASKED = "no loop asks for two stages or more"
"""Why a launch has no producers whose copies could run ahead of nothing."""


def specialise_warps(
    kernel: Kernel, machine: SimtMachine, is_asynchronous: Callable[[Gemm], bool] | None = None
) -> Kernel:
    """Return `kernel` with threads of their own for the copies of its pipelined loops.

    Before   launch threads 256:
               pipelined k < n, 4 stages:  copy A[k], A_s;  gemm A_s, …
    After    launch threads 384:
               barrier_init full, empty
               threads 256 count 128:  give registers away;  the first of them:
                 for k < n:  wait empty[slot];  bulk_copy A[k], A_s[slot], full[slot]
               threads 0 count 256:  take registers
                 for k < n:  wait full[slot];  gemm A_s[slot], …;  arrive empty[slot]

    The threads the user asked for consume and keep their numbers; a group of producers comes
    behind them. Copies wait for nothing but free versions of their tiles, so they run ahead of
    the MMAs as far as there are versions, across iterations of outer loops too. Machines
    without a copy engine for bulk copies are left alone, as are launches whose pipelined loops copy
    most in ways that producers cannot, and programs that speak of threads, barriers in memory
    or ranges of threads themselves. What the copy engine cannot copy is copied by the other warps
    of the group, which take iterations in turn: see `CopyWarps`, and `worth` for how much of it.
    All MMAs of a machine are asynchronous where nobody tells which one `is_asynchronous`.
    """
    beside = is_asynchronous or (lambda product: machine.has("async_mma"))
    if not machine.has("copy_engine"):
        return kernel
    done: dict[Node, Node] = {}
    for launch in nodes_of(kernel.body, Launch):
        try:
            done[launch] = _with_producers(launch, kernel, machine, beside)
        except NotApplicable as why:
            if _asks(launch) or (why.reason == UNASKED and _fills_tiles(launch)):
                told = f"no producer warps: {why.reason}"
                remark("missed", "specialise_warps", told, launch.span)
    return substitute(kernel, done) if done else kernel


def _with_producers(
    launch: Launch, kernel: Kernel, machine: SimtMachine, beside: Callable[[Gemm], bool]
) -> Launch:
    """Return a launch with producers, or raise `NotApplicable` with the reason why it has none."""
    _require_free_threads(launch, machine)
    if not _asks(launch):
        raise NotApplicable(UNASKED)
    found = find_circular_buffers(launch, facts_of(kernel, launch))
    found = fitting(launch, found, machine.shared_bytes)
    choices = [found] if found.in_bulk().buffers == found.buffers else [found, found.in_bulk()]
    refusal = None
    for choice in choices:
        try:
            require_worth(launch, choice, beside)
            return _specialised(launch, choice, machine)
        except NotApplicable as why:
            refusal = refusal or why
    raise refusal or NotApplicable(UNASKED)


def _asks(launch: Launch) -> bool:
    return any(map(asks_for_overlap, nodes_of(launch.body, Pipelined)))


def _fills_tiles(launch: Launch) -> bool:
    """Whether tiles in shared memory are copied from tensors, in a way that is left open."""
    copies = nodes_of(launch.body, Copy)
    free = (n for n in copies if n.prefer_instruction is None and not n.disable_bulk)
    ends = ((n.src.buffer.scope, n.dst.buffer.scope) for n in free)
    return any(end == (Scope.GLOBAL, Scope.SHARED) for end in ends)


def _require_free_threads(launch: Launch, machine: SimtMachine) -> None:
    """Refuse a launch that cannot have producers, whatever it copies."""
    x, y, z = launch.threads
    if y * z != 1 or x % machine.warp_size:
        raise NotApplicable(
            f"the {math.prod(launch.threads)} threads are not whole warps in one dimension"
        )
    if x + WARP_GROUP > machine.max_threads:
        raise NotApplicable(f"a block with {x} threads cannot have more")
    if is_thread_program(launch):
        raise NotApplicable("the program names its threads")
    for node in walk(launch.body):
        if isinstance(node, Gemm) and not fits(node, x, machine):
            raise NotApplicable(
                f"{x + WARP_GROUP} threads lack registers for MMAs of {node.mnk[1]} columns"
            )
        if isinstance(node, OnThreads):
            raise NotApplicable("the program gives ranges of threads their own work")
        if isinstance(node, Buffer) and node.scope is Scope.BARRIER:
            raise NotApplicable("the program has barriers of its own")
        if isinstance(node, (Break, Continue)):
            raise NotApplicable("a loop does not run to its end")
        if isinstance(node, Pipelined) and node.order:
            raise NotApplicable("the program gives the order of a loop")
        if isinstance(node, Barrier):
            raise NotApplicable("the program has barriers of all threads")
        if isinstance(node, SIGNALS):
            raise NotApplicable("the block signals, or waits for signals, as a whole")


def _specialised(launch: Launch, found: CircularBuffers, machine: SimtMachine) -> Launch:
    """Return the launch with producers, and tell what these do not do."""
    circular_buffers = found.buffers
    signals = signals_of(circular_buffers)
    versions = _versions(launch, circular_buffers)
    consumers = math.prod(launch.threads)
    registers, kept = None, None
    try:
        registers = shared_out(launch, circular_buffers, machine)
    except NotApplicable as why:
        kept = why.reason
    by_warps = not all(circular.in_bulk for circular in circular_buffers)
    behind = machine.warp_size if registers is None and not by_warps else WARP_GROUP
    shared = shared_copies(launch, circular_buffers) if machine.has("clusters") else {}
    producers = _producers(launch, signals, versions, shared, machine.warp_size)
    for program in producers:
        require_independence(program, launch)
    consumer = Consumer(signals, versions, shared).program(launch.body)
    give: tuple[Stmt, ...] = ()
    take: tuple[Stmt, ...] = ()
    together: tuple[Stmt, ...] = ()
    if registers is not None:
        give, take = (SetRegisters(registers.few, False),), (SetRegisters(registers.many, True),)
        if registers.blocks > 1 and blocks_together(launch) is None:
            together = (Hint(TOGETHER, (registers.blocks,)),)
    body = Seq(
        (
            *together,
            *_allocations(launch.body, circular_buffers, versions),
            *_barriers(signals, consumers // machine.warp_size, shared),
            OnThreads(consumers, behind, Seq((*give, *producers)), span=launch.span),
            OnThreads(0, consumers, Seq((*take, consumer)), span=launch.span),
            *((ClusterSync(),) if shared else ()),  # nobody leaves while others may reach him
        )
    )
    remark("passed", "specialise_warps", "producer warps copy for the others", launch.span)
    tell_of_left(found)
    if kept is not None:
        told = f"registers are not reallocated: {kept}"
        remark("missed", "specialise_warps", told, launch.span)
    return replace(launch, threads=(consumers + behind, 1, 1), body=body)


def _producers(
    launch: Launch,
    signals: tuple[Signals, ...],
    versions: Versions,
    shared: Mapping[Copy, Sharing],
    warp: int,
) -> list[OnThreads]:
    """Return the programs of the thread that starts bulk copies, and of warps that fill tiles."""

    def own() -> dict[Buffer, Buffer]:
        return {b: replace(b) for b in scalars}

    scalars = common_scalars(launch)
    engine = tuple(s for s in signals if s.circular.in_bulk)
    by_warps = tuple(s for s in signals if not s.circular.in_bulk)
    made: list[OnThreads] = []
    if engine:
        first = Producer(engine, versions, own(), shared).program(launch.body)
        made.append(OnThreads(0, 1, first))
    taken = len(made)
    warps = warps_for(by_warps, WARPS - taken)
    for number in range(warps):
        filler = CopyWarps(by_warps, versions, own(), number=number, of=warps)
        made.append(OnThreads((taken + number) * warp, warp, filler.program(launch.body)))
    return made


def warps_for(signals: Sequence[Signals], most: int) -> int:
    """Return how many of `most` warps take turns to fill these buffers: see `CopyWarps`."""
    return min((most, *(s.circular.count for s in signals))) if signals else 0


def _versions(launch: Launch, circular_buffers: tuple[CircularBuffer, ...]) -> Versions:
    counts = {
        tile: circular.count
        for circular in circular_buffers
        for tile in circular.tiles
        if circular.count > 1
    }
    views = {n for n in nodes_of(launch.body, Buffer) if n.storage in counts}
    made = make_versions(sorted(views, key=lambda b: b.name), counts)
    return Slots(made.tiles, made.counts)


def _allocations(
    body: Stmt, circular_buffers: tuple[CircularBuffer, ...], versions: Versions
) -> list[Stmt]:
    """Return the allocations of the circular buffers' tiles, and their layouts, for all threads."""
    tiles = {tile for circular in circular_buffers for tile in circular.tiles}
    tiles_here = (n for n in nodes_of(body, Alloc) if n.buffer in tiles)
    hints = (n for n in nodes_of(body, AnnotateLayout) if n.buffer.storage in tiles)
    return [
        *(Alloc(versions.tiles.get(n.buffer, n.buffer), span=n.span) for n in tiles_here),
        *(_versioned_layout(hint, versions) for hint in hints),
    ]


def _versioned_layout(node: AnnotateLayout, versions: Versions) -> AnnotateLayout:
    tile, layout = versions.tiles.get(node.buffer), node.layout
    if tile is None or not isinstance(layout, Layout):
        return node
    count = versions.counts[node.buffer.storage]
    return AnnotateLayout(tile, layout.expand(count), span=node.span)


def _barriers(
    signals: tuple[Signals, ...], warps: int, shared: Mapping[Copy, Sharing]
) -> list[Stmt]:
    """Return the barriers of the circular buffers, ready for all who arrive at them."""
    made: list[Stmt] = []
    for s in signals:
        made += [Alloc(s.full), Alloc(s.empty)]
    for s in signals:
        full = 1 + (LANES if s.circular.arrives_by_itself else 0)
        made.append(BarrierInit(s.full, (full,) * s.circular.count))
        blocks = max(1, len(ranks_of(s.circular, shared)))
        made.append(BarrierInit(s.empty, (warps * blocks,) * s.circular.count))
    made.append(ClusterSync() if shared else Barrier())
    return made
