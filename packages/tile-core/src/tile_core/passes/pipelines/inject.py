"""A pipelined loop put together: iterations begun ahead, the steady state, iterations finished."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from tile_core.analysis.memory_access import is_plain
from tile_core.arith.constraints import ConstraintSet
from tile_core.errors import Span
from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import BinaryOp, Expr, Var
from tile_core.ir.stmt import For, If, Let, Pipelined, Seq, Stmt
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.passes.pipelines.copy_group_waits import Begin, Close, Event, Events, Wait, events_of
from tile_core.passes.pipelines.loop_body import BranchPredicate, Piece, Prefix
from tile_core.passes.pipelines.schedule import PipelineSchedule
from tile_core.passes.pipelines.stage_instances import Versions, instance, value_of
from tile_core.records import dataclass, replace

Turn: TypeAlias = Callable[[int], "Expr | None"]
"""The iteration that a stage works on; None if it rests."""


@dataclass(frozen=True, slots=True)
class PipelineIterations:
    """The iterations of a loop: from `start` to `stop`, of which there are `count`.

    The `count` is None where it is known only at run time.
    """

    start: Expr
    stop: Expr
    count: int | None
    env: ConstraintSet

    def number(self, base: Expr, offset: int) -> Expr:
        """Return ``base + offset``."""
        if offset < 0:
            return binary(BinaryOp.SUB, base, -offset)
        return binary(BinaryOp.ADD, base, offset)

    def surely_more_than(self, number: int) -> bool:
        """Whether there are certainly more than `number` iterations."""
        if self.count is not None:
            return self.count > number
        return self.env.proves(self.number(self.start, number) < self.stop)

    def surely_not_more_than(self, number: int) -> bool:
        """Whether there are certainly no more than `number` iterations."""
        return self.count is not None and self.count <= number


def put_together(
    loop: Pipelined,
    pieces: Sequence[Piece],
    plan: PipelineSchedule,
    versions: Versions,
    env: ConstraintSet,
    *,
    folded: bool = False,
    waits_late: bool = False,
) -> list[Stmt]:
    """Return statements that run the iterations of `loop` by the schedule of `plan`.

    Before   for k < 8: copy k; gemm k                         (copy in stage 0, gemm in 2)
    After    copy 0; copy 1;                                    one group each
             for k < 6: wait 1; copy k + 2; gemm k
             wait 1; gemm 6;  wait 0; gemm 7
    folded   copy 0; copy 1
             for k < 8: wait 1; if k + 2 < 8: copy k + 2; close the group;  gemm k
             wait 0

    The steady state has no guards; if it is `folded`, it has one around the pieces of each
    stage before the last, and nothing is left to finish. An iteration whose copies are over still
    closes its groups, which are empty: counting groups remains counting iterations, and the waits
    of the steady state remain right. Where the number of iterations is not known to be enough,
    what is begun ahead and what is finished after is guarded. What may be `folded` tells
    `Analysis.folds`. If it `waits_late`, an iteration waits for earlier copies when its own
    have begun.
    """
    maker = _Maker(loop, pieces, plan, versions, env)
    return list(maker.statements(events_of(pieces, plan, late=waits_late), folded))


@dataclass(slots=True)
class _Scope:
    """Names given so far, by the element that gives them and the stage it is given for."""

    values: dict[int, dict[Var, Expr]] = field(default_factory=dict)

    def inner(self) -> _Scope:
        return _Scope({stage: dict(values) for stage, values in self.values.items()})


class _Maker:
    def __init__(
        self,
        loop: Pipelined,
        pieces: Sequence[Piece],
        plan: PipelineSchedule,
        versions: Versions,
        env: ConstraintSet,
    ) -> None:
        self.loop, self.pieces, self.plan = loop, pieces, plan
        self.versions, self.depth = versions, plan.schedule.depth
        self.before: list[Stmt] = []
        start = self._bound("first", loop.start)
        stop = self._bound("last", loop.stop)
        first, last = static_value(start), static_value(stop)
        known = first is not None and last is not None
        count = max((last or 0) - (first or 0), 0) if known else None
        self.iterations = PipelineIterations(start, stop, count, env)

    def _bound(self, name: str, value: Expr) -> Expr:
        if is_plain(value):
            return value
        let = Let(Var(name, value.dtype), value, span=self.loop.span)
        self.before.append(let)
        return let.var

    def statements(self, events: Events, folded: bool) -> Iterator[Stmt]:
        """Yield what runs in the place of the loop.

        Its last iterations are in the steady state if they are `folded`, else after it.
        """
        if self.iterations.surely_not_more_than(0):
            return
        yield from self.before
        for time in range(self.depth):
            yield from self._ahead(events, time)
        if folded:
            yield self._all_iterations(events)
            yield CopyWait(0, span=self.loop.span)
            return
        yield from self._steady(events)
        for late in range(self.depth):
            yield from self._finish(events, late)

    def _ahead(self, events: Events, time: int) -> Iterator[Stmt]:
        """Yield the pieces of the stages that have begun by `time`."""

        def turn(stage: int) -> Expr | None:
            if stage > time or self.iterations.surely_not_more_than(time - stage):
                return None
            return self.iterations.number(self.iterations.start, time - stage)

        guards = [self._unless_over(time - stage) for stage in range(self.depth + 1)]
        yield from self._step(events.early[time], turn, guards)

    def _unless_over(self, number: int) -> BranchPredicate | None:
        """Return the branch around iteration `number`, if it might not be."""
        if self.iterations.surely_more_than(number):
            return None
        now = self.iterations.number(self.iterations.start, number)
        return BranchPredicate(now < self.iterations.stop, self.loop.span)

    def _steady(self, events: Events) -> Iterator[Stmt]:
        if self.iterations.surely_not_more_than(self.depth):
            return
        index = replace(self.loop.var)

        def turn(stage: int) -> Expr | None:
            return self.iterations.number(index, self.depth - stage)

        body = Seq(tuple(self._step(events.steady, turn)), span=self.loop.span)
        stop = self.iterations.number(self.iterations.stop, -self.depth)
        one = as_expr(1, index.dtype)
        yield For(index, self.iterations.start, stop, one, body, span=self.loop.span)

    def _all_iterations(self, events: Events) -> Stmt:
        """Return the loop over every iteration of the last stage."""
        index = replace(self.loop.var)

        def turn(stage: int) -> Expr | None:
            if self.iterations.surely_not_more_than(self.depth - stage):
                return None
            return self.iterations.number(index, self.depth - stage)

        stop, span = self.iterations.stop, self.loop.span
        numbers = (self.iterations.number(index, self.depth - n) for n in range(self.depth))
        guards = [BranchPredicate(number < stop, span) for number in numbers]
        step = self._step(events.steady, turn, [*guards, None])
        one = as_expr(1, index.dtype)
        body = Seq(tuple(step), span=span)
        return For(index, self.iterations.start, stop, one, body, span=span)

    def _finish(self, events: Events, late: int) -> Iterator[Stmt]:
        """Yield the pieces of stages behind, `late` steps after the last iteration began."""
        missing = self.depth - late
        if self.iterations.surely_not_more_than(missing - 1):
            return

        def turn(stage: int) -> Expr | None:
            if stage <= late:
                return None
            return self.iterations.number(self.iterations.stop, late - stage)

        step = list(self._step(events.late[late], turn))
        if self.iterations.surely_more_than(missing - 1):
            yield from step
        elif step:
            enough = (
                self.iterations.number(self.iterations.start, missing - 1) < self.iterations.stop
            )
            yield If(enough, Seq(tuple(step)), span=self.loop.span)

    # One step of time ------------------------------------------------------------------------

    def _step(
        self, events: Sequence[Event], turn: Turn, guards: Sequence[BranchPredicate | None] = ()
    ) -> Iterator[Stmt]:
        scope, run = _Scope(), list[tuple[Prefix, int]]()
        for event in events:
            if isinstance(event, Begin):
                stage = self.plan.schedule.stage[event.piece]
                if turn(stage) is not None:
                    around = guards[stage] if guards else None
                    prefix = self.pieces[event.piece].prefix
                    run.append(((around, *prefix) if around else prefix, event.piece))
                continue
            if run:
                yield from self._nested(run, 0, turn, scope)
                run = []
            yield self._control(event)
        yield from self._nested(run, 0, turn, scope)

    def _control(self, event: Close | Wait) -> Stmt:
        span: Span | None = self.pieces[event.piece].span
        if isinstance(event, Close):
            return CopyCommit(span=span)
        return CopyWait(event.pending, span=span)

    def _nested(
        self, run: Sequence[tuple[Prefix, int]], level: int, turn: Turn, scope: _Scope
    ) -> Iterator[Stmt]:
        """Yield pieces that follow each other, those behind one branch inside of one `If`."""
        k = 0
        while k < len(run):
            prefix, piece = run[k]
            stage = self.plan.schedule.stage[piece]
            values = scope.values.setdefault(stage, {})
            now = turn(stage)
            assert now is not None
            if len(prefix) == level:
                yield from self._piece(piece, values, now)
                k += 1
                continue
            head = prefix[level]
            end = k
            while end < len(run) and self._shares(run[end], level, head, stage):
                end += 1
            if isinstance(head, Let):
                if head.var not in values:
                    yield self._named(head, values, now)
                yield from self._nested(run[k:end], level + 1, turn, scope)
            else:
                values = {self.loop.var: now, **values}
                cond = value_of(head.cond, values, self.versions, now)
                inner = tuple(self._nested(run[k:end], level + 1, turn, scope.inner()))
                yield If(cond, Seq(inner), span=head.span)
            k = end

    def _shares(self, item: tuple[Prefix, int], level: int, head: object, stage: int) -> bool:
        prefix, piece = item
        return (
            self.plan.schedule.stage[piece] == stage
            and len(prefix) > level
            and prefix[level] is head
        )

    def _named(self, let: Let, values: dict[Var, Expr], now: Expr) -> Let:
        """Return the name anew, for one iteration, and remember it."""
        given = {self.loop.var: now, **values}
        value = value_of(let.value, given, self.versions, now)
        name = replace(let.var)
        values[let.var] = name
        return Let(name, value, span=let.span)

    def _piece(self, k: int, values: dict[Var, Expr], now: Expr) -> Iterator[Stmt]:
        stmt = self.pieces[k].stmt
        if isinstance(stmt, Let):
            yield self._named(stmt, values, now)
            return
        made = instance(stmt, {self.loop.var: now, **values}, self.versions, now)
        if k in self.plan.asynchronous:
            made = replace(made, is_async=True)
        yield from made.body if isinstance(made, Seq) else (made,)
