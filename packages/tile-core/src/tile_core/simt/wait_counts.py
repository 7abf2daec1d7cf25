"""Waits for groups of copies as waits for numbers of copies, on machines whose waves count."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import reduce
from itertools import count

from tile_core.arith.constraints import ConstraintSet
from tile_core.ir.build_expr import as_expr, binary, const
from tile_core.ir.device import device
from tile_core.ir.device_calls import COUNTED_LOAD, COUNTED_WAIT, MOST_UNDER_WAY, PREFIX
from tile_core.ir.expr import BinaryOp, Call, Const, Expr, Load, Var
from tile_core.ir.free_variables import structure
from tile_core.ir.node import Node, contains, nodes_of, walk
from tile_core.ir.stmt import Break, Continue, Evaluate, For, If, Let, Seq, Stmt, While
from tile_core.ir.visitor import bound_variables, map_statements, static_range
from tile_core.records import dataclass, replace

COPY = PREFIX + COUNTED_LOAD
COMMIT = PREFIX + "async_copy_commit"
WAIT = PREFIX + "async_copy_wait"

MANY = MOST_UNDER_WAY + 1
"""More than can be waited for; and what a group counts that never was: nothing is older."""

Path = tuple[int, ...]


def insert_wait_counts(stmt: Stmt, env: ConstraintSet) -> Stmt:
    """Return a program of one thread whose waits name copies of its wave, not groups.

    Before   for r in 0..8: counted_load …;  commit;  for r in 0..8: counted_load …;  commit
             for k in 0..n: wait until 1 group is in flight;  sync
                            for r in 0..8: counted_load …;  commit;  multiply
    After    for r in 0..8: counted_load …;           for r in 0..8: counted_load …
             for k in 0..n: counted_wait<8>;                          sync
                            for r in 0..8: counted_load …;           multiply

    A wave that waits until ``n`` of its copies are in flight has all done but the ``n`` youngest.
    So `n` is the number of copies begun after those that must be done: in the groups that
    may be in flight, and since the last one was closed. It is found for every way through the
    program; where ways differ, the least of their numbers is right for all of them, as waiting
    for more than one must is not wrong. Iterations of a loop are counted where their number is
    known. What a branch holds counts behind the same branch, and wherever its condition is
    known: a pipeline whose first copies are guarded reaches its steady state with all of them.

    The machine counts other accesses of tensors together with these copies: with them in flight
    a wait is stricter, never weaker.

    Notes
    -----
    Source: AMD "CDNA3 Instruction Set Architecture", "Manually Inserted Wait States" and
    "S_WAITCNT": memory reads return in the order in which they were issued.
    """
    calls = [n for n in nodes_of(stmt, Call) if n.function in (COMMIT, WAIT)]
    if not calls:
        return stmt
    pending = [_number(c.args[0]) for c in calls if c.function == WAIT]
    counter = _Counter()
    never = AtLeast(MANY)
    counter.visit(stmt, (), (AtLeast(0), *[never] * max(pending, default=0)), env)
    return _replaced(stmt, (), counter.found)


@dataclass(frozen=True, slots=True)
class AtLeast:
    """How many copies a group has, at least.

    `sure` in any case; `given` has more if a condition holds, by what conditions written alike
    share.
    """

    sure: int
    given: tuple[tuple[object, Expr, int], ...] = ()

    def at(self, key: object) -> int:
        """Return the number where the condition called `key` holds."""
        return max([self.sure, *(n for k, _, n in self.given if k == key)])

    def known(self, env: ConstraintSet) -> int:
        """Return the number where all that `env` says holds."""
        return max([self.sure, *(n for _, cond, n in self.given if env.proves(cond))])

    def together(self, other: AtLeast, how: Callable[[int, int], int]) -> AtLeast:
        """Return what `how` makes of both numbers, in any case and under each condition."""
        sure = min(how(self.sure, other.sure), MANY)
        conditions = {key: cond for key, cond, _ in (*self.given, *other.given)}
        numbers = ((k, c, min(how(self.at(k), other.at(k)), MANY)) for k, c in conditions.items())
        return AtLeast(sure, tuple(item for item in numbers if item[2] > sure))

    def without(self, variables: frozenset[Var]) -> AtLeast:
        """Return what is known where `variables` have other values."""
        kept = (item for item in self.given if variables.isdisjoint(walk(item[1])))
        return AtLeast(self.sure, tuple(kept))


State = tuple[AtLeast, ...]
"""Copies since the last group was closed, then those of the groups, the youngest first."""


def _least(states: Iterable[State | None]) -> State | None:
    """Return what is known on all of several ways; None stands for one that nobody goes."""
    real = [s for s in states if s is not None]
    if not real:
        return None
    return reduce(lambda a, b: tuple(x.together(y, min) for x, y in zip(a, b, strict=True)), real)


def _branched(cond: Expr, yes: State | None, no: State | None) -> State | None:
    """Return what is known behind a branch."""
    both = _least((yes, no))
    pure = not contains(cond, Load, Call)
    if both is None or yes is None or no is None or not pure:
        return both
    key = structure(cond)
    made: list[AtLeast] = []
    for group, chosen in zip(both, yes, strict=True):
        more = ((key, cond, chosen.sure),) if chosen.sure > group.at(key) else ()
        made.append(replace(group, given=(*group.given, *more)))
    return tuple(made)


class _Counter:
    """Follows all ways through a program; `found` is the number of each wait, by its path."""

    def __init__(self) -> None:
        self.found: dict[Path, int] = {}
        self.around: list[tuple[list[State], list[State]]] = []

    def visit(
        self, stmt: Stmt, path: Path, state: State | None, env: ConstraintSet
    ) -> State | None:
        """Return what is known after `stmt`; None where nobody comes out of it."""
        if state is None:
            return None
        match stmt:
            case Seq(body=body):
                for k, item in enumerate(body):
                    state = self.visit(item, (*path, k), state, env)
                    env = env.with_let(item.var, item.value) if isinstance(item, Let) else env
                return state
            case If(cond=cond, then=then, otherwise=otherwise):
                within = env.assuming(cond)
                sure = tuple(replace(group, sure=group.known(within)) for group in state)
                yes = self.visit(then, (*path, 0), sure, within)
                no: State | None = state
                if otherwise is not None:
                    no = self.visit(otherwise, (*path, 1), state, env.assuming(cond, holds=False))
                return _branched(cond, yes, no)
            case For() | While():
                return self._loop(stmt, path, state, env) if _counts(stmt) else state
            case Break() | Continue():
                if self.around:
                    self.around[-1][isinstance(stmt, Continue)].append(state)
                return None
            case Evaluate(value=Call() as call):
                return self._call(call, path, state, env)
        return state

    def _call(self, call: Call, path: Path, state: State, env: ConstraintSet) -> State:
        fresh, *groups = state
        match call.function:
            case function if function == COPY:
                return (_more(fresh, 1), *groups)
            case function if function == COMMIT:
                return (AtLeast(0), fresh, *groups[:-1]) if groups else (AtLeast(0),)
            case function if function == WAIT:
                young = groups[: _number(call.args[0])]
                number = min(fresh.known(env) + sum(g.known(env) for g in young), MOST_UNDER_WAY)
                self.found[path] = min(number, self.found.get(path, number))
        return state

    def _loop(
        self, loop: For | While, path: Path, state: State, env: ConstraintSet
    ) -> State | None:
        bound = frozenset(bound_variables(loop))
        runs: Expr = const(True)
        inside = env
        if isinstance(loop, For):
            runs = binary(BinaryOp.LT, loop.start, loop.stop)
            inside = env.assuming(runs).with_loop(loop.var, loop.start, loop.stop)
            if (iterations := static_range(loop)) is not None and _only_copies(loop.body):
                after = self.visit(loop.body, (*path, 0), (AtLeast(0),), inside)
                each = AtLeast(0) if after is None else after[0].without(bound)
                return (_more(state[0], len(iterations) * each.sure), *state[1:])
        entry: State | None = tuple(AtLeast(group.known(inside)) for group in state)
        head = entry
        while True:
            self.around.append(([], []))
            after = self.visit(loop.body, (*path, 0), head, inside)
            left, again = self.around.pop()
            end = _forgotten(_least((after, *again)), bound)
            grown = _least((head, end))
            if _is_same(grown, head):
                break
            head = grown
        over = end if isinstance(loop, For) else _least((state, end))
        over = _least((over, *(_forgotten(s, bound) for s in left)))
        if isinstance(loop, While) or env.proves(runs):
            return over
        return _branched(runs, over, state)


def _more(group: AtLeast, count: int) -> AtLeast:
    return group.together(AtLeast(count), int.__add__)


def _forgotten(state: State | None, variables: frozenset[Var]) -> State | None:
    return None if state is None else tuple(group.without(variables) for group in state)


def _is_same(a: State | None, b: State | None) -> bool:
    """Whether two states say the same: expressions have no equality of their own."""
    if a is None or b is None:
        return a is b
    return all(
        x.sure == y.sure and {(k, n) for k, _, n in x.given} == {(k, n) for k, _, n in y.given}
        for x, y in zip(a, b, strict=True)
    )


def _counts(stmt: Stmt) -> bool:
    """Whether copies, or ends of groups or waits, are anywhere in `stmt`."""
    return any(n.function in (COPY, COMMIT, WAIT) for n in nodes_of(stmt, Call))


def _only_copies(stmt: Stmt) -> bool:
    """Whether `stmt` has nothing but copies of what is counted, and is not left in the middle."""
    return not any(
        isinstance(n, (Break, Continue)) or (isinstance(n, Call) and n.function in (COMMIT, WAIT))
        for n in walk(stmt)
    )


def _number(expr: Node) -> int:
    return int(expr.value) if isinstance(expr, Const) else 0


def _replaced(stmt: Stmt, path: Path, found: dict[Path, int]) -> Stmt:
    """Return the program with numbers in its waits, and without the ends of groups."""
    match stmt:
        case Evaluate(value=Call(function=function)) if function == COMMIT:
            return Seq(())
        case Evaluate(value=Call(function=function)) if function == WAIT:
            number = as_expr(found.get(path, 0))  # a wait that nobody reaches
            return replace(stmt, value=device(COUNTED_WAIT, number))
    paths = ((*path, k) for k in count())
    made = map_statements(stmt, lambda inner: _replaced(inner, next(paths), found))
    if isinstance(made, Seq):
        return replace(made, body=tuple(i for i in made.body if not _is_empty(i)))
    return made


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and not stmt.body
