"""Choices between lanes that bounds decide for most vectors of a loop."""

import tile_api as tile
import tile_api.language as T
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


@tile.jit(out_idx=[-1], target="cpu:znver3")
def joined(dtype: str = "bfloat16"):
    """Halves of rows side by side, each read where it is."""

    @T.prim_func
    def main(
        x: T.Tensor((64, 64), dtype), y: T.Tensor((64, 32), dtype), out: T.Tensor((64, 64), dtype)
    ):
        with T.Kernel(1) as _:
            for i, d in T.Parallel(64, 64):
                out[i, d] = T.if_then_else(
                    d < 32, x[i, d + 32] + y[i, d], x[i, d - 32] + y[i, d - 32]
                )

    return main


def test_what_only_a_choice_keeps_inside_is_read_without_masks_where_it_is_settled() -> None:
    text = joined.compile().get_kernel_source()
    assert "masked.load" not in text
    assert "fadd <8 x float>" in text
