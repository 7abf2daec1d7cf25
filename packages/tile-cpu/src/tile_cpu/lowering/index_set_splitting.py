"""Index sets split where conditions are decided: by bounds, for all lanes of a loop's vectors."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.interval import NEGATED
from tile_core.ir.build_expr import binary
from tile_core.ir.expr import Binary, Expr, Load, Select, Var
from tile_core.ir.node import Node, contains, nodes_of, walk

MOST_VECTORS = 32
"""Vectors of a loop that are looked at one by one."""


def settled(env: ConstraintSet, condition: Expr) -> bool | None:
    """Return what bounds say of a comparison, None if they do not decide it."""
    match condition:
        case Binary(op=op, a=a, b=b) if op.is_comparison and a.dtype.is_int:
            if env.wraps(condition):
                return None
            if env.proves(condition):
                return True
            return False if env.proves(binary(NEGATED[op], a, b)) else None
    return None


def stretches(
    env: ConstraintSet, body: Node, var: Var, lanes: int, count: int
) -> Iterator[tuple[range, ConstraintSet]]:
    """Yield runs of the first `count` vectors along `var` in which the same is settled.

    Before   for v in 7: x[…] = choose(8*v + lane + s < 1, 0, load)       where 0 <= s < 3
    After    the same for v in 0:1;  for v in 1:7: x[…] = load
    """
    choices = {n.cond for n in nodes_of(body, Select) if var in set(walk(n.cond))}
    conditions = [c for c in choices if not contains(c, Load)]

    def told(v: int) -> tuple[bool | None, ...]:
        here = env.with_loop(var, v * lanes, (v + 1) * lanes)
        return tuple(settled(here, condition) for condition in conditions)

    if not conditions or not 1 < count <= MOST_VECTORS:
        yield range(count), env
        return
    for _, run in groupby(range(count), told):
        found = [*run]
        first, stop = found[0], found[-1] + 1
        yield range(first, stop), env.with_loop(var, first * lanes, stop * lanes)
