"""Split loops run the same rounds, in the same order, and all threads change over together."""

from __future__ import annotations

from itertools import product
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from support.device_programs import flat, scalar, store
from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.evaluate import evaluate
from tile_core.ir.build_expr import as_expr, binary, select, unary
from tile_core.ir.expr import BinaryOp, Expr, UnaryOp, Var
from tile_core.ir.node import walk
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import For, If, Let, Seq, Stmt, Store
from tile_core.simt.index_set_splitting import split_index_sets
from tile_core.simt.simplify import simplify_indices

THREAD, BLOCK, N, K, I, ROW = (scalar(name) for name in ("t", "bx", "n", "k", "i", "row"))
OUT = flat("out", 1, "int32")
THREADS, BLOCKS = 8, 3
ORDER = [BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE]

small = st.integers(-9, 9)
lanes = st.sampled_from([THREAD, THREAD * 4, THREAD % 4, THREAD // 2 * 3, -THREAD, ROW, as_expr(0)])
paces = st.sampled_from([1, 2, 4, 8, 8, 16, 0, -4])
ends = st.sampled_from([N, N * 2 + 3, N // 3, BLOCK * 16, N - BLOCK * 8, as_expr(40), as_expr(9)])


@st.composite
def comparisons(draw: Any) -> Expr:
    index = K * draw(paces) + draw(lanes) + I * draw(st.integers(0, 4)) + draw(small)
    a, b = index, draw(ends) + draw(small)
    if draw(st.booleans()):
        a, b = b, a
    return binary(draw(st.sampled_from(ORDER)), a, b)


conditions = st.recursive(
    comparisons(),
    lambda parts: st.one_of(
        st.builds(binary, st.sampled_from([BinaryOp.AND, BinaryOp.OR]), parts, parts),
        st.builds(unary, st.just(UnaryOp.NOT), parts),
    ),
    max_leaves=3,
)


@st.composite
def loops(draw: Any) -> Stmt:
    """A loop over k of two loops over i, which share a guard and differ in their range."""
    at, shared = K * 64 + I * 8 + THREAD, draw(conditions)
    parts: list[Stmt] = [Let(ROW, THREAD * 2 + draw(small))]
    for value in (1, 2):
        otherwise = store(OUT, at, -value) if draw(st.booleans()) else None
        guarded = If(shared, store(OUT, at, value), otherwise)
        chosen = select(draw(st.one_of(conditions, st.just(shared))), at, 0)
        first = draw(st.integers(0, 2))
        stop = as_expr(first + draw(st.integers(0, 2)))
        inner = Seq((guarded, Store(OUT, (at,), chosen)))
        parts.append(For(I, as_expr(first), stop, as_expr(1), inner))
    body = Seq(tuple(parts))
    step = draw(st.sampled_from([1, 1, 1, 2, 3]))
    start = draw(st.sampled_from([as_expr(0), as_expr(0), as_expr(-2), N // 8, BLOCK]))
    stop = draw(st.sampled_from([(N + 7) // 8, N // 4 + 2, N, BLOCK + 4, as_expr(21)]))
    return Seq((For(K, start, stop, as_expr(step), body), store(OUT, 0, 4)))


def stores(stmt: Stmt, where: dict[Var, int]) -> list[tuple[int, int]]:
    """Run a program of one thread: what it stores."""
    match stmt:
        case Store(indices=(index,), value=value):
            return [(int(evaluate(index, where)), int(evaluate(value, where)))]
        case Let(var=var, value=value):
            where[var] = int(evaluate(value, where))
            return []
        case If(cond=cond, then=then, otherwise=otherwise):
            taken = then if evaluate(cond, where) else otherwise
            return [] if taken is None else stores(taken, dict(where))
        case For(var=var, start=start, stop=stop, step=step, body=body):
            rounds = range(*(int(evaluate(e, where)) for e in (start, stop, step)))
            return [done for x in rounds for done in stores(body, {**where, var: x})]
        case Seq(body=body):
            inner = dict(where)
            return [done for item in body for done in stores(item, inner)]
    raise TypeError(stmt)


@settings(max_examples=15)
@given(loops(), st.booleans())
def test_split_loops_run_the_same_rounds(program: Stmt, is_extent: bool) -> None:
    env = ConstraintSet().with_loop(THREAD, 0, THREADS).with_loop(BLOCK, 0, BLOCKS)
    env = env.with_symbol(N) if is_extent else env
    made = split_index_sets(program, env, {THREAD})
    event("split" if made is not program else "left alone")
    if made is program:
        return
    short = simplify_indices(made, env)
    for n, block, t in product((0, 8, 9, 31) if is_extent else (-17, 0, 7, 24), (0, 2), (0, 3, 7)):
        where = {THREAD: t, BLOCK: block, N: n}
        expected = stores(program, dict(where))
        note = f"{where}\n{print_stmt(program)}\n{print_stmt(made)}\n{print_stmt(short)}"
        assert stores(made, dict(where)) == expected, note
        assert stores(short, dict(where)) == expected, note


@given(loops())
def test_no_thread_changes_over_alone(program: Stmt) -> None:
    env = ConstraintSet().with_loop(THREAD, 0, THREADS).with_loop(BLOCK, 0, BLOCKS)
    for node in walk(split_index_sets(program, env, {THREAD})):
        if isinstance(node, Let) and node.var is not ROW:
            assert not {THREAD, ROW, I, K} & set(walk(node.value)), print_stmt(node)
