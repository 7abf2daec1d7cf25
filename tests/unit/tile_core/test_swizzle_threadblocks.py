"""Blocks in panels: every block once, neighbours together, results unchanged."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tile_api.language as T
from tile_core.arith.evaluate import evaluate
from tile_core.dtypes import dtype_of
from tile_core.interp import interpret
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.stmt import Hint, Launch, Seq
from tile_core.ir.verify import verify
from tile_core.passes.swizzle_threadblocks import place_in_panels, swizzle_threadblocks


def places(along: int, across: int, size: int, *, turns: bool) -> list[tuple[int, int]]:
    number = Var("number", dtype_of("int32"))
    first, second, names = place_in_panels(
        number, as_expr(along), as_expr(across), size, turns=turns
    )
    found = []
    for k in range(along * across):
        values = {number: k}
        for let in names:
            values[let.var] = evaluate(let.value, values)
        found.append((int(evaluate(first, values)), int(evaluate(second, values))))
    return found


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 10), st.booleans())
def test_every_place_once(along: int, across: int, size: int, turns: bool) -> None:
    found = places(along, across, size, turns=turns)
    assert sorted(found) == [(i, j) for i in range(along) for j in range(across)]


def test_panels_are_gone_through_back_and_forth() -> None:
    assert places(3, 5, 2, turns=True) == [
        (0, 0), (0, 1), (1, 0), (1, 1), (2, 0), (2, 1),
        (2, 2), (2, 3), (1, 2), (1, 3), (0, 2), (0, 3),
        (0, 4), (1, 4), (2, 4),
    ]  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("order", ["row", "column", "mlx"])
@pytest.mark.parametrize("size", [1, 2, 3, 10])
def test_results_do_not_change(order: str, size: int) -> None:
    @T.prim_func
    def main(C: T.Tensor((6, 5, 4), "int32")):
        with T.Kernel(5, 6, 4, threads=1) as (bx, by, bz):
            T.use_swizzle(size, order=order)
            C[by, bx, bz] = by * 100 + bx * 10 + bz

    made = swizzle_threadblocks(main.kernel)
    verify(made)
    assert made is not main.kernel
    expected, found = np.full((2, 6, 5, 4), -1, np.int32)
    interpret(main.kernel, [expected])
    interpret(made, [found])
    np.testing.assert_array_equal(found, expected)


def test_lines_of_blocks_stay() -> None:
    @T.prim_func
    def main(C: T.Tensor((6,), "int32")):
        with T.Kernel(6, threads=1) as bx:
            T.use_swizzle(4)
            C[bx] = bx

    assert swizzle_threadblocks(main.kernel) is main.kernel


def test_what_is_added_has_the_line_of_the_hint() -> None:
    @T.prim_func
    def main(C: T.Tensor((6, 5), "int32")):
        with T.Kernel(5, 6, threads=1) as (bx, by):
            T.use_swizzle(2)
            C[by, bx] = by * 10 + bx

    (hint,) = (n for n in walk(main.kernel) if isinstance(n, Hint))
    (launch,) = (n for n in walk(swizzle_threadblocks(main.kernel)) if isinstance(n, Launch))
    assert isinstance(launch.body, Seq)
    assert {stmt.span for stmt in launch.body.body[:-1]} == {hint.span}
    assert hint.span is not None
