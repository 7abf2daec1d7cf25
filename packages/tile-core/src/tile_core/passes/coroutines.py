"""Programs that wait for each other as coroutines: state machines that run in turn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass as plain
from dataclasses import field, replace
from functools import partial, reduce
from typing import ClassVar, cast

from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer, Scope, static_value
from tile_core.ir.build_expr import binary, const
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.node import Node, contains, nodes_of, substitute
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Check,
    CheckKind,
    Continue,
    For,
    If,
    Leaf,
    Let,
    OnThreads,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
    flattened,
)
from tile_core.ir.visitor import jumps
from tile_core.records import dataclass

INT32 = dtype_of("int32")
STUCK = "threads of a block wait for ever at barriers that nobody completes"
_DONE = -1


@dataclass(frozen=True, slots=True, eq=False)
class Await(Leaf):
    """Wait until a condition on memory holds, which others make true; it orders what they read."""

    mnemonic: ClassVar[str] = "await"
    cond: Expr


def awaits(stmt: Node) -> bool:
    """Whether something in `stmt` waits for others."""
    return contains(stmt, Await)


def cell(name: str) -> Buffer:
    """Return a number of the block's."""
    return Buffer(name, (1,), INT32, Scope.SHARED)


def read(place: Buffer) -> Load:
    """Return the number in a cell."""
    return Load(place, (const(0),))


def put(place: Buffer, value: Expr | int) -> Store:
    """Return the statement that changes it."""
    return Store(place, (const(0),), const(value) if isinstance(value, int) else value)


def is_equal(a: Expr, number: int) -> Expr:
    """Return whether an integer has a value."""
    return binary(BinaryOp.EQ, a, const(number, a.dtype))


@plain(slots=True)
class _State:
    """Statements that run without a pause, and where the program goes on then."""

    body: list[Stmt] = field(default_factory=list)
    after: Stmt | None = None
    waits: bool = False


class StateMachine:
    """The program of one part as states, of which one runs at a time.

    Before   for k in range(n): await c[k]; s[0] += k
    After    state 0: k = 0; go to 1;   state 1: go to n's end or 2;   state 2: if c[k] go to 3,
             else pause;   state 3: s[0] += k; k += 1; go to 1

    `allocations` must be there in front of all turns: the number of the state, indices of loops,
    and names that live across a pause.
    """

    def __init__(self, body: Stmt, moved: Buffer) -> None:
        self.at, self.goes, self.moved = cell("state"), cell("goes"), moved
        self.allocations: list[Stmt] = [Alloc(self.at), Alloc(self.goes)]
        self.cells: dict[Var, Buffer] = {}
        self.states: list[_State] = []
        self.loops: list[tuple[int, int]] = []
        last = self.run(flattened(body), self.new())
        self.states[last].after = self.go(_DONE)

    def is_running(self) -> Expr:
        """Return whether the program has not ended."""
        return binary(BinaryOp.NE, read(self.at), const(_DONE))

    def turn(self) -> Stmt:
        """Return the statement that runs the program up to its next pause."""
        chosen: Stmt = put(self.goes, 0)
        for number in reversed(range(len(self.states))):
            taken = Seq(tuple(self.written(self.states[number])))
            chosen = If(is_equal(read(self.at), number), taken, chosen)
        return Seq((put(self.goes, 1), While(is_equal(read(self.goes), 1), chosen)))

    # States ------------------------------------------------------------------------------

    def new(self) -> int:
        """Return the number of a new state."""
        self.states.append(_State())
        return len(self.states) - 1

    def go(self, number: int) -> Stmt:
        """Return the statement after which state `number` is next."""
        return put(self.at, number)

    def to(self, state: int, other: int) -> None:
        """Let `other` follow `state`, unless something does already."""
        if self.states[state].after is None:
            self.states[state].after = self.go(other)

    def run(self, items: Sequence[Stmt], now: int) -> int:
        """Put statements behind those of state `now`; return the state that follows them."""
        for item in items:
            if awaits(item) or (self.loops and jumps(item)):  # it pauses, or leaves what does
                now = self.divided(item, now)
            else:
                self.add(item, now)
        return now

    def add(self, item: Stmt, now: int) -> None:
        """Put a statement without a pause into a state; others may use names it gives."""
        body = self.states[now].body
        if isinstance(item, Alloc):
            self.allocations.append(item)
            return
        body.append(item)
        if isinstance(item, Let):
            place = self.cells[item.var] = Buffer(item.var.name, (1,), item.var.dtype, Scope.SHARED)
            self.allocations.append(Alloc(place))
            body.append(Store(place, (const(0),), item.var))

    def divided(self, stmt: Stmt, now: int) -> int:
        """Put the states of a statement with pauses behind `now`; return the one that follows."""
        match stmt:
            case Await(cond=cond):
                wait, then = self.new(), self.new()
                self.to(now, wait)
                self.states[wait].waits = True
                pause = put(self.goes, 0)  # `then` follows at once, and says that it moved
                self.states[wait].after = If(cond, self.go(then), pause, span=stmt.span)
                return then
            case Seq() | OnThreads():
                return self.run(flattened(stmt if isinstance(stmt, Seq) else stmt.body), now)
            case If():
                return self.branch(stmt, now)
            case For() | Pipelined():
                return self.counted(stmt, now)
            case While(cond=cond, body=body):
                head, first, behind = self.new(), self.new(), self.new()
                self.to(now, head)
                self.states[head].after = If(cond, self.go(first), self.go(behind))
                self.loop(body, first, head, behind)
                return behind
            case Break() | Continue():
                again, behind = self.loops[-1]
                self.to(now, behind if isinstance(stmt, Break) else again)
                return self.new()
        raise AssertionError(type(stmt).__name__)

    def loop(self, body: Stmt, first: int, again: int, behind: int) -> None:
        """Make the states of a body that begins with `first` and goes on with `again`."""
        self.loops.append((again, behind))
        self.to(self.run(flattened(body), first), again)
        self.loops.pop()

    def branch(self, stmt: If, now: int) -> int:
        """Make the states of both sides."""
        then, behind = self.new(), self.new()
        other = behind if stmt.otherwise is None else self.new()
        self.states[now].after = If(stmt.cond, self.go(then), self.go(other), span=stmt.span)
        self.to(self.run(flattened(stmt.then), then), behind)
        if stmt.otherwise is not None:
            self.to(self.run(flattened(stmt.otherwise), other), behind)
        return behind

    def counted(self, stmt: For | Pipelined, now: int) -> int:
        """Make the states of a loop whose index is kept in memory."""
        index = stmt.var
        place = self.cells[index] = Buffer(index.name, (1,), index.dtype, Scope.SHARED)
        stop = Buffer(f"{index.name}_end", (1,), index.dtype, Scope.SHARED)
        self.allocations += [Alloc(place), Alloc(stop)]
        step = stmt.step
        self.states[now].body += [
            Store(place, (const(0),), stmt.start),
            Store(stop, (const(0),), stmt.stop),
        ]
        head, first, again, behind = (self.new() for _ in range(4))
        self.to(now, head)
        more = below = binary(BinaryOp.LT, read(place), read(stop))
        if (static_value(step) or 0) <= 0:
            above = binary(BinaryOp.GT, read(place), read(stop))
            up = binary(BinaryOp.GT, step, const(0, index.dtype))
            falls = binary(BinaryOp.AND, ~up, above)
            more = binary(BinaryOp.OR, binary(BinaryOp.AND, up, below), falls)
        self.states[head].after = If(more, self.go(first), self.go(behind))
        self.states[again].body.append(Store(place, (const(0),), read(place) + step))
        self.to(again, head)
        self.loop(stmt.body, first, again, behind)
        return behind

    def written(self, state: _State) -> list[Stmt]:
        """Return the statements of a state, with the names that others have given."""
        assert state.after is not None
        items = [*state.body, state.after]
        if not state.waits:
            items.append(put(self.moved, 1))
        own = {n.var for item in items for n in nodes_of(item, Let)}
        used = {n: None for item in items for n in nodes_of(item, Var)}
        others = [var for var in used if var in self.cells and var not in own]
        names: dict[Node, Node] = {var: replace(var) for var in others}
        lets = [Let(cast("Var", names[var]), read(self.cells[var])) for var in others]
        return [*lets, *(substitute(item, names) for item in items)]


def interleaved(parts: Sequence[OnThreads]) -> list[Stmt]:
    """Return parts that run at the same time as one program, in which each runs till it waits.

    Before   threads 0 count 128: await a;  b = 1;    threads 128 count 128: a = 1;  await b
    After    while a part is left: run the first up to its next wait; then the second; …

    Where nobody can go on, the kernel stops with an error.
    """
    moved = cell("moved")
    machines = [StateMachine(part.body, moved) for part in parts]
    span = parts[0].span
    left = reduce(partial(binary, BinaryOp.OR), (machine.is_running() for machine in machines))
    goes_on = Check(is_equal(read(moved), 1), STUCK, CheckKind.ASSERT, span=span)
    turns = [
        If(m.is_running(), m.turn(), span=p.span) for m, p in zip(machines, parts, strict=True)
    ]
    body = Seq((goes_on, put(moved, 0), *turns))
    return [
        Alloc(moved),
        *(item for machine in machines for item in machine.allocations),
        put(moved, 1),
        *(put(machine.at, 0) for machine in machines),
        While(left, body, span=span),
    ]
