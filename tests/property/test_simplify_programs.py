"""Simplified programs store the same values at the same places, in the same order."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from support.device_programs import flat, scalar, store
from support.index_strategies import COMPARISONS, T, U, V, divisors, expressions, in_range, sums
from tile_core.arith.evaluate import evaluate
from tile_core.arith.interval import Interval
from tile_core.ir.build_expr import as_expr, binary
from tile_core.ir.expr import Expr, Var
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import For, If, Let, Seq, Stmt, Store
from tile_core.simt.simplify import simplify_indices

OUT = flat("out", 1, "int32")
NAMED = scalar("named")


class Overflow(Exception):
    """The program computes a number that does not fit: it has no meaning."""


def value(expr: Expr, where: dict[Var, int]) -> int:
    if not in_range(expr, where):
        raise Overflow
    return int(evaluate(expr, where))


def stores(stmt: Stmt, where: dict[Var, int]) -> list[tuple[int, int]]:
    """Run a program of one thread: what it stores."""
    match stmt:
        case Store(indices=(index,), value=stored):
            return [(value(index, where), value(stored, where))]
        case Let(var=var, value=named):
            where[var] = value(named, where)
            return []
        case If(cond=cond, then=then, otherwise=otherwise):
            for side in (cond.a, cond.b) if hasattr(cond, "a") else ():
                value(side, where)
            taken = then if evaluate(cond, where) else otherwise
            return [] if taken is None else stores(taken, dict(where))
        case For(var=var, start=start, stop=stop, step=step, body=body):
            rounds = range(*(value(e, where) for e in (start, stop, step)))
            return [done for x in rounds for done in stores(body, {**where, var: x})]
        case Seq(body=body):
            return [done for item in body for done in stores(item, where)]
    raise TypeError(stmt)


bounds = st.integers(-3, 6)
steps = st.sampled_from([1, 1, 2, 4, 8, -1, -4])


@st.composite
def programs(draw) -> Stmt:
    """A loop over a variable with a name for a value and a branch, twice with other bounds."""
    loops = []
    for _ in range(2):
        named = draw(st.one_of(sums, expressions))
        named = named * draw(st.sampled_from([1, 4, 8]))
        index = (NAMED + draw(sums)) // draw(divisors) + (NAMED + V) % draw(divisors)
        condition = binary(
            draw(st.sampled_from(COMPARISONS)),
            draw(st.sampled_from([T, U, NAMED + V])),
            draw(bounds),
        )
        branch = If(
            condition, store(OUT, index, draw(sums) // 4), store(OUT, draw(sums) % 8, index)
        )
        body = Seq((Let(NAMED, named), branch, store(OUT, NAMED % 8, NAMED // 8)))
        start, step = draw(bounds) * draw(st.sampled_from([1, 4])), draw(steps)
        stop = start + step * draw(st.integers(0, 3))
        loops.append(For(V, as_expr(start), as_expr(stop), as_expr(step), body))
    return Seq(tuple(loops))


@given(programs())
def test_simplified_programs_store_the_same(program):
    known = {T: Interval(0, 3), U: Interval(-1, 2)}
    result = simplify_indices(program, known)
    for t in range(4):
        for u in range(-1, 3):
            try:
                expected = stores(program, {T: t, U: u})
            except Overflow:
                continue
            where = f"t = {t}, u = {u}\n{print_stmt(program)}\n{print_stmt(result)}"
            assert stores(result, {T: t, U: u}) == expected, where
