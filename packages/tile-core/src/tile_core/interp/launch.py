"""Running a kernel: arguments in, host statements, grids of blocks."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.analysis.uniformity import is_thread_program
from tile_core.errors import Deadlock, EmptyGridError, Note
from tile_core.interp.arguments import bind
from tile_core.interp.clocks import Clocks
from tile_core.interp.execution_state import (
    BlockState,
    Cluster,
    InterpreterState,
    InterpretOptions,
    Lanes,
)
from tile_core.interp.expressions import evaluate
from tile_core.interp.signals import stuck
from tile_core.interp.statement_facts import goes_apart
from tile_core.interp.statements import run, steps
from tile_core.interp.threads import run_threads, waits_for
from tile_core.interp.values import carrier, element_bits
from tile_core.interp.wait_events import Event, GridWait, Pending, YieldPoint
from tile_core.ir.buffer import Buffer
from tile_core.ir.cluster_position import check_clusters, place_in_cluster
from tile_core.ir.expr import Expr
from tile_core.ir.node import nodes_of, walk
from tile_core.ir.ranks import spans_ranks
from tile_core.ir.stmt import Kernel, Launch, Stmt
from tile_core.ops.privatise_tiles import privatise_tiles
from tile_core.ops.random_loops import distribute_random_loops
from tile_core.ops.select_ranges import select_ranges
from tile_core.ops.signals import WaitSignal


def interpret(
    kernel: Kernel, args: Sequence[Any], *, options: InterpretOptions | None = None
) -> None:
    """Run `kernel` on NumPy arrays, changing those it writes.

    Parameters
    ----------
    args
        One per parameter, in order, outputs included: NumPy arrays (ml_dtypes for bfloat16 and
        narrow floats; packed bytes, or ml_dtypes arrays, for four-bit types), Python numbers for
        scalars. A tensor the kernel never touches may be None.
    options
        Which checks are made, and in which order blocks run.

    Raises
    ------
    OutOfBounds, UninitialisedRead, DataRace, Deadlock, UndefinedOperation
        What the kernel does wrong, with the user's line.
    DeviceAssertError, AssumptionError
        If a condition it states does not hold.
    LaunchError
        If an argument is not what the kernel declares, or a grid is empty.
    """
    machine = InterpreterState(options or InterpretOptions(), evaluate, _launch)
    kernel = privatise_tiles(select_ranges(distribute_random_loops(kernel)))
    machine.granules = _granules(kernel)
    if any(map(spans_ranks, nodes_of(kernel.body, Launch))):
        machine.clocks = Clocks(kernel.body)
    with np.errstate(all="ignore"):
        finish = bind(kernel, args, machine)
        run(kernel.body, Lanes(None, machine))
    for step in finish:
        step()


def _granules(kernel: Kernel) -> dict[Buffer, int]:
    """Return for each storage the bits of its smallest element in any view."""
    found: dict[Buffer, int] = {}
    for node in (*kernel.params, *walk(kernel.body)):
        if isinstance(node, Buffer):
            bits = element_bits(node.dtype)
            found[node.storage] = min(bits, found.get(node.storage, bits))
    return found


@dataclass(slots=True, eq=False)
class _Running:
    block: BlockState
    program: Iterator[Event]
    event: Event | None = None
    done: bool = False
    place: int = 0  # its number in the grid


def _launch(launch: Launch, host: Lanes) -> None:
    """Run all blocks of a grid; each as far as it gets before it waits for others."""
    machine = host.machine
    grid = [int(evaluate(extent, host)[0]) for extent in launch.grid]
    for axis, extent in enumerate(grid):
        if extent <= 0:
            raise EmptyGridError(
                f"dimension {'xyz'[axis]} of the grid is {extent}",
                span=launch.span,
                hint="do not call the kernel when there is nothing to do",
            )
    _mark_contended(launch if machine.clocks is None else machine.clocks.body, machine)
    check_clusters(grid, launch)
    epoch = machine.next_epoch()
    explicit = is_thread_program(launch) or goes_apart(launch)
    clusters: dict[tuple[int, ...], Cluster] = {}
    ranks = grid[-1] if spans_ranks(launch) else 1
    first = 0 if machine.clocks is None else machine.clocks.begin(math.prod(grid), ranks)

    def begin(number: int) -> _Running:
        running = _start(launch, host, number, grid, epoch, explicit, clusters)
        running.block.number += first
        _advance(running)
        return running

    _finish(_Queue(_order(math.prod(grid), machine.options), ranks, begin), machine)


def _mark_contended(root: Stmt, machine: InterpreterState) -> None:
    written = machine.facts(root).written
    through_pointer = any(isinstance(root.origin, Expr) for root in written)
    machine.contended = {root for root in written if root.scope.is_global}
    for owner, storage in machine.memory.items():
        storage.contended = through_pointer or owner in written


def _order(count: int, options: InterpretOptions) -> list[int]:
    numbers = list(range(count))
    if options.block_order == "reverse":
        numbers.reverse()
    elif options.block_order == "random":
        np.random.default_rng(options.seed).shuffle(numbers)
    return numbers


def _start(
    launch: Launch,
    host: Lanes,
    number: int,
    grid: list[int],
    epoch: int,
    explicit: bool,
    clusters: dict[tuple[int, ...], Cluster],
) -> _Running:
    block = BlockState(host.machine, number, epoch, math.prod(launch.threads))
    block.thread_epoch = host.machine.next_epoch()
    lanes = Lanes(block, host.machine)
    lanes.env, lanes.safe, rest = dict(host.env), host.safe, number
    for var, extent in zip(launch.block_vars, grid, strict=True):
        lanes.env[var] = np.array([rest % extent], carrier(var.dtype))
        rest //= extent
    index = [int(lanes.env[var][0]) for var in launch.block_vars]
    home, block.rank = place_in_cluster(index, launch.cluster)
    size = math.prod(launch.cluster)
    if size > 1:
        block.cluster = clusters.setdefault(home, Cluster(size, block.threads))
        block.cluster.blocks[block.rank] = block
    if explicit:
        return _Running(block, run_threads(launch, block, lanes))
    return _Running(block, steps(launch.body, lanes))


def _advance(running: _Running) -> None:
    """Run a block until it finishes, waits for the grid, or spins without progress."""
    machine = running.block.machine
    idle = 0
    while True:
        before = machine.stores
        try:
            running.event = next(running.program)
        except StopIteration:
            running.done = True
            return
        if isinstance(running.event, GridWait):
            return
        idle = 0 if machine.stores != before else idle + 1
        if idle > 2:
            return


class _Queue:
    """Blocks that have not begun, because others of their rank have all the places."""

    def __init__(self, order: list[int], ranks: int, begin: Callable[[int], _Running]) -> None:
        self.total, self.begin = len(order), begin
        self.share = len(order) // ranks  # of each rank
        self.order = order

    def begun(self, waiting: list[_Running], resident: int) -> list[_Running]:
        """Begin as many as there are places for; return all that wait then."""
        if not resident:
            for number in self.order:
                running = self.begin(number)
                if not running.done:
                    waiting.append(running)
            self.order = []
            return waiting
        left = []
        for number in sorted(self.order):
            rank = number // self.share
            if sum(r.place // self.share == rank for r in waiting) >= resident:
                left.append(number)
                continue
            running = self.begin(number)
            running.place = number
            waiting = [*waiting, *([] if running.done else [running])]
        self.order = left
        return waiting


def _finish(queue: _Queue, machine: InterpreterState) -> None:
    """Let blocks that wait for each other take turns until all are done."""
    idle, total = 0, queue.total
    waiting = queue.begun([], machine.options.resident)
    turns = np.random.default_rng(machine.options.seed)
    while waiting:
        if machine.options.block_order == "random":
            waiting = [waiting[k] for k in turns.permutation(len(waiting))]
        if all(isinstance(r.event, GridWait) for r in waiting):
            if len(waiting) < total:
                raise _stuck(waiting, "other blocks have finished without reaching it")
            epoch = machine.next_epoch()
            for running in waiting:
                running.block.epoch = epoch
                running.event = None
        before = machine.stores
        for running in waiting:
            if not isinstance(running.event, GridWait):
                _advance(running)
        remaining = queue.begun([r for r in waiting if not r.done], machine.options.resident)
        idle = 0 if machine.stores != before or len(remaining) < len(waiting) else idle + 1
        waiting = remaining
        if idle > machine.options.spin_limit:
            in_cluster = any(isinstance(r.event, Pending) for r in waiting)
            helper = "block of its cluster does" if in_cluster else "thread writes"
            raise _stuck(waiting, f"no {helper} what it waits for")


def _stuck(waiting: list[_Running], why: str) -> Deadlock:
    clocks = waiting[0].block.machine.clocks
    signals = [
        (r.block, r.event)
        for r in waiting
        if isinstance(r.event, Pending) and isinstance(r.event.node, WaitSignal)
    ]
    if clocks is not None and signals:
        return stuck(sorted(signals, key=lambda wait: wait[0].number), clocks)
    event = next((r.event for r in waiting if isinstance(r.event, YieldPoint)), waiting[0].event)
    notes = [
        Note(f"block {r.block.number}: {waits_for(r.event)}", r.event.node.span)
        for r in waiting
        if isinstance(r.event, Pending)
    ]
    return Deadlock(
        f"block {waiting[0].block.number} waits for ever: {why}",
        span=None if event is None else event.node.span,
        notes=tuple(notes),
        hint="every block of the cluster must arrive as often as others wait" if notes else None,
    )
