"""Loops without guards, followed by the few iterations that need them."""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterable, Mapping
from functools import reduce

from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.simplify import is_index
from tile_core.dtypes import dtype_of
from tile_core.ir import build_expr
from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import binary, cast, const
from tile_core.ir.device_calls import PREFIX
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Call,
    Const,
    Expr,
    Load,
    Select,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.node import Node, nodes_of, rewrite, walk
from tile_core.ir.stmt import Break, For, If, Let, LoopKind, Seq, Stmt, Store
from tile_core.ir.visitor import StmtRewriter, own_level, static_range
from tile_core.records import replace
from tile_core.simt.loop_peeling import COPIES, Guards, Limit, Peelable, PeelScope, is_pure

MOST_NODES = 4000
"""Loops with larger bodies are not written twice."""
MOST_LIMITS = 3
"""So many different first iterations of guards are compared before a loop."""
SHORT_LOOP = 16
"""Loops of so few iterations, known in advance, stay as they are: they unroll well."""

PRODUCTS = tuple(PREFIX + name for name in ("mma_", "async_mma_", "dp4a"))
INT64 = dtype_of("int64")


def split_index_sets(stmt: Stmt, env: ConstraintSet, threads: Collection[Var] = ()) -> Stmt:
    """Return `stmt` with every loop in two where its first iterations need fewer guards.

    Before   for k in range(0, (n + 511) // 512):
               if k*512 + tid*4 < n: C[k*512 + tid*4] = ...
    After    let k_whole = n // 512
             for k in range(0, k_whole): C[k*512 + tid*4] = ...
             for k in range(k_whole, (n + 511) // 512):
               if k*512 + tid*4 < n: C[k*512 + tid*4] = ...

    A guard is the condition of a branch, of a lazy choice or of an asynchronous copy. It is
    decided up to an iteration as far as it consists of comparisons that are linear in the loop's
    variable; others may stay, if those that go would be made in every iteration of a loop inside.
    All threads of a block change over in the same iteration, so bodies may hold barriers; both
    loops together have the iterations of the one, in its order, for every value of every variable.
    Loops that are unrolled, are left by a break, or have a large body stay as they are, and so
    do loops with matrix products where only predicates would go, or a branch that all threads
    take together: a comparison costs less than a second copy of the products.

    The program is not simplified yet; `threads` are the variables that tell the threads of a block
    apart.
    """
    if not any(map(_guards, nodes_of(stmt, If, Select, Call))):
        return stmt
    return _Split(PeelScope(env, frozenset(threads))).rewrite(stmt)


def _guards(node: Node) -> bool:
    """Whether `node` does something under a condition."""
    match node:
        case If() | Select(lazy=True):
            return True
        case Call(function=function, args=(*_, predicate)):
            return function in COPIES and not isinstance(predicate, Const)
    return False


class _Split(StmtRewriter[PeelScope]):
    """Splits the loops of a program."""

    def rewrite_for(self, loop: For) -> Stmt:
        """Return a loop in two, if its first iterations need fewer guards."""
        if not _may_split(loop, self.scope):
            return self.rewrite_default(loop)
        guards = Guards(loop, self.scope)
        named = [] if is_pure(loop.stop) else [Let(_named(loop, "stop"), loop.stop, span=loop.span)]
        ends = replace(loop, stop=named[0].var) if named else loop
        plan = _Plan(ends, self.scope)
        whole = plan.whole(guards)
        if whole is None:
            return self.rewrite_default(loop)
        if not isinstance(whole, Const):
            named.append(Let(_named(loop, "whole"), whole, span=loop.span))
            whole = named[-1].var
        body = _decided(loop.body, guards, plan)
        for let in named:
            self.scope = self.scope.after(let)
        steady = self.rewrite_default(replace(ends, stop=whole, body=body))
        return Seq((*named, steady, replace(ends, start=whole)), span=loop.span)


def _named(loop: For, end: str) -> Var:
    return Var(f"{loop.var.name}_{end}", loop.var.dtype)


def _may_split(loop: For, scope: PeelScope) -> bool:
    """Whether the loop is one that could be worth two, whatever its guards."""
    step = static_value(loop.step)
    return (
        loop.kind is LoopKind.SERIAL
        and step is not None
        and step > 0
        and is_index(loop.var.dtype)
        and loop.stop.dtype == loop.var.dtype
        and not scope.varies(loop.start)
        and any(map(_guards, nodes_of(loop.body, If, Select, Call)))
        and not any(isinstance(inner, Break) for inner in own_level(loop.body))
        and not (static_range(loop) is not None and _picks_registers(loop))
    )


def _picks_registers(loop: For) -> bool:
    """Whether registers are picked by the variable: such a loop is unrolled."""
    derived: set[Node] = {loop.var}
    for node in nodes_of(loop.body, Let, Load, Store, AddressOf):
        if isinstance(node, Let) and not derived.isdisjoint(walk(node.value)):
            derived.add(node.var)
        if isinstance(node, (Load, Store, AddressOf)) and node.buffer.scope.is_thread_private:
            parts = (part for index in node.indices for part in walk(index))
            if not derived.isdisjoint(parts):
                return True
    return False


class _Plan:
    """Finds where a loop is split.

    Afterwards `limits` are those that end its first part, and `kept` is the keys of all that
    its first part does not pass.
    """

    def __init__(self, loop: For, scope: PeelScope) -> None:
        self.loop, self.scope = loop, scope
        self.limits: dict[Hashable, Limit] = {}
        self.kept: set[Hashable] = set()

    def whole(self, guards: Guards) -> Expr | None:
        """Return where the part without guards ends, or None if it is not worth having."""
        gaining = self._gaining(guards)
        if not gaining or not _is_light(self.loop.body, gaining):
            return None
        self._gaining(guards, at_any_price=True)
        return self._first_of(self.limits.values())

    def _gaining(self, guards: Guards, *, at_any_price: bool = False) -> list[Peelable]:
        """Return the guards that a first part passes, or shortens; note its limits."""
        gaining: list[Peelable] = []
        for guard in guards.found:
            verdict = guards.part(guard.cond, at_any_price=at_any_price)
            if verdict is None or verdict.holds not in guard.gains:
                continue
            never = {key for key, limit in verdict.limits.items() if self._is_never(limit)}
            ends = {key: limit for key, limit in verdict.limits.items() if key not in never}
            together = {**self.limits, **ends}
            if not ends or len(together) > MOST_LIMITS:
                continue
            if all(map(self._is_worth, ends.values())):
                self.limits = together
                self.kept |= together.keys() | never
                gaining.append(guard)
        return gaining

    def _is_never(self, limit: Limit) -> bool:
        """Whether the loop ends before `limit`."""
        return self.scope.env.proves(_iteration(limit) >= self.loop.stop)

    def _is_worth(self, limit: Limit) -> bool:
        """Whether the iterations before `limit` are most of the loop, as far as one can tell."""
        iterations, number = static_range(self.loop), limit.number
        if number is None:
            if iterations is not None and len(iterations) <= SHORT_LOOP:
                return False
            return not self.scope.env.proves(_iteration(limit) <= self.loop.start)
        if iterations is None:
            return False
        steady = len(range(iterations.start, min(number, iterations.stop), iterations.step))
        return len(iterations) > steady > len(iterations) - steady

    def _first_of(self, limits: Iterable[Limit]) -> Expr:
        """Return the first value of the loop's variable that is not before all limits."""
        loop, env = self.loop, self.scope.env
        start, stop = cast(loop.start, INT64), cast(loop.stop, INT64)
        first = reduce(build_expr.minimum, map(_iteration, limits))
        if not env.proves(first <= stop):
            first = build_expr.minimum(first, stop)
        if not env.proves(first >= start):
            first = build_expr.maximum(start, first)
        step = static_value(loop.step) or 1
        if step > 1:
            first = start + build_expr.ceildiv(first - start, step) * step
        return cast(first, loop.var.dtype)


def _iteration(limit: Limit) -> Expr:
    """Return the iteration of `limit`, in 64 bits: nothing overflows on the way."""
    total: Expr = const(0, INT64)
    for atom, factor in sorted(limit.rest.terms, key=lambda term: term[1] < 0):
        total = total + cast(atom.expr, INT64) * const(int(factor), INT64)
    total = total + const(int(limit.rest.constant) + limit.pace, INT64)
    return binary(BinaryOp.FLOORDIV, total, const(limit.pace, INT64))


def _is_light(body: Stmt, gaining: Iterable[Peelable]) -> bool:
    """Whether a second copy of `body` is a fair price for what is gained."""
    size = 0
    has_products = False
    for node in walk(body):
        size += 1
        has_products |= isinstance(node, Call) and node.function.startswith(PRODUCTS)
    return size <= MOST_NODES and (not has_products or any(g.is_branch for g in gaining))


def _decided(body: Stmt, guards: Guards, plan: _Plan) -> Stmt:
    """Return `body` as it is in the iterations before all limits of `plan`."""

    def known(cond: Expr) -> Expr:
        match cond:
            case Unary(op=UnaryOp.NOT, a=a):
                return build_expr.unary(UnaryOp.NOT, known(a))
            case Binary(op=BinaryOp.AND | BinaryOp.OR as op, a=a, b=b):
                return binary(op, known(a), known(b))
        verdict = guards.verdict(cond)
        if verdict is None or not verdict.limits.keys() <= plan.kept:
            return cond
        return const(verdict.holds, cond.dtype)

    conditions: Mapping[Expr, Expr] = {g.cond: known(g.cond) for g in guards.found}

    def rule(node: Node) -> Node:
        match node:
            case If(cond=cond) | Select(cond=cond, lazy=True) if cond in conditions:
                return replace(node, cond=conditions[cond])
            case Call(args=(*others, cond), function=function) if function in COPIES:
                return replace(node, args=(*others, conditions.get(cond, cond)))
        return node

    return rewrite(body, rule)
