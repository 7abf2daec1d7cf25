"""Random integer expressions of three variables, and what they may be worth."""

from __future__ import annotations

import itertools
import random

from hypothesis import strategies as st

from tile_core.arith.evaluate import evaluate
from tile_core.arith.interval import Interval
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import binary, cast, const, maximum, minimum, select
from tile_core.ir.expr import BinaryOp, Expr, Var
from tile_core.ir.node import walk

T, U, V = (Var(name, dtype_of("int32")) for name in "tuv")
COMPARISONS = [op for op in BinaryOp if op.is_comparison]

numbers = st.sampled_from([0, 1, 2, 3, 4, 5, 7, 8, 12, 16, 31, 32, -1, -3, -8])
divisors = st.sampled_from([1, 2, 3, 4, 6, 8, 16, 24, 32, 64])
leaves = st.one_of(st.sampled_from([T, U, V]), numbers.map(const))
sums = st.tuples(*[st.sampled_from([0, 1, 1, 2, 4, 8, 16, 32, -1])] * 3, numbers).map(
    lambda k: T * k[0] + U * k[1] + V * k[2] + k[3]
)


def grow(parts):
    pairs = st.tuples(parts, parts)
    by = st.tuples(parts, divisors)
    return st.one_of(
        pairs.map(lambda p: p[0] + p[1]),
        pairs.map(lambda p: p[0] - p[1]),
        pairs.map(lambda p: p[0] ^ p[1]),
        pairs.map(lambda p: p[0] | p[1]),
        pairs.map(lambda p: p[0] * p[1]),
        pairs.map(lambda p: minimum(*p)),
        pairs.map(lambda p: maximum(*p)),
        st.tuples(parts, numbers).map(lambda p: p[0] * p[1]),
        by.map(lambda p: p[0] // p[1]),
        by.map(lambda p: p[0] % p[1]),
        by.map(lambda p: binary(BinaryOp.TRUNCDIV, *p)),
        by.map(lambda p: binary(BinaryOp.TRUNCMOD, *p)),
        st.tuples(parts, st.sampled_from([1, 3, 6, 7, 12, 15])).map(lambda p: p[0] & p[1]),
        st.tuples(parts, st.integers(1, 3)).map(lambda p: p[0] >> p[1]),
        st.tuples(parts, st.integers(1, 3)).map(lambda p: p[0] << p[1]),
        parts.map(lambda p: ~p),
        parts.map(lambda p: -p),
        parts.map(lambda p: cast(cast(p, "int64"), "int32")),
        st.tuples(st.sampled_from(COMPARISONS), pairs, pairs).map(
            lambda p: select(binary(p[0], *p[1]), *p[2])
        ),
    )


expressions = st.recursive(st.one_of(leaves, sums), grow, max_leaves=8)
ranges = st.tuples(
    *[st.tuples(st.sampled_from([0, 0, 0, -3, 5]), st.sampled_from([0, 1, 3, 6, 7, 15, 31]))] * 3
).map(lambda p: {v: Interval(low, low + n) for v, (low, n) in zip((T, U, V), p, strict=True)})


def points(known: dict[Var, Interval]) -> list[dict[Var, int]]:
    box = [range(known[v].low, known[v].high + 1) for v in (T, U, V)]
    all_ = [dict(zip((T, U, V), p, strict=True)) for p in itertools.product(*box)]
    return all_ if len(all_) <= 200 else random.Random(0).sample(all_, 200)


def in_range(expr: Expr, where: dict[Var, int]) -> bool:
    """Whether no part of an int32 expression overflows."""
    parts = [n for n in walk(expr) if isinstance(n, Expr) and n.dtype == "int32"]
    return all(-(2**31) <= evaluate(n, where) < 2**31 for n in parts)
