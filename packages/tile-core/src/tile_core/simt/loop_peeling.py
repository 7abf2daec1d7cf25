"""Up to which iteration of a loop its guards are decided, whatever thread asks."""

from __future__ import annotations

import math
from collections.abc import Hashable, Mapping

from tile_core.arith.affine import Linear
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.simplify import acts, is_index
from tile_core.ir.device_calls import COUNTED_LOAD, PREFIX
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Load, Select, Unary, UnaryOp, Var
from tile_core.ir.node import Node, contains, nodes_of, walk
from tile_core.ir.stmt import Evaluate, For, If, Let, Seq, Stmt
from tile_core.ir.visitor import bound_variables, expressions_in, scoped, statements_in
from tile_core.records import dataclass, replace

COPIES = frozenset({PREFIX + "async_copy", PREFIX + COUNTED_LOAD})
"""Calls that begin a copy; the last argument of each says whether there is anything to copy."""

SIGNALS = frozenset(
    PREFIX + name
    for name in (
        *("mbarrier_wait", "mbarrier_wait_cluster"),
        *("mbarrier_arrive", "mbarrier_arrive_remote", "mbarrier_free_remote"),
        *("bar_sync", "bar_arrive", "sync_warp"),
    )
)
"""What threads tell each other about copies."""


@dataclass(frozen=True, slots=True)
class PeelScope:
    """What is known at a place of a thread's program.

    Threads of a block may have different values of the variables in `varying`.
    """

    env: ConstraintSet
    varying: frozenset[Var]

    def after(self, stmt: Stmt) -> PeelScope:
        """Return what is known behind a statement: one that names a value tells of it."""
        if not isinstance(stmt, Let):
            return self
        if not is_pure(stmt.value):
            return replace(self, varying=self.varying | {stmt.var})
        varying = self.varying | {stmt.var} if self.varies(stmt.value) else self.varying
        return PeelScope(self.env.with_let(stmt.var, stmt.value), varying)

    def within(self, loop: Stmt) -> PeelScope:
        """Return what is known in an iteration of `loop`."""
        if not isinstance(loop, For):
            return self
        ends = is_pure(loop.start) and is_pure(loop.stop)
        varying = self.varying
        if not ends or self.varies(loop.start) or self.varies(loop.step):
            varying = varying | {loop.var}
        step = loop.step.value if isinstance(loop.step, Const) else 0
        if not ends or step == 0:
            return PeelScope(self.env.with_bounds(loop.var, None, None), varying)
        if step > 0:
            return PeelScope(self.env.with_loop(loop.var, loop.start, loop.stop), varying)
        last = self.env.linear(loop.stop).plus(1)
        return PeelScope(self.env.with_bounds(loop.var, last, self.env.linear(loop.start)), varying)

    def assuming(self, cond: Expr, *, holds: bool) -> PeelScope:
        """Return what is known where `cond` holds, or does not."""
        return replace(self, env=self.env.assuming(cond, holds=holds)) if is_pure(cond) else self

    def varies(self, expr: Expr) -> bool:
        """Whether threads may see different values of `expr`."""
        return any(isinstance(n, (Load, Call)) or n in self.varying for n in walk(expr))


def is_pure(expr: Expr) -> bool:
    """Whether `expr` is made of variables and constants alone."""
    return not contains(expr, Load, Call)


def concerns_copies_alone(branch: If) -> bool:
    """Whether asynchronous copies, or signals about them, are all that a branch decides on.

    Where all threads take it together it costs a comparison per iteration, which is less than a
    second copy of what else the loop does: a software pipeline has its last iterations in its
    steady state for that reason.
    """
    return branch.otherwise is None and _concerns_copies(branch.then)


def _concerns_copies(stmt: Stmt) -> bool:
    match stmt:
        case Seq() | If() | For():
            return all(map(_concerns_copies, statements_in(stmt)))
        case Evaluate(value=Call(function=function)):
            return function in COPIES or function in SIGNALS
    return isinstance(stmt, Let)


@dataclass(frozen=True, slots=True)
class Limit:
    """The iteration ``rest // pace + 1``: in all before it, a comparison is decided.

    `rest` holds nothing that threads could disagree on.
    """

    pace: int
    rest: Linear

    @property
    def key(self) -> Hashable:
        """What is equal for equal limits."""
        return self.pace, self.rest.constant, frozenset(self.rest.terms)

    @property
    def number(self) -> int | None:
        """The iteration, if it is a number."""
        if not self.rest.is_number:
            return None
        return int(self.rest.constant) // self.pace + 1


Limits = Mapping[Hashable, Limit]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What a condition is in every iteration before all of `limits`."""

    holds: bool
    limits: Limits


@dataclass(frozen=True, slots=True)
class Peelable:
    """A condition, and for which of its values something is gained by knowing it."""

    cond: Expr
    gains: frozenset[bool]
    is_branch: bool


class Guards:
    """The guards of the body of one loop, and what they are worth in its first iterations.

    Before   for k: if k*128 + tid < n and row < m: ...      tid < 128
    After    ``k*128 + tid < n`` holds for k < (n - 128) // 128 + 1;  ``row < m`` is not known

    A comparison that stands at several places has the verdict that fits all of them.
    """

    def __init__(self, loop: For, scope: PeelScope) -> None:
        self.loop = loop
        self.found: list[Peelable] = []
        self._verdicts: dict[Expr, Verdict | None] = {}
        self._kept: dict[Expr, bool] = {}
        self._strangers = scope.varying.union(bound_variables(loop))
        self._inner = {n.var for n in nodes_of(loop.body, For)}
        self._visit(loop.body, scope.within(loop))

    def verdict(self, cond: Expr) -> Verdict | None:
        """Return what `cond` is in the first iterations, if that is known."""
        match cond:
            case Const(value=value):
                return Verdict(bool(value), {})
            case Unary(op=UnaryOp.NOT, a=a):
                inner = self.verdict(a)
                return None if inner is None else Verdict(not inner.holds, inner.limits)
            case Binary(op=BinaryOp.AND | BinaryOp.OR as op, a=a, b=b):
                sides = (self.verdict(a), self.verdict(b))
                neutral = op is BinaryOp.AND
                for side in sides:
                    if side is not None and side.holds is not neutral:
                        return side
                left, right = sides
                if left is None or right is None:
                    return None
                return Verdict(neutral, {**left.limits, **right.limits})
        return self._verdicts.get(cond)

    def part(self, cond: Expr, *, at_any_price: bool = False) -> Verdict | None:
        """Return what is known of `cond` in the first iterations, be it of some comparisons only.

        Before   for r in unrolled(4): if k*32 + r*8 + tid // 16 < n and column < m: load
        After    the first comparison holds for all k < (n - 32) // 32 + 1: four fewer an iteration

        Where some comparisons stay, those that go must vary in loops inside: one that all
        their iterations share costs less than a second loop. `at_any_price`: there is one anyway.
        """
        whole = self.verdict(cond)
        if whole is not None or not isinstance(cond, Binary) or not cond.op.is_logical:
            return whole
        neutral = cond.op is BinaryOp.AND
        limits: dict[Hashable, Limit] = {}
        for side in (cond.a, cond.b):
            known = self.part(side, at_any_price=at_any_price)
            if known is None or known.holds is not neutral:
                continue
            is_partial = self.verdict(side) is None
            if at_any_price or is_partial or not self._inner.isdisjoint(walk(side)):
                limits.update(known.limits)
        return Verdict(neutral, limits) if limits else None

    def _visit(self, stmt: Stmt, scope: PeelScope) -> None:
        if isinstance(stmt, If) and (scope.varies(stmt.cond) or not concerns_copies_alone(stmt)):
            gains = {True} if stmt.otherwise is None else {True, False}
            apart = scope.varies(stmt.cond) or stmt.otherwise is not None
            self._guard(Peelable(stmt.cond, frozenset(gains), is_branch=apart), scope)
        for expr in expressions_in(stmt):
            for node in walk(expr):
                self._evaluated(node, scope)
        for inner, inside in scoped(stmt, scope):
            self._visit(inner, scope if isinstance(stmt, If) else inside)

    def _evaluated(self, node: Node, scope: PeelScope) -> None:
        match node:
            case Select(cond=cond, then=then, otherwise=otherwise, lazy=True):
                kept = ((True, then), (False, otherwise))
                gains = {holds for holds, side in kept if not isinstance(side, Const)}
                self._guard(Peelable(cond, frozenset(gains), is_branch=True), scope)
            case Call(function=function, args=args) if function in COPIES:
                self._guard(Peelable(args[-1], frozenset({True}), is_branch=False), scope)

    def _guard(self, guard: Peelable, scope: PeelScope) -> None:
        if isinstance(guard.cond, Const) or acts(guard.cond):
            return
        self.found.append(guard)
        self._learn(guard.cond, scope)

    def _learn(self, cond: Expr, scope: PeelScope) -> None:
        """Work out the verdicts of the comparisons in `cond`."""
        match cond:
            case Unary(op=UnaryOp.NOT, a=a):
                self._learn(a, scope)
            case Binary(op=BinaryOp.AND | BinaryOp.OR, a=a, b=b):
                self._learn(a, scope)
                self._learn(b, scope)
            case Binary(op=op) if op in _SLACKS:
                verdict = self._compared(cond, scope)
                if cond in self._verdicts:
                    verdict = _both(verdict, self._verdicts[cond])
                self._verdicts[cond] = verdict

    def _compared(self, cond: Binary, scope: PeelScope) -> Verdict | None:
        """Return what a comparison is as long as the variable of the loop is small."""
        if not (is_index(cond.a.dtype) and is_pure(cond)):
            return None
        sign, less = _SLACKS[cond.op]
        difference = scope.env.linear(cond.b) - scope.env.linear(cond.a)
        slack = difference.times(sign).plus(-less)  # it holds if this is natural
        for holds, natural in ((True, slack), (False, (-slack).plus(-1))):
            limit = self._limit(natural, scope)
            if limit is not None:
                return Verdict(holds, {limit.key: limit})
        return None

    def _limit(self, value: Linear, scope: PeelScope) -> Limit | None:
        """Return before which iteration `value` is certainly natural, if that ends some time."""
        low = scope.env.lowest_by(value, self._keeps)
        if low is None or not low.is_whole:
            return None
        step, rest = low.apart(self.loop.var)
        if step >= 0:
            return None
        whole = math.ceil(rest.constant)  # all else in `low` and `value` is whole
        return Limit(-int(step), rest.plus(whole - rest.constant))

    def _keeps(self, atom: Expr) -> bool:
        """Whether a limit may speak of `atom`: known before the loop, equal in all threads."""
        if atom is self.loop.var:
            return True
        if atom not in self._kept:
            strange = any(node in self._strangers for node in walk(atom))
            self._kept[atom] = is_index(atom.dtype) and is_pure(atom) and not strange
        return self._kept[atom]


_SLACKS = {BinaryOp.LT: (1, 1), BinaryOp.LE: (1, 0), BinaryOp.GT: (-1, 1), BinaryOp.GE: (-1, 0)}
"""``a op b`` holds if ``(b - a) * first - second`` is natural."""


def _both(a: Verdict | None, b: Verdict | None) -> Verdict | None:
    if a is None or b is None or a.holds is not b.holds:
        return None
    return Verdict(a.holds, {**a.limits, **b.limits})
