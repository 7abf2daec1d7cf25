"""Choices between lanes that bounds decide for most vectors of a loop."""

from tile_core.arith.constraints import ConstraintSet
from tile_core.dtypes import dtype_of
from tile_core.ir.build_expr import const, select
from tile_core.ir.expr import Expr, Var
from tile_cpu.lowering.index_set_splitting import settled, stretches

INT32 = dtype_of("int32")
LANE, SHIFT = Var("d", INT32), Var("s", INT32)
ENV = ConstraintSet().with_loop(LANE, 0, 56).with_loop(SHIFT, 0, 3)


def runs(*conditions: Expr) -> list[tuple[int, int]]:
    body: Expr = const(1.0)
    for condition in conditions:
        body = select(condition, const(0.0), body)
    return [(r.start, r.stop) for r, _ in stretches(ENV, body, LANE, 8, 7)]


def test_a_comparison_is_settled_where_bounds_decide_it() -> None:
    assert settled(ENV, LANE + SHIFT < 58) is True
    assert settled(ENV, LANE + SHIFT < 0) is False
    assert settled(ENV, LANE + SHIFT < 57) is None
    assert settled(ENV.with_loop(LANE, 8, 48), LANE + SHIFT >= 1) is True


def test_vectors_in_which_the_same_is_settled_run_together() -> None:
    assert runs(LANE + SHIFT < 1) == [(0, 1), (1, 7)]
    assert runs(LANE + SHIFT < 1, LANE + SHIFT < 57) == [(0, 1), (1, 6), (6, 7)]


def test_conditions_that_nothing_is_known_of_leave_the_loop_whole() -> None:
    assert runs(SHIFT < 1) == [(0, 7)]
    assert runs(LANE < Var("n", INT32)) == [(0, 7)]
