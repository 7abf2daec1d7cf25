"""One order of everybody's events, and the proof that all others come to the same."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from tile_core.errors import Span
from tile_core.testing.protocol.events import (
    COPIES,
    Arrive,
    BarrierId,
    Event,
    Fence,
    Fill,
    Init,
    Meet,
    Program,
    ProtocolBroken,
    Read,
    Settle,
    Violation,
    Wait,
    Write,
    check_meant,
    shown,
)
from tile_core.testing.protocol.tile_accesses import TileAccess, Tiles
from tile_core.testing.protocol.vector_clocks import Clock, Known, Layout


@dataclass(frozen=True, slots=True)
class Proved:
    """What following one order, for all of them, found."""

    events: int  # how many events there are
    violation: Violation | None  # what goes wrong in some order, None if nothing does in any
    # An arrival that counts for an earlier phase in some orders, so that this one alone proves
    # nothing of others; None if there is none.
    unordered: Violation | None = None


@dataclass(slots=True)
class _Signal:
    """A barrier."""

    count: int
    # phase, needed, nbytes: completed phases; arrivals, and bytes, that the one in flight lacks.
    phase: int = 0
    needed: int = 0
    nbytes: int = 0
    known: Clock | None = None  # what those who arrived in this phase knew
    over: Clock | None = None  # what was known when the last phase completed
    # Roles and steps that announced bytes in this phase.
    announced: list[tuple[int, int, Span | None]] = field(default_factory=list)
    # arrived, before: the arrivals of this phase, and of each one before; None where bytes belonged
    # to it, or arrivals of copies: who began them does not know when they come.
    arrived: list[Known] = field(default_factory=list)
    before: list[tuple[Known, ...] | None] = field(default_factory=list)
    by_copies: bool = False  # whether there was one of these in this phase
    # For each role: its step that waited, and how many phases it took to have completed.
    waited: dict[int, tuple[int, int, Span | None]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Flight:
    """A fill that has begun: by which role, when, and which phase of its barrier hears of it."""

    fill: Fill
    role: int
    known: Clock
    phase: int


def prove(program: Program) -> Proved:
    """Return what can go wrong in any order of the events of all roles.

    One order is followed, in which fills end as late as possible, with what each role knows of
    all others: the events that barriers put before its own (a vector clock). From that follows
    what holds in every order, if

    - who waits for a phase knows that the one before is over, and that phase cannot be followed
      by another one before he has passed: so parities tell phases apart as numbers would;
    - who arrives at a barrier knows that the phase before is over, and so do bytes: so each
      arrival counts for the same phase in every order;
    - bytes are announced before the last arrival of their phase.

    Then what a wait needs is the same in every order, and nothing takes it away again: all
    orders are the same events under the same partial order. It ends with everybody done, or
    none does. Two accesses of a tile of which one writes must be ordered by it, and engines
    read only what was fenced in between; then also what each reading finds is the same in all
    orders, and it must be what the sequential program finds. Nobody leaves a block that others
    still reach, nor reaches one that has not begun.
    """
    run = _Run(program)
    total = sum(len(role.events) for role in program.roles)
    try:
        run.all()
    except ProtocolBroken as broken:
        return Proved(total, run.report(broken), run.unordered)
    return Proved(total, None, run.unordered)


class _Run:
    def __init__(self, program: Program) -> None:
        self.program = program
        self.layout = Layout(program)
        count = len(program.roles)
        self.clocks = [self.layout.zero() for _ in range(count)]
        self.places = [0] * count
        self.signals = {p: _Signal(n, needed=n) for p, n in program.arrivals.items()}
        self.flying: list[_Flight] = []
        self.tiles = Tiles()
        self.begun: dict[tuple[str, int], Known] = {}
        self.reached: list[tuple[int, Known, Span | None]] = []
        self.waiting: dict[BarrierId, list[int]] = {}
        self.awake: list[int] = []
        self.unordered: Violation | None = None

    def all(self) -> None:
        """Run everything."""
        ready = list(range(len(self.places)))
        while True:
            while ready:
                self.advance(ready.pop())
                ready += self.woken()
            if not self.flying:
                break
            landed, self.flying = self.flying, []
            for flight in landed:
                self.land(flight)
            ready = self.woken()
        if any(p < len(r.events) for p, r in zip(self.places, self.program.roles, strict=True)):
            self.stuck()
        self.leave()

    def woken(self) -> list[int]:
        """Return, once, the roles that waited for barriers which went on."""
        found, self.awake = self.awake, []
        return found

    def advance(self, role: int) -> None:
        """Let a role go as far as it can."""
        events = self.program.roles[role].events
        while self.places[role] < len(events):
            event = events[self.places[role]]
            if not self.done(role, event):
                self.waiting.setdefault(event.barrier, []).append(role)  # type: ignore[attr-defined]
                return
            self.places[role] += 1

    def done(self, role: int, event: Event) -> bool:
        """Do an event; return whether it did not have to wait."""
        clock = self.clocks[role]
        step = self.places[role] + 1
        match event:
            case Wait():
                return self.wait(role, event)
            case Meet():
                return self.meet(role, event)
            case Arrive():
                clock[role] = step
                self.arrive(role, event)
            case Fill():
                clock[role] = step
                self.fill(role, event)
            case Write(tile=tile, box=box):
                clock[role] = step
                self.tiles.write(tile, box, self.written(role, event), event.content, clock)
                self.remember(role, tile[1], Known(role, step), event.span)
            case Read():
                clock[role] = step
                self.read(role, event)
            case Settle(engine=engine, begun=begun, pending=pending):
                at = self.layout.settled(role, engine)
                clock[at] = max(clock[at], begun - pending)
            case Fence():
                clock[self.layout.fenced(role)] = step
                over = clock[self.layout.settled(role, COPIES)]
                clock[self.layout.fenced_copies(role)] = over
            case Init(barriers=barriers, rank=rank):
                clock[role] = step
                self.begun[barriers, rank] = Known(role, step)
        clock[role] = step
        return True

    # Barriers ----------------------------------------------------------------------------

    def signal(self, role: int, place: BarrierId, span: Span | None) -> _Signal:
        """Return a barrier, which somebody must have made ready before."""
        name, _, rank = place
        signal = self.signals.get(place)
        if signal is None:
            raise ProtocolBroken(f"there is no {shown(place)}", span)
        begun = self.begun.get((name, rank))
        if self.layout.is_in_memory(place) and (
            begun is None or not begun.is_in(self.clocks[role])
        ):
            raise ProtocolBroken(f"{shown(place)} may be used before it is ready", span)
        return signal

    def wait(self, role: int, event: Wait) -> bool:
        signal = self.signal(role, event.barrier, event.span)
        if (signal.phase + 1) % 2 != event.parity:
            return False
        clock = self.clocks[role]
        if not self.is_over(clock, event.barrier, signal.phase - 1):
            raise ProtocolBroken(
                f"whoever waits for phase {signal.phase - 1} of {shown(event.barrier)} may take "
                f"phase {signal.phase - 3} for it",
                event.span,
            )
        step = self.places[role] + 1
        clock[role] = step
        signal.waited[role] = (step, signal.phase, event.span)
        self.learn(role, event.barrier, signal)
        return True

    def meet(self, role: int, event: Meet) -> bool:
        signal = self.signal(role, event.barrier, event.span)
        if signal.phase <= event.phase:
            return False
        self.learn(role, event.barrier, signal)
        return True

    def learn(self, role: int, place: BarrierId, signal: _Signal) -> None:
        clock = self.clocks[role]
        if signal.over is not None:
            np.maximum(clock, signal.over, out=clock)
        at = self.layout.phase(place)
        clock[at] = max(clock[at], signal.phase)

    def arrive(self, role: int, event: Arrive) -> None:
        place, span = event.barrier, event.span
        signal, clock = self.signal(role, place, span), self.clocks[role]
        if event.count > signal.needed:
            raise ProtocolBroken(f"{shown(place)} is arrived at too often in one phase", span)
        try:
            self.in_phase(clock, place, signal, "an arrival", span)
        except ProtocolBroken as broken:
            self.unordered = self.unordered or self.report(broken)
        step = self.places[role] + 1
        if self.layout.is_in_memory(place):
            self.remember(role, place[2], Known(role, step), span)
        if event.nbytes:
            signal.announced.append((role, step, span))
            signal.nbytes += event.nbytes
        if event.count:
            told = clock.copy()
            if event.relaxed or event.copies is not None:
                told[:] = 0
            if event.copies is not None:
                told[self.layout.settled(role, COPIES)] = event.copies
                signal.by_copies = True
            signal.known = told if signal.known is None else np.maximum(signal.known, told)
            signal.arrived.append(Known(role, step))
        signal.needed -= event.count
        self.complete(place, signal, span)

    def is_over(self, clock: Clock, place: BarrierId, phases: int) -> bool:
        """Whether who knows `clock` knows that so many phases of a barrier are over.

        He has waited for it, or heard of somebody who has; or he knows of all its arrivals.
        """
        if clock[self.layout.phase(place)] >= phases:
            return True
        arrivals = self.signals[place].before[phases - 1]
        return arrivals is not None and all(known.is_in(clock) for known in arrivals)

    def in_phase(
        self, clock: Clock, place: BarrierId, signal: _Signal, what: str, span: Span | None
    ) -> None:
        """Make sure that something counts for this phase in every order."""
        if not self.is_over(clock, place, signal.phase):
            raise ProtocolBroken(
                f"{what} at {shown(place)} is for phase {signal.phase}, and nothing tells that "
                f"phase {signal.phase - 1} is over",
                span,
            )

    def complete(self, place: BarrierId, signal: _Signal, span: Span | None) -> None:
        """Go on to the next phase, if this one has all that it needs."""
        if signal.needed:
            return
        if signal.nbytes < 0:
            raise ProtocolBroken(f"{shown(place)} hears of bytes that nobody expects", span)
        if signal.nbytes:
            return
        known, has_bytes = signal.known, bool(signal.announced)
        assert known is not None
        for role, step, line in signal.announced:
            if known[role] < step:
                raise ProtocolBroken(
                    f"phase {signal.phase} of {shown(place)} may be over before its bytes are "
                    "expected",
                    line,
                )
        for role, (step, phase, line) in signal.waited.items():
            if phase == signal.phase and known[role] < step:
                name = self.program.roles[role].name
                raise ProtocolBroken(
                    f"phase {signal.phase} of {shown(place)} may be over before {name} have "
                    "passed their wait for the one before",
                    line,
                )
        signal.over = known.copy()
        signal.phase += 1
        signal.over[self.layout.phase(place)] = signal.phase
        is_told = not has_bytes and not signal.by_copies
        signal.before.append(tuple(signal.arrived) if is_told else None)
        signal.arrived.clear()
        signal.by_copies = False
        signal.needed, signal.known = signal.count, None
        signal.announced.clear()
        self.awake += self.waiting.pop(place, [])

    # Engines and tiles -------------------------------------------------------------------

    def fill(self, role: int, event: Fill) -> None:
        clock, place = self.clocks[role], event.barrier
        signal = self.signal(role, place, event.span)
        self.in_phase(clock, place, signal, "the end of a copy", event.span)
        ends = Known(self.layout.phase(place), signal.phase + 1)
        touch = self.touch(role, event, ends, writes=True, by_engine=True)
        self.tiles.write(event.tile, event.box, touch, event.content, clock)
        if event.source is not None:
            reads = self.touch(role, event, ends, writes=False, by_engine=True)
            self.tiles.read(*event.source, reads, clock)
            self.reached.append((self.program.roles[role].rank, ends, event.span))
        self.remember(role, place[2], ends, event.span)
        self.flying.append(_Flight(event, role, clock.copy(), signal.phase))

    def land(self, flight: _Flight) -> None:
        """Let a fill end: its barrier hears of the bytes."""
        fill, place = flight.fill, flight.fill.barrier
        signal = self.signals[place]
        own = self.program.roles[flight.role].rank == place[2]
        if signal.phase != flight.phase or (own and signal.nbytes < fill.nbytes):
            raise ProtocolBroken(f"{shown(place)} hears of bytes that nobody expects", fill.span)
        signal.nbytes -= fill.nbytes
        if signal.known is not None:
            signal.known = np.maximum(signal.known, flight.known)
        self.complete(place, signal, fill.span)

    def read(self, role: int, event: Read) -> None:
        clock = self.clocks[role]
        ends = Known(role, self.places[role] + 1)
        if event.lasts is not None:
            ends = Known(self.layout.settled(role, event.engine), event.lasts + 1)
        touch = self.touch(role, event, ends, writes=False, by_engine=event.by_engine)
        held = self.tiles.read(event.tile, event.box, touch, clock)
        check_meant(event, held, self.program.held(event))

    def written(self, role: int, event: Write) -> TileAccess:
        """Return the touch of a write: what tells that it is over, and that engines see it."""
        step = self.places[role] + 1
        touch = self.touch(role, event, Known(role, step), writes=True)
        if event.lasts is None:
            return touch
        ends = Known(self.layout.settled(role, COPIES), event.lasts + 1)
        fence = Known(self.layout.fenced_copies(role), event.lasts + 1)
        return replace(touch, ends=ends, fence=fence, is_late=True)

    def touch(
        self, role: int, event: Event, ends: Known, *, writes: bool, by_engine: bool = False
    ) -> TileAccess:
        step = self.places[role] + 1
        fence = Known(self.layout.fenced(role), step)
        return TileAccess(
            role, self.program.roles[role].scope, writes, by_engine, ends, fence, event
        )

    def remember(self, role: int, rank: int, ends: Known, span: Span | None) -> None:
        """Note that a role reaches another block, which must not be gone by then."""
        if rank == self.program.roles[role].rank:
            return
        ready = [k for (_, block), k in self.begun.items() if block == rank]
        starts = ready or [Known(k, 1) for k, r in enumerate(self.program.roles) if r.rank == rank]
        if not any(known.is_in(self.clocks[role]) for known in starts):
            raise ProtocolBroken(f"block {rank} may be reached before it has begun", span)
        self.reached.append((rank, ends, span))

    # Ends --------------------------------------------------------------------------------

    def leave(self) -> None:
        """Make sure that everybody stays as long as others reach his memory."""
        for role, clock in enumerate(self.clocks):
            for ends, span in self.tiles.going_on(role):
                if not ends.is_in(clock):
                    raise ProtocolBroken(
                        "threads leave while an asynchronous operation still reads a tile", span
                    )
        last: dict[int, Clock] = {}
        for who, clock in zip(self.program.roles, self.clocks, strict=True):
            before = last.get(who.rank)
            last[who.rank] = clock if before is None else np.maximum(before, clock)
        for rank, ends, span in self.reached:
            if not ends.is_in(last[rank]):
                raise ProtocolBroken(f"block {rank} may be gone while others reach it", span)

    def stuck(self) -> None:
        for place, signal in self.signals.items():
            if signal.nbytes < 0:
                raise ProtocolBroken(f"{shown(place)} hears of bytes that nobody expects")
        for following, role in zip(self.places, self.program.roles, strict=True):
            if following < len(role.events):
                raise ProtocolBroken("nobody can go on", role.events[following].span)

    def report(self, broken: ProtocolBroken) -> Violation:
        return Violation(broken.what, broken.span, tuple(self.told()))

    def told(self) -> list[str]:
        """Return what everybody was about to do."""
        lines = []
        for place, role in zip(self.places, self.program.roles, strict=True):
            if place < len(role.events):
                event = role.events[place]
                line = f", line {event.span.line}" if event.span is not None else ""
                lines.append(f"{role.name}, {place} of {len(role.events)}{line}: {event}")
        for barrier, signal in self.signals.items():
            if signal.needed != signal.count or signal.nbytes or barrier in self.waiting:
                lines.append(
                    f"{shown(barrier)}: {signal.phase} phases over, {signal.needed} arrivals and "
                    f"{signal.nbytes} bytes missing"
                )
        return lines
