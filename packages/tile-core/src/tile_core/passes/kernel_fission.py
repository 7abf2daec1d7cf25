"""The parts of a body between barriers of the whole grid, and the loops and branches around."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field
from typing import TypeAlias

from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, cast, const, select
from tile_core.ir.expr import BinaryOp, Const, Expr, Load, Var
from tile_core.ir.free_variables import is_host_evaluable
from tile_core.ir.node import Node, nodes_of, substitute
from tile_core.ir.stmt import (
    Alloc,
    Break,
    Check,
    CheckKind,
    Continue,
    For,
    If,
    Let,
    Pipelined,
    Seq,
    Stmt,
    Store,
    While,
    flattened,
)
from tile_core.ir.visitor import jumps
from tile_core.ops.control import Barrier
from tile_core.passes.grid_state import GridState, is_repeatable
from tile_core.records import dataclass, replace

NOT_ALL = "not all threads of all blocks reach a barrier of the whole grid"
"""What is said where some blocks wait for others that never come."""


@dataclass(frozen=True, slots=True, eq=False)
class Phase:
    """What a block does without waiting for others: the body of one launch."""

    items: tuple[Stmt, ...]


@dataclass(frozen=True, slots=True, eq=False)
class HostLoop:
    """A loop of the host around phases; `loop` says how often, whatever its body."""

    loop: For | While
    steps: tuple[FissionStep, ...]


@dataclass(frozen=True, slots=True, eq=False)
class BranchChoice:
    """A branch of the host around phases; `branch` says which."""

    branch: If
    then: tuple[FissionStep, ...]
    otherwise: tuple[FissionStep, ...]


FissionStep: TypeAlias = "Phase | HostLoop | BranchChoice"


def spans_grid(node: Node) -> bool:
    """Whether a node is a barrier of the whole grid."""
    return isinstance(node, Barrier) and node.scope == "grid"


def holds_barrier(stmt: Node) -> bool:
    """Whether a barrier of the whole grid stands in a statement."""
    return any(map(spans_grid, nodes_of(stmt, Barrier)))


@dataclass(slots=True)
class PhaseBuilder:
    """Makes phases of a body, with the host's loops and branches around them.

    Counts and conditions that arguments alone decide are the host's. The others are what
    every block, or thread, finds: it puts that into global memory, block 0 decides, and who
    found something else fails an assertion, where on a GPU blocks would wait for ever. What blocks
    find is put into the `state`; the scalars in `known` are those of the host.
    """

    state: GridState
    known: dict[Var, None]
    _written: dict[Node, Node] = field(default_factory=dict)

    def steps(self, items: Sequence[Stmt]) -> tuple[FissionStep, ...]:
        """Return the steps of the host that a body is made of."""
        found: list[FissionStep] = []
        running: list[Stmt] = []
        for item in self._opened(items):
            if not holds_barrier(item):
                running.append(item)
                continue
            steps, ahead, behind = self._step(item)
            found += [*_phase([*running, *ahead]), *steps]
            running = [*behind]
        return (*found, *_phase(running))

    def _step(self, item: Stmt) -> tuple[list[FissionStep], list[Stmt], list[Stmt]]:
        """Return the steps of a statement, and what comes in the phases around them."""
        match item:
            case For(body=body):
                self.known[item.var] = None
                return [HostLoop(item, self.steps(flattened(body)))], [], []
            case While(cond=cond, body=body):
                ask, check, holds = self._asked(cond, item)
                steps = self.steps([check, *flattened(body), ask])
                return [HostLoop(replace(item, cond=holds), steps)], [ask], [check]
            case If(cond=cond, then=then, otherwise=otherwise):
                sides = [[*flattened(then)], [] if otherwise is None else [*flattened(otherwise)]]
                known = self._of_host(cond)
                if known is not None:
                    return [self._choice(replace(item, cond=known), sides)], [], []
                ask, check, holds = self._asked(cond, item)
                checked = [[check, *side] for side in sides]
                return [self._choice(replace(item, cond=holds), checked)], [ask], [check]
        return [], [], []  # the barrier itself

    def _choice(self, branch: If, sides: Sequence[Sequence[Stmt]]) -> BranchChoice:
        return BranchChoice(branch, *(self.steps(side) for side in sides))

    def _asked(self, cond: Expr, at: While | If) -> tuple[Stmt, Stmt, Expr]:
        """Return what puts a condition into memory, what compares it, and the host's one."""
        answer = Var("goes_on", const(0).dtype)
        home, place = self.state.home(answer), self.state.place(answer)
        first = Load(home, (const(0),) * len(place))
        ask = Store(home, place, cast(cond, "int32"), span=at.span)
        same = binary(BinaryOp.EQ, Load(home, place), first)
        check = Check(same, NOT_ALL, CheckKind.ASSERT, span=at.span)
        return ask, check, binary(BinaryOp.NE, first, const(0))

    def _of_host(self, value: Expr) -> Expr | None:
        """Return a value as the host computes it from arguments alone, if it can."""
        spelt = substitute(value, self._written)
        return spelt if is_host_evaluable(spelt, self.known) else None

    # Loops in a form of their own ---------------------------------------------------------

    def _opened(self, items: Sequence[Stmt]) -> Iterator[Stmt]:
        """Yield statements; what stands around a barrier is the host's `For`, `While` or `If`."""
        for item in items:
            if isinstance(item, Let) and is_repeatable(item):
                self._written[item.var] = substitute(item.value, self._written)
            if not holds_barrier(item) or spans_grid(item):
                yield item
                continue
            match item:
                case For() | Pipelined():
                    loop = self._host_loop(item)
                    yield from [loop] if loop is not None else self._opened(counted(item))
                case While() if jumps(item.body):
                    yield from self._opened(without_jumps(item))
                case While() | If():
                    yield item
                case Seq():
                    yield from self._opened(flattened(item))
                case _:
                    raise _refusal(item)

    def _host_loop(self, loop: For | Pipelined) -> For | None:
        """Return a loop whose iterations arguments decide, and nothing that its body finds."""
        step = loop.step
        start, stop = self._of_host(loop.start), self._of_host(loop.stop)
        if start is None or stop is None or not isinstance(step, Const) or jumps(loop.body):
            return None
        return For(loop.var, start, stop, step, loop.body, span=loop.span)


def statements(steps: Sequence[FissionStep]) -> list[Stmt]:
    """Return steps as statements of one program."""
    found: list[Stmt] = []
    for step in steps:
        match step:
            case Phase(items=items):
                found += items
            case HostLoop(loop=loop, steps=inner):
                found.append(replace(loop, body=Seq(tuple(statements(inner)))))
            case BranchChoice(branch=branch, then=then, otherwise=otherwise):
                sides = [Seq(tuple(statements(side))) for side in (then, otherwise)]
                found.append(replace(branch, then=sides[0], otherwise=sides[1]))
    return found


def _phase(items: Sequence[Stmt]) -> list[FissionStep]:
    return [Phase(tuple(items))] if items else []


def _refusal(around: Stmt) -> UnsupportedOnTarget:
    barrier = next(filter(spans_grid, nodes_of(around, Barrier)))
    return UnsupportedOnTarget(
        "a barrier of the whole grid stands where not all threads of a block run",
        span=barrier.span,
        hint="put the barrier where every thread of every block reaches it",
    )


_GOES_ON, _NEXT_ROUND, _LEFT = 0, 1, 2
_FIRST = (const(0),)


def counted(loop: For | Pipelined) -> list[Stmt]:
    """Return a loop that counts as one that asks before each iteration.

    Before   for k in (a, b, s): body
    After    alloc at; at[0] = a;  last = b;  while at[0] < last: k = at[0]; body; at[0] += s
    """
    span, kind = loop.span, loop.var.dtype
    step = loop.step
    at = Buffer(f"{loop.var.name}_at", (1,), kind, Scope.VAR, span=span)
    last = Var(f"{loop.var.name}_stop", kind)
    head: list[Stmt] = [
        Alloc(at, span=span),
        Store(at, _FIRST, cast(loop.start, kind), span=span),
        Let(last, cast(loop.stop, kind), span=span),
    ]
    if not isinstance(step, Const):
        width = Var(f"{loop.var.name}_step", kind)
        head.append(Let(width, cast(step, kind), span=span))
        step = width
    now = Load(at, _FIRST)
    forward, back = binary(BinaryOp.LT, now, last), binary(BinaryOp.GT, now, last)
    if isinstance(step, Const):
        more = forward if step.value > 0 else back
    else:
        more = select(binary(BinaryOp.GT, step, const(0, kind)), forward, back)
    advance = Store(at, _FIRST, cast(binary(BinaryOp.ADD, now, step), kind), span=span)
    name = Let(loop.var, now, span=span)
    whole = While(more, Seq((name, *flattened(loop.body))), span=span)
    if not jumps(loop.body):
        return [*head, replace(whole, body=Seq((name, *flattened(loop.body), advance)))]
    return [*head, *without_jumps(whole, advance)]


def without_jumps(loop: While, *last: Stmt) -> list[Stmt]:
    """Return a loop with conditions in place of its jumps; `last` ends every iteration.

    Before   while c: x; if d: break; y
    After    alloc way; way[0] = 0
             while c if way[0] != 2 else False:
               way[0] = 0;  x;  if d: way[0] = 2;  if way[0] == 0: y;  last
    """
    way = Buffer("way", (1,), const(0).dtype, Scope.VAR, span=loop.span)
    start = Store(way, _FIRST, const(_GOES_ON), span=loop.span)
    inside = binary(BinaryOp.NE, Load(way, _FIRST), const(_LEFT))
    cond = select(inside, loop.cond, const(0, loop.cond.dtype), lazy=True)
    body = [start, *_guarded(flattened(loop.body), way), *last]
    return [Alloc(way, span=loop.span), start, replace(loop, cond=cond, body=Seq(tuple(body)))]


def _guarded(items: Sequence[Stmt], way: Buffer) -> Iterator[Stmt]:
    """Yield statements in order, those behind a jump only where nothing has jumped."""
    for position, item in enumerate(items):
        if not jumps(item):
            yield item
            continue
        yield _told(item, way)
        rest = tuple(_guarded(items[position + 1 :], way))
        on = binary(BinaryOp.EQ, Load(way, _FIRST), const(_GOES_ON))
        if rest:
            yield If(on, Seq(rest), span=item.span)
        return


def _told(item: Stmt, way: Buffer) -> Stmt:
    """Return a statement that says which way it goes instead of jumping."""
    match item:
        case Break():
            return Store(way, _FIRST, const(_LEFT), span=item.span)
        case Continue():
            return Store(way, _FIRST, const(_NEXT_ROUND), span=item.span)
        case If(then=then, otherwise=otherwise):
            sides = [
                None if side is None else Seq(tuple(_guarded(flattened(side), way)))
                for side in (then, otherwise)
            ]
            return replace(item, then=sides[0] or Seq(()), otherwise=sides[1])
    return item
