"""Loops of which several threads run each iteration: what others can notice happens once."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.thread_machine import GivenLayouts, agree, poisoned, run_lowered, thread_program
from tile_core.dtypes import dtype_of
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Var
from tile_core.ir.node import walk
from tile_core.ir.stmt import Evaluate, For, Launch, LoopKind, Parallel, Stmt
from tile_core.layout import Fragment, fully_replicated
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.ops.control import Barrier
from tile_core.testing.build_ir import (
    alloc,
    call_atomic,
    copy,
    fragment,
    kernel,
    let,
    load,
    parallel,
    shared,
    store,
    tensor,
)

TWICE = Fragment((16,), lambda i, rep: (i + rep * 16, 0), replicate=2)


def vectorized(count: int, body: Any) -> Stmt:
    var = Var("u", dtype_of("int32"))
    return For(
        var, as_expr(0), as_expr(count), as_expr(1), body(var), LoopKind.VECTORIZED
    )  # fmt: skip


@pytest.mark.parametrize("tile", [TWICE, fully_replicated((16,), 32)])
def test_sums_and_stores_count_once(tile: Fragment) -> None:
    x, s, c, b = fragment("X", (16,)), shared("S", (16,)), tensor("C", (16,)), tensor("B", (16,))
    k = kernel([c, b], 1, lambda bx: [
        alloc(x, s),
        parallel((16,), lambda i: [
            store(x, i, i + 1),
            Evaluate(call_atomic("add", c, (i,), load(x, i))),
            store(s, i, load(x, i) * 2.0),
            store(x, i, load(x, i) + 1.0),
        ]),
        Barrier(),
        parallel((16,), lambda i: store(b, i, load(x, i) + load(s, i))),
    ], threads=32)  # fmt: skip
    agree(k, GivenLayouts(32, {x: tile}), [np.zeros(16, np.float32), poisoned((16,))])


def test_vectors_of_registers_are_loaded_by_every_holder() -> None:
    rows, a, b = fragment("R", (4, 4)), tensor("A", (4, 4)), tensor("B", (4, 4))
    tile = Fragment((4, 4), lambda i, j, rep: (i + rep * 4, j), replicate=8)
    by_row = Fragment((4,), lambda i, rep: (i + rep * 4, 0), replicate=8)
    fill = parallel((4,), lambda i: vectorized(4, lambda u: store(rows, (i, u), load(a, i, u))))
    k = kernel([a, b], 1, lambda bx: [
        alloc(rows),
        fill,
        parallel((4, 4), lambda i, j: store(rows, (i, j), load(rows, i, j) * 2.0)),
        copy(rows, b),
    ], threads=32)  # fmt: skip
    layouts = GivenLayouts(32, {rows: tile}, loops={fill: loop_over(by_row)})
    agree(k, layouts, [np.arange(16, dtype=np.float32).reshape(4, 4), poisoned((4, 4))])


def test_results_of_what_happens_once() -> None:
    x, n, b = fragment("X", (16,)), tensor("N", (1,), "int32"), tensor("B", (16,), "int32")

    def body(target: Any) -> Any:
        return lambda i: let("old", call_atomic("add", n, (0,), 1), lambda old: [
            store(b, old, i), *([] if target is None else [store(target, i, 1.0)])])  # fmt: skip

    def build(target: Any) -> Any:
        return kernel([n, b], 1, lambda bx: [
            alloc(x), parallel((16,), lambda i: store(x, i, 0.0)), parallel((16,), body(target)),
        ], threads=32)  # fmt: skip

    loop = build(None)
    assert isinstance(loop.body, Launch)
    second = [s for s in walk(loop.body) if isinstance(s, Parallel)][1]
    layouts = GivenLayouts(32, {x: TWICE}, loops={second: loop_over(TWICE)})
    args = [np.zeros(1, np.int32), poisoned((16,), "int32")]
    lowered, ctx = thread_program(loop.body, layouts)
    run_lowered(lowered, ctx, loop, args)
    assert args[0].tolist() == [16]
    assert sorted(args[1].tolist()) == list(range(16))
    kept = build(x)
    assert isinstance(kept.body, Launch)
    with pytest.raises(UnsupportedOnTarget, match="'old' is the result of something that happens"):
        thread_program(kept.body, GivenLayouts(32, {x: TWICE}))
