"""Act out the program of one block: roles in turns, until all have ended."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from tile_api.report.model import Timeline
from tile_api.report.source_lines import SourceLines
from tile_api.report.timeline.lanes import arranged
from tile_api.report.timeline.operators import Condition, Waits, act, is_event
from tile_api.report.timeline.simulation_state import (
    Actor,
    EnoughError,
    Stage,
    Values,
    actor_of,
    usual_size,
)
from tile_core.ir.expr import Var
from tile_core.ir.node import Node, walk
from tile_core.ir.printer import symbols_of
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Continue,
    For,
    If,
    Kernel,
    Launch,
    Let,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
)

_MOST_ITERATIONS = 10_000


def timeline_of(kernel: Kernel, warp_size: int, places: SourceLines) -> Timeline | None:
    """Return when copies and products of one block run; None if none runs beside others.

    The program is acted out with one length for all copies and one for all products, so that the
    picture tells what may overlap and what waits for what, not how long it takes.
    """
    launches = [n for n in walk(kernel.body) if isinstance(n, Launch)]
    sizes = {var: usual_size(var) for var in symbols_of(kernel)}
    sizes |= {p: usual_size(p) for p in kernel.params if isinstance(p, Var) and p.dtype.is_int}
    found = [
        _played(launch, block, sizes, warp_size, places)
        for launch in launches
        for block in _blocks(launch, sizes)
    ]
    drawn = [t for t in found if any(b.activity == "transfer" and b.number for b in t.bars)]
    return max(drawn, key=lambda t: len(t.bars), default=None)


def _blocks(launch: Launch, sizes: dict[Var, int]) -> tuple[tuple[int, ...], ...]:
    """Return the first block and the last: under a causal mask they have not the same to do."""
    values = Values(sizes)
    last = tuple(max((values.number(extent) or 1) - 1, 0) for extent in launch.grid)
    return tuple(dict.fromkeys(((0,) * len(last), last)))


def _played(
    launch: Launch,
    block: tuple[int, ...],
    sizes: dict[Var, int],
    warp_size: int,
    places: SourceLines,
) -> Timeline:
    play = _Play(Stage(warp_size), launch)
    values = Values(dict(sizes))
    values.of |= dict.fromkeys(launch.thread_vars, 0)
    values.of |= dict(zip(launch.block_vars, block, strict=True))
    actor = actor_of(0, math.prod(launch.threads), values)
    try:
        play.all_roles(actor)
    except EnoughError:
        play.stage.notes["The program is longer than what is drawn."] = None
    if any(block):
        told = ", ".join(map(str, block))
        play.stage.notes[f"Block ({told}) is drawn; the first one has less to do."] = None
    if sizes:
        told = ", ".join(f"{var.name} = {size}" for var, size in sizes.items())
        play.stage.notes[f"Sizes that are not known are taken to be {told}."] = None
    return arranged(play.stage, places)


@dataclass(slots=True)
class _Role:
    actor: Actor
    rest: Iterator[Condition]
    waits_for: Condition | None = None
    is_over: bool = False

    def end(self) -> float | None:
        return self.actor.time if self.is_over else None


class _Play:
    """Roles in turns: each goes on until it has to wait for what another one has not done yet."""

    def __init__(self, stage: Stage, launch: Launch) -> None:
        self.stage, self.launch, self.roles = stage, launch, list[_Role]()
        self.eventful: dict[Node, bool] = {}

    def all_roles(self, actor: Actor) -> None:
        """Run the launch until every role has ended."""
        self.roles.append(_Role(actor, self._run(self.launch.body, actor, parts=True)))
        while any(not role.is_over for role in self.roles):
            if not any([self._turn(role) for role in self.roles if not role.is_over]):
                self._push_on()

    def _turn(self, role: _Role) -> bool:
        """Let a role go on as far as it can; return whether it got anywhere."""
        moved = False
        while not role.is_over:
            if role.waits_for is not None and role.waits_for() is None:
                return moved
            moved = True
            role.waits_for = next(role.rest, None)
            role.is_over = role.waits_for is None
        return moved

    def _push_on(self) -> None:
        """Let one go on that waits for what nobody does: the picture is not the whole truth."""
        self.stage.notes["A wait could not be followed; it is taken to be over at once."] = None
        role = next(role for role in self.roles if not role.is_over)
        role.waits_for = None

    # Statements --------------------------------------------------------------------------

    def _run(self, stmt: Stmt, actor: Actor, *, parts: bool = False) -> Waits:
        """Run a statement; `parts` says that all threads of the block do, and may take roles."""
        match stmt:
            case Seq(body=body):
                for item in body:
                    yield from self._run(item, actor, parts=parts)
            case Let(var=var, value=value):
                number = actor.values.number(value)
                if number is not None:
                    actor.values.of[var] = number
            case Store(buffer=buffer, value=value):
                actor.values.store(buffer, value)
            case Alloc() | Break() | Continue():
                pass
            case OnThreads() if parts:
                yield from self._start(stmt, actor)
            case OnThreads():
                threads, actor.threads = actor.threads, stmt.count
                yield from self._run(stmt.body, actor)
                actor.threads = threads
            case If():
                yield from self._branch(stmt, actor, parts)
            case For() | Pipelined() | While() if self._is_eventful(stmt):
                yield from self._loop(stmt, actor, parts)
            case _:
                if parts:
                    yield from self._joined(actor)
                yield from act(stmt, actor, self.stage)

    def _is_eventful(self, stmt: Stmt) -> bool:
        if stmt not in self.eventful:
            self.eventful[stmt] = any(is_event(node) for node in walk(stmt))
        return self.eventful[stmt]

    def _branch(self, stmt: If, actor: Actor, parts: bool) -> Waits:
        cond = actor.values.number(stmt.cond)
        if cond is None and self._is_eventful(stmt):
            self.stage.notes["A branch depends on data; it is taken."] = None
        chosen = stmt.otherwise if cond == 0 else stmt.then
        if chosen is not None:
            yield from self._run(chosen, actor, parts=parts)

    def _loop(self, stmt: For | Pipelined | While, actor: Actor, parts: bool) -> Waits:
        if isinstance(stmt, While):
            for _ in range(_MOST_ITERATIONS):
                cond = actor.values.number(stmt.cond)
                if cond == 0:
                    break
                yield from self._run(stmt.body, actor, parts=parts)
                if cond is None:
                    self.stage.notes["A loop depends on data; one iteration is drawn."] = None
                    break
            return
        start, stop = (actor.values.number(e) for e in (stmt.start, stmt.stop))
        step = actor.values.number(stmt.step)
        if start is None or stop is None or not step:
            self.stage.notes["A loop depends on data; four iterations are drawn."] = None
            start, stop, step = 0, 4, 1
        for number in range(start, stop, step):
            actor.values.of[stmt.var] = number
            yield from self._run(stmt.body, actor, parts=parts)

    # Roles -------------------------------------------------------------------------------

    def _start(self, stmt: OnThreads, actor: Actor) -> Waits:
        """Start a role, once the role of the same threads before it is over."""
        time = actor.time
        for role in self.roles[1:]:
            first, count = role.actor.first, role.actor.threads
            if first < stmt.first + stmt.count and stmt.first < first + count:
                yield role.end
                time = max(time, role.actor.time)
        other = actor_of(stmt.first, stmt.count, actor.values.copy(), time)
        other.values.of[self.launch.thread_vars[0]] = stmt.first
        self.roles.append(_Role(other, self._run(stmt.body, other)))

    def _joined(self, actor: Actor) -> Waits:
        """Wait for all roles, where the block goes on together."""
        for role in self.roles[1:]:
            yield role.end
            actor.time = max(actor.time, role.actor.time)
