"""Stepped addresses: the short form gives what the layout says, for every thread and step."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tile_core.arith.constraints import ConstraintSet
from tile_core.arith.evaluate import evaluate
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Binary, BinaryOp, Const, Expr, Var
from tile_core.ir.node import walk
from tile_core.ir.stmt import Let, Seq
from tile_core.layout import Layout, padded, row_major, shared_operand
from tile_core.simt.buffer_addresses import BufferAddresses
from tile_core.simt.context import Names, SimtContext
from tile_core.simt.induction_strength_reduction import (
    Step,
    induction_address,
    leads_by_offset,
)
from tile_core.simt.lower_statements import lower_stmt
from tile_core.target import parse_target_spec
from tile_core.testing.build_ir import dtype, shared
from tile_cuda.machine import machine

THREAD, STAGE = Var("tid", dtype("int32")), Var("stage", dtype("int32"))


class OneLayout:
    def __init__(self, layout: Layout) -> None:
        self.layout = layout

    def layout_of(self, buffer: Buffer) -> Layout:
        return self.layout


def context(layout: Layout, threads: int = 64) -> SimtContext:
    return SimtContext(
        parse_target_spec("cuda:sm_80"), machine("sm_80"), None, THREAD, threads,  # type: ignore[arg-type]
        ConstraintSet().with_loop(THREAD, 0, threads), BufferAddresses(OneLayout(layout)), Names(),
        lower_stmt,
    )  # fmt: skip


def rows_of_a(thread: Any) -> tuple[Any, Any]:
    """The rows that lanes address of the first operand, 16 x 16 elements per warp."""
    return thread // 32 * 16 + thread % 16, thread % 32 // 16 * 8


def rows_of_b(thread: Any) -> tuple[Any, Any]:
    return thread % 16, thread // 32 * 16 + thread % 32 // 16 * 8


CASES = {
    "64-byte swizzle, along columns": (
        shared_operand((64, 32), 16), rows_of_a, (Step(2, 32, 0), Step(2, 0, 16)), True,
    ),
    "128-byte swizzle, over two spans": (
        shared_operand((64, 128), 16), rows_of_a, (Step(2, 32, 0), Step(8, 0, 16)), True,
    ),
    "rows of k": (
        shared_operand((32, 128), 16), rows_of_b, (Step(4, 0, 32), Step(2, 16, 0)), True,
    ),
    "padded rows": (padded((64, 48), 8), rows_of_a, (Step(2, 32, 0), Step(3, 0, 16)), True),
    "plain rows": (row_major((64, 64)), rows_of_a, (Step(2, 32, 0), Step(4, 0, 16)), True),
    "a period that the steps do not keep": (
        shared_operand((32, 96), 16), lambda t: (t % 16, t // 32 * 48 + t % 32 // 16 * 8),
        (Step(3, 0, 16), Step(2, 16, 0)), False,
    ),
    "one round": (shared_operand((64, 32), 16), rows_of_a, (Step(1, 0, 0), Step(2, 0, 16)), True),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("stages", [0, 3])
def test_addresses_are_those_of_the_layout(name: str, stages: int) -> None:
    layout, place, steps, is_short = CASES[name]
    rows, columns = layout.shape
    if stages:
        layout = layout.expand((stages,))
    tile = shared("tile", layout.shape, "float16")
    lead = (STAGE,) if stages else ()
    region = Region(tile, (*lead, 0, 0), (*(1 for _ in lead), rows, columns))
    ctx = context(layout)
    found = induction_address(ctx, "a", region, place, steps)
    lets = [s for s in walk(found.setup) if isinstance(s, Let)]
    assert bool(lets) is is_short
    for stage in range(max(1, stages)):
        for thread in (0, 1, 7, 8, 15, 16, 31, 32, 45, 63):
            env: dict[Var, Any] = {THREAD: thread, STAGE: stage}
            for let in lets:
                env[let.var] = evaluate(let.value, env)
            for u in range(steps[0].count):
                for v in range(steps[1].count):
                    row, column = place(thread)
                    row += u * steps[0].rows + v * steps[1].rows
                    column += u * steps[0].columns + v * steps[1].columns
                    wanted = layout.address(*([stage] if stages else []), row, column)
                    got = evaluate(found.of(constant(u), constant(v)).indices[0], env)
                    assert got == wanted, (thread, u, v)


def constant(number: int) -> Expr:
    return Const(number, dtype("int32"))


def test_a_step_costs_one_exclusive_or_and_a_constant() -> None:
    layout = shared_operand((64, 32), 16)
    tile = shared("tile", (64, 32), "float16")
    found = induction_address(
        context(layout), "a", Region(tile, (0, 0), (64, 32)), rows_of_a,
        (Step(2, 32, 0), Step(2, 0, 16)),
    )  # fmt: skip
    u, v = Var("u", dtype("int32")), Var("v", dtype("int32"))
    operations = [n.op for n in walk(found.of(u, v)) if isinstance(n, Binary)]
    assert sorted(op.value for op in operations) == ["*", "*", "+", "^"]
    assert isinstance(found.setup, Seq)


def test_origins_known_at_run_time_are_written_out() -> None:
    layout = row_major((64, 64))
    tile = shared("tile", (64, 64), "float16")
    found = induction_address(
        context(layout),
        "a",
        Region(tile, (STAGE * 16, 0), (16, 64)),
        rows_of_a,
        (Step(1, 0, 0),),
    )
    assert not [s for s in walk(found.setup) if isinstance(s, Let)]
    address = found.of(constant(0)).indices[0]
    assert evaluate(address, {THREAD: 17, STAGE: 2}) == layout.address(2 * 16 + 1, 8)
    assert any(isinstance(n, Binary) and n.op is BinaryOp.ADD for n in walk(address))


def test_leading_dimensions_that_mix_with_rows_are_noticed() -> None:
    assert leads_by_offset(row_major((3, 8, 8)))
    mixed = Layout((2, 8, 8), lambda s, i, j: (s, i, j ^ (s * 4 + i % 2)))
    assert not leads_by_offset(mixed)
    tile = shared("tile", (2, 8, 8), "float16")
    found = induction_address(
        context(mixed, 8), "a", Region(tile, (STAGE, 0, 0), (1, 8, 8)), lambda t: (t, t * 0),
        (Step(1, 0, 0),),
    )  # fmt: skip
    for stage in (0, 1):
        for thread in range(8):
            got = evaluate(found.of(constant(0)).indices[0], {THREAD: thread, STAGE: stage})
            assert got == mixed.address(stage, thread, 0)
    assert np.unique(mixed.linear_table()).size == mixed.size
