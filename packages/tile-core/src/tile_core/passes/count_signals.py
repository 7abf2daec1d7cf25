"""Barriers in memory and numbered barriers as numbers that threads count up and wait for."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import ClassVar

from tile_core.analysis.uniformity import is_thread_program
from tile_core.ir.buffer import Buffer, Region, Scope, static_value
from tile_core.ir.build_expr import as_expr, binary, const
from tile_core.ir.expr import AddressOf, Binary, BinaryOp, Call, Expr, Load
from tile_core.ir.gpu_intrinsics import BARRIER_ARRIVALS
from tile_core.ir.node import Node, rewrite, walk
from tile_core.ir.stmt import (
    Alloc,
    Check,
    CheckKind,
    Evaluate,
    If,
    Kernel,
    Launch,
    Leaf,
    OnThreads,
    Seq,
    Stmt,
    Store,
)
from tile_core.ir.visitor import map_statements
from tile_core.ops.async_copy import CopyArrive
from tile_core.ops.bulk_copy import BulkCopy, BulkWait
from tile_core.ops.control import Barrier
from tile_core.ops.copy import Copy
from tile_core.ops.mbarrier import BarrierArrive, BarrierInit, BarrierWait
from tile_core.ops.select_ranges import select_ranges
from tile_core.passes.coroutines import INT32, STUCK, Await, awaits, cell, interleaved, put, read
from tile_core.records import dataclass, replace

PHASE, ARRIVED, BYTES, COUNT = range(4)
"""What is counted for a barrier: phases that are over; of the next one, arrivals and missing
bytes; and how many arrivals a phase needs."""

_WAITS = ("mbarrier_wait_parity",)
_ARRIVES = (*BARRIER_ARRIVALS, "mbarrier_expect_tx")


@dataclass(frozen=True, slots=True, eq=False)
class Arrive(Leaf):
    """Count arrivals at a barrier, and bytes that it shall wait for; of each thread that gets here.

    `barriers` holds the four numbers of several barriers, `index` says which one is meant; it hears
    of so many `times`, and misses so many bytes more.
    """

    mnemonic: ClassVar[str] = "arrive"
    barriers: Buffer
    index: Expr
    times: Expr
    nbytes: Expr

    def written(self) -> Stmt:
        """Return it as loads and stores."""

        def at(what: int) -> Load:
            return Load(self.barriers, (self.index, const(what)))

        def add(what: int, value: Expr) -> Store:
            return Store(self.barriers, (self.index, const(what)), at(what) + value)

        came = binary(BinaryOp.GE, at(ARRIVED), at(COUNT))
        complete = binary(BinaryOp.AND, came, binary(BinaryOp.EQ, at(BYTES), const(0)))
        steps = [add(ARRIVED, self.times)] if static_value(self.times) != 0 else []
        steps += [add(BYTES, self.nbytes)] if static_value(self.nbytes) != 0 else []
        over = Seq((add(PHASE, const(1)), add(ARRIVED, const(0) - at(COUNT))))
        return Seq((*_inside(self.barriers, self.index, self), *steps, If(complete, over)))


def _inside(barriers: Buffer, index: Expr, stmt: Node) -> list[Stmt]:
    """Return the check that there is a barrier of a number, unless that is certain."""
    count = static_value(barriers.shape[0]) or 0
    number = static_value(index)
    if number is not None and 0 <= number < count:
        return []
    if isinstance(index, Binary) and index.op is BinaryOp.FLOORMOD:
        least = static_value(index.b)
        if least is not None and 0 < least <= count:
            return []
    above = binary(BinaryOp.GE, index, const(0, index.dtype))
    below = binary(BinaryOp.LT, index, const(count, index.dtype))
    told = f"there is no barrier of this number in {barriers.name}[{count}]"
    return [Check(binary(BinaryOp.AND, above, below), told, CheckKind.ASSERT, span=stmt.span)]


def lower_signals(kernel: Kernel) -> Kernel:
    """Return `kernel` with waits for conditions in place of waits at barriers in memory.

    Before   eval mbarrier_arrive(&bars[0]);  eval mbarrier_wait_parity(&bars[0], 0)
    After    arrive bars 0;  await bars[0, 0] & 1 != 0

    Bulk copies are made at once, and have brought their bytes then. Threads that wait by
    themselves become ranges. What reaches other blocks of a cluster stays as it is. Returns the
    same object when there is no barrier of the kind.
    """

    def rule(node: Node) -> Node:
        return _Opener(node).run() if isinstance(node, Launch) else node

    if not any(_is_signal(node) for node in walk(kernel.body)):
        return kernel
    return rewrite(select_ranges(kernel, _is_wait), rule)


def schedule_coroutines(kernel: Kernel) -> Kernel:
    """Return `kernel` with parts that wait for each other as one program, in which they take turns.

    Before   threads 0 count 128: await a;  b = 1;    threads 128 count 128: a = 1;  await b
    After    while a part is left: run the first up to its next wait; then the second; …

    Parts that stand one behind the other run at the same time; what the whole block does comes
    before or after all of them. Returns the same object when nobody waits.
    """
    if not awaits(kernel.body):
        return kernel
    return replace(kernel, body=_turned(kernel.body))


def _is_signal(node: Node) -> bool:
    numbered = isinstance(node, Barrier) and node.number is not None
    return numbered or isinstance(node, (BarrierInit, BulkCopy))


def _is_wait(node: Node) -> bool:
    """Whether those threads that get here wait, or issue asynchronous work, by themselves."""
    if isinstance(node, (BarrierWait, BulkCopy)):
        return True
    if isinstance(node, Barrier):
        return node.number is not None
    return isinstance(node, Call) and node.function in _WAITS


class _Opener:
    """Rewrites the body of one launch."""

    def __init__(self, launch: Launch) -> None:
        self.launch = launch
        self.by_thread = is_thread_program(launch)
        self.states: dict[Buffer, Buffer] = {}
        self.numbered: dict[int, Buffer] = {}
        self.first: list[Stmt] = []

    def run(self) -> Launch:
        """Return the launch."""
        body = self.visit(self.launch.body, math.prod(self.launch.threads))
        if body is self.launch.body:
            return self.launch
        return replace(self.launch, body=Seq((*self.first, body)))

    def state(self, barriers: Buffer) -> Buffer:
        """Return the numbers of a buffer of barriers."""
        if barriers not in self.states:
            made = Buffer(barriers.name, (*barriers.shape, 4), INT32, Scope.SHARED)
            self.states[barriers] = made
            self.first.append(Alloc(made, span=barriers.span))
        return self.states[barriers]

    def visit(self, stmt: Stmt, threads: int) -> Stmt:
        """Return `stmt` as so many threads run it."""
        match stmt:
            case Alloc(buffer=buffer) if buffer.scope is Scope.BARRIER:
                return Seq(())
            case BarrierInit():
                return _zeros(self.state(stmt.barriers), stmt.counts)
            case BarrierWait(barrier=barrier, parity=parity):
                return self.wait(barrier.buffer, as_expr(barrier.starts[0]), parity, stmt)
            case BarrierArrive(ranks=()):
                warps = 1 if stmt.nbytes else -(-threads // 32)
                return self.arrive(stmt.barrier, warps, stmt.nbytes)
            case CopyArrive():
                return self.arrive(stmt.barrier, threads, 0)
            case BulkWait():
                return Seq(())
            case BulkCopy(multicast=None, reduce=None):
                return self.copied(stmt)
            case Barrier(number=Expr()):
                return self.meet(stmt, threads)
            case Evaluate(value=Call() as call):
                return self.called(stmt, call, threads)
            case OnThreads(count=count):
                threads = count
        return map_statements(stmt, lambda inner: self.visit(inner, threads))

    def called(self, stmt: Evaluate, call: Call, threads: int) -> Stmt:
        """Return what a statement of each thread says to a barrier."""
        if call.function in _WAITS:
            place, parity = call.args
            assert isinstance(place, AddressOf)
            return self.wait(place.buffer, place.indices[0], parity, stmt)
        if call.function not in _ARRIVES or (call.function == "mbarrier_arrive" and call.args[1:]):
            return stmt
        place = call.args[0]
        assert isinstance(place, AddressOf)
        each = 1 if self.by_thread else threads
        times = 0 if call.function == "mbarrier_expect_tx" else each
        nbytes = call.args[1] * each if len(call.args) > 1 else const(0)
        made = Arrive(
            self.state(place.buffer), place.indices[0], const(times), nbytes, span=stmt.span
        )
        return made if self.by_thread else made.written()

    def wait(self, barriers: Buffer, index: Expr, parity: Expr, stmt: Stmt) -> Stmt:
        """Return a wait for the phase of a parity."""
        one = const(1)
        phase = binary(BinaryOp.BITAND, Load(self.state(barriers), (index, const(PHASE))), one)
        other = binary(BinaryOp.BITAND, parity, const(1, parity.dtype))
        over = Await(binary(BinaryOp.NE, phase, other), span=stmt.span)
        checks = _inside(barriers, index, stmt)
        return Seq((*checks, over), span=stmt.span) if checks else over

    def arrive(self, barrier: Region, times: int, nbytes: int) -> Stmt:
        """Return arrivals of a whole range of threads."""
        (index,) = barrier.starts
        state = self.state(barrier.buffer)
        return Arrive(state, as_expr(index), const(times), const(nbytes)).written()

    def copied(self, op: BulkCopy) -> Stmt:
        """Return a copy that is complete at once, and what its barrier hears."""
        copy = Copy(op.src, op.dst, span=op.span)
        if op.barrier is None or op.expects:
            return copy
        extents = op.tile.static_extents
        assert extents is not None
        nbytes = math.prod(extents) * op.tile.buffer.dtype.bits // 8
        return Seq((copy, self.arrive(op.barrier, 0, -nbytes)), span=op.span)

    def meet(self, op: Barrier, threads: int) -> Stmt:
        """Return arrivals at a numbered barrier, and the wait for the others."""
        everybody = math.prod(self.launch.threads)
        number = static_value(op.number) if op.number is not None else None
        needed = threads if op.count is None else static_value(op.count)
        if threads == everybody or number is None or needed is None:
            return op
        if needed == threads and not op.arrives_only:  # between loops over these threads
            return op if self.by_thread else Seq(())
        if number not in self.numbered:
            self.numbered[number] = made = Buffer(f"barrier_{number}", (1, 4), INT32, Scope.SHARED)
            self.first += [Alloc(made), _zeros(made, [needed])]
        state, index = self.numbered[number], const(0)
        phase = Load(state, (index, const(PHASE)))
        came = Arrive(state, index, const(threads), const(0)).written()
        if op.arrives_only:
            return came
        seen = cell("seen")
        self.first.append(Alloc(seen))
        over = Await(binary(BinaryOp.NE, phase, read(seen)), span=op.span)
        return Seq((put(seen, phase), came, over), span=op.span)


def _zeros(state: Buffer, counts: Sequence[int]) -> Stmt:
    """Return what makes barriers ready."""
    return Seq(
        tuple(
            Store(state, (const(number), const(what)), const(count if what == COUNT else 0))
            for number, count in enumerate(counts)
            for what in (PHASE, ARRIVED, BYTES, COUNT)
        )
    )


# Turns -----------------------------------------------------------------------------------------


def _turned(stmt: Stmt) -> Stmt:
    """Return `stmt` without waits, and without parts that wait for each other."""
    match stmt:
        case Await(cond=cond):
            return Check(cond, STUCK, CheckKind.ASSERT, span=stmt.span)
        case Seq(body=body):
            return replace(stmt, body=tuple(_sequence(body)))
        case OnThreads(body=body):
            return _turned(body)
    return map_statements(stmt, _turned)


def _sequence(items: tuple[Stmt, ...]) -> list[Stmt]:
    made: list[Stmt] = []
    parts: list[OnThreads] = []

    def end() -> None:
        if len(parts) > 1 and any(map(awaits, parts)):
            made.extend(interleaved(parts))
        else:
            made.extend(_turned(part) for part in parts)
        parts.clear()

    for item in items:
        if isinstance(item, OnThreads):
            parts.append(item)
        elif isinstance(item, Alloc):
            made.append(item)
        elif not (isinstance(item, Seq) and not item.body):
            end()
            made.append(_turned(item))
    end()
    return made
