"""Layout inference for threads: views of register tiles, rows, parts, and other operators."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.thread_machine import MACHINE, RULES, agree, poisoned
from tile_core.errors import LayoutConflict, LayoutError, UnsupportedOnTarget
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.stmt import AnnotateLayout, Break
from tile_core.layout import Fragment
from tile_core.ops.copy import Transpose
from tile_core.ops.parallel_form import as_parallel
from tile_core.passes.infer_layouts import Layouts, infer_layouts
from tile_core.passes.inference.view_layouts import seen_as
from tile_core.target import parse_target_spec
from tile_core.testing import build_ir as ir

TARGET = parse_target_spec("cuda:sm_80")


def infer(kernel: Any) -> Layouts:
    return infer_layouts(kernel, TARGET, RULES, simt=MACHINE)


def make(params: list[Buffer], tiles: list[Buffer], *body: Any, threads: int = 32) -> Any:
    return ir.kernel(params, 1, lambda bx: [*ir.alloc(*tiles), *body], threads=threads)


def integers(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(11).integers(-8, 8, shape).astype(dtype)


def test_a_view_in_another_shape_has_the_same_registers() -> None:
    a, b, x = ir.tensor("A", (16, 24)), ir.tensor("B", (384,)), ir.fragment("x", (16, 24))
    flat = ir.view(x, (384,))
    double = ir.parallel((384,), lambda i: ir.store(flat, i, ir.load(flat, i) * 2.0))
    kernel = make([a, b], [x], ir.copy(a, x), double, ir.copy(flat, b))
    layouts = infer(kernel)
    seen, whole = layouts.layout_of(flat), layouts.layout_of(x)
    assert isinstance(seen, Fragment)
    assert isinstance(whole, Fragment)
    assert seen.owners(5 * 24 + 7) == whole.owners(5, 7)
    agree(kernel, layouts, [integers((16, 24)), poisoned((384,))])


def test_narrow_elements_lie_inside_of_wide_ones() -> None:
    wide = ir.fragment("w", (8, 4), "int32")
    narrow = ir.view(wide, (8, 16), "int8")
    held = Fragment((8, 4), lambda i, j: (i * 2 + j // 2, j % 2), threads=32)
    seen = seen_as(held, wide, narrow)
    assert isinstance(seen, Fragment)
    assert seen.slots == 8
    for i, j in ((0, 0), (3, 9), (7, 15)):
        assert seen.owners(i, j) == held.owners(i, j // 4)
        assert seen.slot_table()[i, j] == held.slot_table()[i, j // 4] * 4 + j % 4
    again = seen_as(seen, narrow, wide)
    assert isinstance(again, Fragment)
    assert again.same_function(held)


def test_wide_elements_are_not_torn_apart() -> None:
    narrow = ir.fragment("n", (8, 16), "int8")
    wide = ir.view(narrow, (8, 4), "int32")
    with pytest.raises(LayoutError, match="side by side"):
        seen_as(Fragment((8, 16), lambda i, j: (j, i)), narrow, wide)
    torn = Fragment((8, 16), lambda i, j: (j, i), threads=32)
    use = ir.parallel((8, 4), lambda i, j: ir.store(wide, (i, j), 0))
    with pytest.raises(LayoutConflict, match="a view of it is in the way"):
        infer(make([], [narrow], AnnotateLayout(narrow, torn), use))


def test_rows_filled_one_by_one() -> None:
    b, x = ir.tensor("B", (8, 64)), ir.fragment("x", (8, 64))
    rows = ir.serial(8, lambda s: ir.fill(ir.region(x, (s, 0), (1, 64)), 3))
    kernel = make([b], [x], rows, ir.copy(x, b))
    agree(kernel, infer(kernel), [poisoned((8, 64))])


def test_parts_of_tiles_copied() -> None:
    a, b, x = ir.tensor("A", (8, 64)), ir.tensor("B", (8, 64)), ir.fragment("x", (8, 64))
    left = ir.copy(ir.region(a, (0, 0), (8, 32)), ir.region(x, (0, 0), (8, 32)))
    right = ir.copy(ir.region(a, (0, 32), (8, 32)), ir.region(x, (0, 32), (8, 32)))
    kernel = make([a, b], [x], left, right, ir.copy(x, b))
    layouts = infer(kernel)
    assert not any(found is None or found.searched for found in layouts.loops.values())
    agree(kernel, layouts, [integers((8, 64)), poisoned((8, 64))])


def test_a_transposed_tile_is_held_by_the_same_threads() -> None:
    a, b = ir.tensor("A", (16, 8)), ir.tensor("B", (8, 16))
    x, y = ir.fragment("x", (16, 8)), ir.fragment("y", (8, 16))
    whole = Region(x, (0, 0), (16, 8)), Region(y, (0, 0), (8, 16))
    kernel = make([a, b], [x, y], ir.copy(a, x), Transpose(*whole), ir.copy(y, b))
    layouts = infer(kernel)
    one, other = layouts.layout_of(x), layouts.layout_of(y)
    assert isinstance(one, Fragment)
    assert isinstance(other, Fragment)
    assert all(one.owners(i, j) == other.owners(j, i) for i in range(16) for j in range(8))
    agree(kernel, layouts, [integers((16, 8)), poisoned((8, 16))])


def test_the_loop_of_an_operator_is_made_once() -> None:
    a, x = ir.tensor("A", (4, 8)), ir.fragment("x", (4, 8))
    copy = ir.copy(a, x)
    layouts = infer(make([a], [x], copy))
    loop = layouts.loop_of(copy)
    assert loop is not None
    assert loop is layouts.loop_of(copy)
    assert loop.extents == (4, 8)
    assert len(as_parallel(copy).vars) == 2


def test_two_launches_have_threads_of_their_own() -> None:
    from tile_core.ir.stmt import Kernel

    a, b = ir.tensor("A", (64,)), ir.tensor("B", (64,))
    x, y = ir.fragment("x", (64,)), ir.fragment("y", (64,))
    first = ir.launch(1, lambda bx: [*ir.alloc(x), ir.copy(a, x), ir.copy(x, b)], threads=32)
    second = ir.launch(1, lambda bx: [*ir.alloc(y), ir.copy(b, y), ir.copy(y, a)], threads=64)
    layouts = infer(Kernel("main", (a, b), ir.seq(first, second)))
    slots = [layouts.layout_of(tile) for tile in (x, y)]
    assert [f.slots for f in slots if isinstance(f, Fragment)] == [2, 1]


def test_a_tile_that_nobody_touches_has_a_layout() -> None:
    x = ir.fragment("x", (4,))
    layouts = infer(make([], [x]))
    assert isinstance(layouts.layout_of(x), Fragment)
    assert layouts.reasons[x].who == "nobody"


@pytest.mark.parametrize("backwards", [False, True])
def test_rows_walked_in_either_direction(backwards: bool) -> None:
    a, b = ir.tensor("A", (8, 16)), ir.tensor("B", (16,))
    x, y = ir.fragment("x", (8, 16)), ir.fragment("y", (16,))
    start, stop, step = (7, -1, -1) if backwards else (0, 8, 1)

    def walked(i: Any) -> Any:
        def step_of(s: Any) -> Any:
            return ir.store(y, i, ir.load(y, i) * 2.0 + ir.load(x, s, i))

        return ir.serial(stop, step_of, start, step)

    body = ir.parallel((16,), walked)
    kernel = make([a, b], [x, y], ir.copy(a, x), ir.fill(y, 0), body, ir.copy(y, b))
    layouts = infer(kernel)
    held = layouts.layout_of(x)
    assert isinstance(held, Fragment)
    assert all(len({held.owners(s, i) for s in range(8)}) == 1 for i in range(16))
    agree(kernel, layouts, [integers((8, 16)), poisoned((16,))])


def test_work_for_all_threads_in_a_branch_of_some_is_refused() -> None:
    a, b = ir.tensor("A", (64,)), ir.tensor("B", (64,))
    work = ir.parallel((64,), lambda i: ir.store(b, i, ir.load(a, i)))
    for some, refused in ((True, True), (False, False)):
        kernel = ir.kernel(
            [a, b], 2,
            lambda bx, tx, ty, tz, some=some: [
                ir.when((tx if some else bx) < 1, work), ir.when(tx < 1, ir.store(b, 0, 1)),
            ],
            threads=32, thread_indices=True,
        )  # fmt: skip
        if refused:
            with pytest.raises(UnsupportedOnTarget, match="not all of them get here"):
                infer(kernel)
        else:
            assert len(infer(kernel).found.nests) == 1


@pytest.mark.parametrize("apart", ["bounds", "data", "break", "fixed", "common"])
def test_work_for_all_threads_in_a_loop_that_they_run_apart_is_refused(apart: str) -> None:
    a, b = ir.tensor("A", (64,)), ir.tensor("B", (64,))
    n = ir.tensor("N", (64,), "int32")
    work = ir.parallel((64,), lambda i: ir.store(b, i, ir.load(a, i)))

    def body(bx: Any, tx: Any, ty: Any, tz: Any) -> Any:
        if apart == "break":
            return ir.serial(4, lambda k: [ir.when(tx < k, Break()), work])
        counts = {"bounds": tx, "data": ir.load(n, tx), "fixed": tx // 32 + 4, "common": bx + 1}
        return ir.serial(counts[apart], lambda _: work)

    kernel = ir.kernel([a, b, n], 2, body, threads=32, thread_indices=True)
    if apart in ("fixed", "common"):
        assert len(infer(kernel).found.nests) == 1
    else:
        with pytest.raises(UnsupportedOnTarget, match="not all of them get here"):
            infer(kernel)
