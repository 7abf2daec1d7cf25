"""Whether all of a data-parallel loop stays inside what it touches: one test, up front."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tile_core.arith.affine import Linear
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.in_range import prove_in_range
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import all_of, as_expr, binary, cast, const
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.node import Node, nodes_of, walk
from tile_core.ir.stmt import Alloc, For, Let, Parallel, Store
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.overflow import may_leave_tile


@dataclass(frozen=True, slots=True)
class Whole:
    """Accesses that are in range everywhere in a loop as long as a condition holds before it."""

    accesses: frozenset[Node]
    condition: Expr | None  # None: nothing has to hold


def whole_tile(ctx: Context, loop: Parallel) -> Whole:
    """Return under which conditions the accesses of `loop` are all in range.

    `ctx.env` knows the ranges of the loop's indices. Accesses whose index is not linear in
    inner indices are left out, and those that always leave the range somewhere, such as the
    operands of a choice: they stay guarded.
    """
    if not ctx.settings.guarded:
        return Whole(frozenset(), None)
    accesses: set[Node] = set()
    conditions: dict[object, Expr] = {}
    inner: list[Var] = list(loop.vars)
    private = {n.buffer for n in nodes_of(loop.body, Alloc)}
    for node, env in _accesses(loop.body, ctx.env, inner):
        if not node.buffer.scope.is_global and not _may_leave(ctx, node, env, private):
            continue
        wrap = [env.wraps(at) for at in node.indices]
        needed = _conditions(ctx, node, env, inner, wrap)
        if needed is not None:
            accesses.add(node)
            conditions.update(needed)
    return Whole(frozenset(accesses), all_of(list(conditions.values())))


def _may_leave(ctx: Context, node: Load | Store, env: ConstraintSet, private: set[Buffer]) -> bool:
    """Whether an access to a tile, of the block and not of an iteration, is not proven."""
    outer, ctx.env = ctx.env, env
    pairs = zip(node.indices, node.buffer.shape, strict=True)
    found = any(may_leave_tile(ctx, at, extent) for at, extent in pairs)
    ctx.env = outer
    return found and node.buffer not in private


def _accesses(
    stmt: Node, env: ConstraintSet, inner: list[Var]
) -> Iterator[tuple[Load | Store, ConstraintSet]]:
    """Yield accesses with what is known there; names bound inside join `inner`."""
    known = env
    match stmt:
        case For(var=var, start=start, stop=stop):
            inner.append(var)
            known = env.with_loop(var, start, stop)
        case Load() | Store():
            yield stmt, env
    for child in stmt.children():
        yield from _accesses(child, known, inner)
        if isinstance(child, Let):
            inner.append(child.var)
            known = known.with_let(child.var, child.value)


def _conditions(
    ctx: Context, node: Load | Store, env: ConstraintSet, inner: list[Var], wrap: list[bool]
) -> dict[object, Expr] | None:
    needed: dict[object, Expr] = {}
    for at, extent, wraps in zip(node.indices, node.buffer.shape, wrap, strict=True):
        if not wraps and prove_in_range(at, extent, env):
            continue
        form = env.linear(at)
        below = env.linear(extent) - form.plus(1)
        for value in (form, below):
            if env.is_natural(value) and not (wraps and value is form):
                continue  # what is known of exact sums says nothing of one that wraps
            lowest = _lowest(value, env, inner)
            if lowest is None or (not lowest.terms and lowest.constant < 0):
                return None
            condition = _is_natural(ctx, lowest)
            if condition is None:
                return None
            key = frozenset(lowest.terms), lowest.constant
            needed[key] = condition
    return needed


def _lowest(value: Linear, env: ConstraintSet, inner: list[Var]) -> Linear | None:
    """Return the smallest value over all inner names, in terms of what is outside."""
    for var in reversed(inner):
        factor, rest = value.apart(var)
        if not factor:
            continue
        bound = env.bounds_of.get(var)
        end = None if bound is None else bound.low if factor > 0 else bound.high
        if end is None:
            return None
        value = rest + end.times(factor)
    mentioned = {node for atom, _ in value.terms for node in walk(atom.expr)}
    if not mentioned.isdisjoint(inner) or any(isinstance(node, Load) for node in mentioned):
        return None
    return value


def _is_natural(ctx: Context, form: Linear) -> Expr | None:
    """Return whether a linear form is at least 0; None if it has fractions, or may be too large.

    A sum that may wrap says nothing about the places that it was made from: its two sides are
    compared, or else it is computed with twice as many bits.

    Before   n - e - 1 >= 0, e from memory
    After    n > e
    """
    if not all(isinstance(n, int) for n in (form.constant, *(f for _, f in form.terms))):
        return None
    total = _sum(form)
    if not ctx.env.wraps(total):
        return binary(BinaryOp.GE, total, const(0, total.dtype))
    sides = [
        _sum(Linear(tuple((a, f * sign) for a, f in form.terms if f * sign > 0)))
        for sign in (1, -1)
    ]
    if form.constant in (0, -1) and not any(map(ctx.env.wraps, sides)):
        return binary(BinaryOp.GT if form.constant else BinaryOp.GE, *sides)
    if any(atom.expr.dtype.bits > 32 for atom, _ in form.terms):
        return None
    wide = _sum(form, lambda atom: cast(atom, _WIDE))
    return binary(BinaryOp.GE, wide, const(0, _WIDE))


_WIDE = dtype_of("int64")


def _sum(form: Linear, of_atom: Callable[[Expr], Expr] = lambda atom: atom) -> Expr:
    total: Expr | int = 0
    for atom, factor in form.terms:
        total = total + of_atom(atom.expr) * int(factor)
    return as_expr(total + int(form.constant))
