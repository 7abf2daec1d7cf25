"""What becomes of a layout that is demanded again, and what is said of tiles in local memory."""

from __future__ import annotations

from dataclasses import replace

import pytest

from support.thread_machine import MACHINE, RULES
from tile_core.errors import LayoutConflict, Span, TileWarning
from tile_core.ir.stmt import Kernel
from tile_core.layout import Fragment, fully_replicated
from tile_core.passes.infer_layouts import Layouts, infer_layouts
from tile_core.target import parse_target_spec
from tile_core.testing import build_ir as ir


def infer(kernel: Kernel) -> Layouts:
    return infer_layouts(kernel, parse_target_spec("cuda:sm_80"), RULES, simt=MACHINE)


@pytest.mark.parametrize("when", ["first", "again", "never"])
def test_more_threads_hold_a_tile_unless_one_demand_was_firm(when: str) -> None:
    x, y = ir.fragment("x", (32,)), ir.fragment("y", (32,))
    layouts = infer(ir.kernel([], 1, lambda bx: [*ir.alloc(x), ir.fill(x, 0)], threads=32))
    reason, narrow = layouts.reasons[x], Fragment((32,), lambda i: (i, 0))
    assert layouts.settle(y, narrow, reason, firm=when == "first")
    assert not layouts.settle(y, narrow, reason, firm=when == "again")
    if when == "never":
        assert layouts.settle(y, fully_replicated((32,), 32), reason)
    else:
        with pytest.raises(LayoutConflict):
            layouts.settle(y, fully_replicated((32,), 32), reason)


def test_where_else_a_tile_in_local_memory_is_used_is_told() -> None:
    x, y = ir.fragment("x", (8, 8)), ir.fragment("y", (8, 8))
    a, b = ir.tensor("A", (8, 8)), ir.tensor("B", (8, 8))
    both = ir.parallel(
        (8, 8), lambda i, j: ir.store(y, (i, j), ir.load(x, i, j) + ir.load(x, j, i))
    )
    body = [
        replace(stmt, span=Span("user.py", line, 0, 4))
        for line, stmt in enumerate((ir.copy(a, x), both, ir.copy(y, b)), 3)
    ]
    with pytest.warns(TileWarning, match="'x' is whole in each thread") as told:
        infer(ir.kernel([a, b], 1, lambda bx: [*ir.alloc(x, y), *body], threads=16))
    (text,) = (str(warning.message) for warning in told)
    assert "(it is used on line 3 too)" in text
