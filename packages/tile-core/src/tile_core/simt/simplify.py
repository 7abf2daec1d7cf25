"""Short index expressions in thread-level programs: ranges are learnt on the way down."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from tile_core.arith.affine import Linear
from tile_core.arith.bounds import Bounds, Range, Ranges, bind_indices, fitted
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.interval import Interval
from tile_core.arith.simplify import Simplifier, acts, is_index
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Unary, UnaryOp, Var
from tile_core.ir.stmt import Alloc, For, If, Let, Seq, Stmt, Store, While
from tile_core.ir.visitor import jumps
from tile_core.records import replace
from tile_core.simt.common_subexpressions import eliminate_common_subexpressions
from tile_core.simt.program import DeviceFunction

P = TypeVar("P", "DeviceFunction", "Stmt")


def simplify_indices(program: P, ranges: ConstraintSet | Mapping[Var, Interval] | None = None) -> P:
    """Return `program` with every integer expression in its shortest known form.

    Before   S[(8*t + v) // 32 * 32 + (8*t + v) % 32] = A[int64(bx)*1024 + int64(8*t + v)]
    After    S[t*8 + v] = A[bx*1024 + t*8 + v]

    Sums are normalised, quotients and remainders of mixed radices resolved, disjoint bits
    added, decided comparisons, branches and loops of one iteration removed; arithmetic of 64 bits
    is left only where 32 might not suffice. All of it is exact, given that index arithmetic
    does not overflow; what the caller or memory gave may. Every node is looked at once.

    A function's block and thread indices have the ranges of its launch; `ranges` tells what is
    known of other free variables.
    """
    simplifier = Simplifier(Ranges({} if ranges is None else ranges))
    if not isinstance(program, DeviceFunction):
        return eliminate_common_subexpressions(simplify_stmt(program, simplifier))
    bounds = Bounds()
    bind_indices(program.launch, bounds)
    for var, known in bounds.ranges.items():
        simplifier.ranges.bind(var, *known)
    body = eliminate_common_subexpressions(simplify_stmt(program.launch.body, simplifier))
    return replace(program, launch=replace(program.launch, body=body))


NOTHING = Seq(())


def simplify_stmt(stmt: Stmt, s: Simplifier) -> Stmt:
    """Return `stmt` with simplified expressions, without what never runs.

    Before   for i < 8:  if i < 16:  A[i * 4 + 0] = …
    After    for i < 8:  A[i * 4] = …
    """
    rule = _STATEMENTS.get(type(stmt))
    if rule is not None:
        return rule(stmt, s)
    return stmt.map_children(lambda node: s.expr(node) if isinstance(node, Expr) else node)


def _seq(stmt: Seq, s: Simplifier) -> Stmt:
    return _sequence(stmt, s)[0]


def _sequence(stmt: Seq, s: Simplifier) -> tuple[Seq, Simplifier]:
    """Return the sequence, and what is known behind it: names given inside are known there, too.

    A name may be given anew, as in both parts of a loop that was split: what it was then does
    not hold any more.
    """
    body: list[Stmt] = []
    for item in stmt.body:
        part: Stmt
        if isinstance(item, Seq):
            part, s = _sequence(item, s)
        else:
            part = simplify_stmt(item, s)
        if isinstance(item, Let):
            s = _after_let(item, s)
        if isinstance(part, Seq) and not any(isinstance(x, (Let, Alloc)) for x in part.body):
            body.extend(part.body)
        else:
            body.append(part)
    return Seq(tuple(body), span=stmt.span), s


def _let(stmt: Let, s: Simplifier) -> Stmt:
    value = s.expr(stmt.value)
    if isinstance(value, Const) and is_index(value.dtype):
        return NOTHING  # its uses become the number
    return replace(stmt, value=value)


def _after_let(stmt: Let, s: Simplifier) -> Simplifier:
    if not is_index(stmt.var.dtype):
        return s
    value = s.form(stmt.value)
    s.ranges.name(stmt.var, stmt.value)
    return s.binding(stmt.var, fitted(*value.bounds, stmt.var.dtype), value.multiple)


def _store(stmt: Store, s: Simplifier) -> Stmt:
    indices = tuple(map(s.index, stmt.indices))
    return Store(stmt.buffer, indices, s.expr(stmt.value), span=stmt.span)


def _for(stmt: For, s: Simplifier) -> Stmt:
    start, stop, step = (s.expr(e) for e in (stmt.start, stmt.stop, stmt.step))
    inner = s
    if is_index(stmt.var.dtype) and isinstance(step, Const):
        first, end = s.form(stmt.start), s.form(stmt.stop)
        iterations = _iterations(first, end, int(step.value))
        if iterations == 0:
            return NOTHING
        if iterations == 1 and not first.terms and not jumps(stmt.body):
            return simplify_stmt(stmt.body, s.knowing({stmt.var: (first.constant, first.constant)}))
        bounds = _range_of_loop(first.bounds, end.bounds, int(step.value), iterations)
        inner = s.binding(stmt.var, bounds, math.gcd(first.multiple, int(step.value)))
    body = simplify_stmt(stmt.body, inner)
    return For(stmt.var, start, stop, step, body, stmt.kind, span=stmt.span)


def _iterations(first: Linear, end: Linear, step: int) -> int | None:
    """Return how often a loop runs, if that is a number."""
    distance = end - first
    return None if distance.terms else len(range(0, distance.constant, step))


def _range_of_loop(first: Range, end: Range, step: int, iterations: int | None) -> Range:
    low, high = (first[0], end[1] - 1) if step > 0 else (end[0] + 1, first[1])
    if iterations is not None:
        last = (iterations - 1) * step
        low, high = first[0] + min(last, 0), first[1] + max(last, 0)
    return (low, high) if low <= high else (low, low)


def _if(stmt: If, s: Simplifier) -> Stmt:
    cond = s.expr(stmt.cond)
    if isinstance(cond, Const):
        taken = stmt.then if cond.value else stmt.otherwise
        return NOTHING if taken is None else simplify_stmt(taken, s)
    then = simplify_stmt(stmt.then, s.knowing(dict(_learnt(cond, s, holds=True))))
    otherwise = None
    if stmt.otherwise is not None:
        otherwise = simplify_stmt(stmt.otherwise, s.knowing(dict(_learnt(cond, s, holds=False))))
        otherwise = None if _is_empty(otherwise) else otherwise
    if _is_empty(then) and otherwise is None and not acts(cond):
        return NOTHING
    return If(cond, then, otherwise, span=stmt.span)


def _is_empty(stmt: Stmt) -> bool:
    return isinstance(stmt, Seq) and not stmt.body


_NEGATED = {
    BinaryOp.LT: BinaryOp.GE,
    BinaryOp.LE: BinaryOp.GT,
    BinaryOp.GT: BinaryOp.LE,
    BinaryOp.GE: BinaryOp.LT,
    BinaryOp.EQ: BinaryOp.NE,
    BinaryOp.NE: BinaryOp.EQ,
}


def _learnt(cond: Expr, s: Simplifier, *, holds: bool) -> Iterator[tuple[Var, Range]]:
    """Yield tighter ranges of variables where `cond` holds, or does not."""
    if isinstance(cond, Unary) and cond.op is UnaryOp.NOT:
        yield from _learnt(cond.a, s, holds=not holds)
    if not isinstance(cond, Binary):
        return
    if cond.op is (BinaryOp.AND if holds else BinaryOp.OR):
        both = [*_learnt(cond.a, s, holds=holds), *_learnt(cond.b, s, holds=holds)]
        known: dict[Var, Range] = {}
        for var, (low, high) in both:
            before = known.get(var, (low, high))
            known[var] = max(low, before[0]), min(high, before[1])
        yield from known.items()
    elif cond.op.is_comparison and is_index(cond.a.dtype):
        op = cond.op if holds else _NEGATED[cond.op]
        yield from _compared(op, s.form(cond.a) - s.form(cond.b), s)


def _compared(op: BinaryOp, difference: Linear, s: Simplifier) -> Iterator[tuple[Var, Range]]:
    """Yield what ``difference op 0`` says, if it is about one variable."""
    if len(difference.terms) != 1:
        return
    ((atom, factor),) = difference.terms
    if not isinstance(atom.expr, Var):
        return
    low, high = s.ranges.learn(atom.expr)
    if factor < 0:
        factor, op = -factor, _MIRRORED.get(op, op)
        const = -difference.constant
    else:
        const = difference.constant
    # factor * var + const op 0, with factor > 0
    if op in (BinaryOp.LT, BinaryOp.LE, BinaryOp.EQ):
        high = min(high, (-const - (op is BinaryOp.LT)) // factor)
    if op in (BinaryOp.GT, BinaryOp.GE, BinaryOp.EQ):
        low = max(low, -((const - (op is BinaryOp.GT)) // factor))
    if low <= high:
        yield atom.expr, (low, high)


_MIRRORED = {
    BinaryOp.LT: BinaryOp.GT,
    BinaryOp.LE: BinaryOp.GE,
    BinaryOp.GT: BinaryOp.LT,
    BinaryOp.GE: BinaryOp.LE,
}


def _while(stmt: While, s: Simplifier) -> Stmt:
    return replace(stmt, cond=s.expr(stmt.cond), body=simplify_stmt(stmt.body, s))


_STATEMENTS: dict[type, Callable[[Any, Simplifier], Stmt]] = {
    Seq: _seq,
    Let: _let,
    Store: _store,
    For: _for,
    If: _if,
    While: _while,
}
