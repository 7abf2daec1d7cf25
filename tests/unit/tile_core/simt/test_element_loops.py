"""Parallel loops and element-wise operators as programs of threads, against the interpreter."""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from support.thread_machine import GivenLayouts, agree, calls, poisoned, thread_program
from tile_core.dtypes import dtype_of
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import select
from tile_core.ir.node import walk
from tile_core.ir.stmt import AnnotateSafeValue, For, If, Kernel, Launch
from tile_core.layout import Fragment, fully_replicated, shared_operand
from tile_core.layout.loop_layout import planned
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.control import Barrier
from tile_core.ops.copy import Transpose
from tile_core.ops.im2col import Im2col
from tile_core.testing.build_ir import (
    alloc,
    copy,
    fill,
    fragment,
    kernel,
    let,
    load,
    local,
    parallel,
    region,
    serial,
    shared,
    store,
    symbol,
    tensor,
    value,
    variable,
    view,
    when,
)

SIZES = (1, 7, 31, 64, 100, 257)


def numbers(shape: tuple[int, ...], dtype: str = "float32", seed: int = 0) -> Any:
    return np.random.default_rng(seed).integers(-6, 7, shape).astype(dtype_of(dtype).numpy())


def plan(shape: tuple[int, ...], threads: int, vector: int = 4) -> Fragment:
    return planned(shape, threads, vector, holds_tiles=True).fragment


@pytest.mark.parametrize("size", SIZES)
def test_tensor_to_tensor(size: int) -> None:
    a, b = tensor("A", (size,)), tensor("B", (size,))
    k = kernel([a, b], 1, lambda bx: parallel((size,), lambda i: store(b, i, load(a, i) * 2.0)),
               threads=32)  # fmt: skip
    agree(k, GivenLayouts(32, {}), [numbers((size,)), poisoned((size,))])


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("shape", "box"),
    [((1, 1), (3, 5)), *product([(7, 3), (13, 8), (32, 64), (5, 130)], [(32, 64), (100, 70)])],
)
def test_tiles_of_tensors_that_end_inside(shape: tuple[int, int], box: tuple[int, int]) -> None:
    rows, columns = shape
    a, b = tensor("A", box), tensor("B", box, "float16")
    grid = (-(-box[0] // rows), -(-box[1] // columns))
    tile, part = fragment("F", shape), shared("S", shape, "float16")

    def body(bx: Any, by: Any) -> Any:
        at = (bx * rows, by * columns)
        return [
            alloc(tile, part),
            copy(region(a, at, shape), tile),
            parallel(shape, lambda i, j: store(part, (i, j), load(tile, i, j) + 1.0)),
            Barrier(),
            copy(part, region(b, at, shape)),
        ]

    k = kernel([a, b], grid, body, threads=32)
    layouts = GivenLayouts(32, {tile: plan(shape, 32)}, vector=8)
    agree(k, layouts, [numbers(box), poisoned(box, "float16")])


def _moved(dtype: str, to: str, width: int) -> tuple[Kernel, list[Any]]:
    a, b = tensor("A", (4, 128), dtype), tensor("B", (4, 128), to)
    k = kernel([a, b], 1, lambda bx: parallel(
        (4, 128), lambda i, j: store(b, (i, j), load(a, i, j))), threads=32)  # fmt: skip
    return k, [numbers((4, 128), dtype), poisoned((4, 128), to)]


@pytest.mark.parametrize(
    ("dtype", "to", "width", "expected"),
    [
        ("float32", "float32", 4, [("load", 4), ("store", 4)]),
        ("float16", "float16", 8, [("load", 8), ("store", 8)]),
        ("float16", "float32", 8, [("load", 8), ("store", 4)]),
        ("float32", "float16", 8, [("load", 4), ("store", 8)]),
        ("int8", "float32", 16, [("load", 16), ("store", 4)]),
        ("int8", "int8", 4, [("load", 4), ("store", 4)]),
        ("float64", "float32", 4, [("load", 2), ("store", 4)]),
        ("bool", "int32", 4, [("load", 4), ("store", 4)]),
        ("bfloat16", "bfloat16", 2, [("load", 2), ("store", 2)]),
        ("float8_e4m3fn", "float16", 8, [("load", 8), ("store", 8)]),
    ],
)
def test_both_sides_keep_their_width(
    dtype: str, to: str, width: int, expected: list[tuple[str, int]]
) -> None:
    k, args = _moved(dtype, to, width)
    lowered = agree(k, GivenLayouts(32, {}, vector=width), args)
    assert calls(lowered) == expected


def test_a_width_that_rows_do_not_divide_into() -> None:
    shape = (6, 30)
    a, b = tensor("A", shape), tensor("B", shape)
    k = kernel([a, b], 1, lambda bx: parallel(
        (6, 31), lambda i, j: store(b, (i, j), load(a, i, j))), threads=32)  # fmt: skip
    lowered = agree(k, GivenLayouts(32, {}), [numbers(shape), poisoned(shape)])
    assert calls(lowered) == []


@pytest.mark.parametrize("extent", [100, 104])
def test_guards_narrow_the_width_only_where_they_cut_vectors(extent: int) -> None:
    a, b = tensor("A", (extent,), "float16"), tensor("B", (extent,), "float16")
    k = kernel([a, b], 2, lambda bx: parallel(
        (64,), lambda i: store(b, bx * 64 + i, load(a, bx * 64 + i))), threads=8)  # fmt: skip
    args = [numbers((extent,), "float16"), poisoned((extent,), "float16")]
    lowered = agree(k, GivenLayouts(8, {}, vector=8), args)
    width = 8 if extent % 8 == 0 else 4
    assert calls(lowered) == [("load", width), ("store", width)]


def test_symbolic_extents_are_guarded_lane_by_lane() -> None:
    n = symbol("n")
    a, b = tensor("A", (n,)), tensor("B", (n,))
    k = kernel([a, b], 4, lambda bx: parallel(
        (32,), lambda i: store(b, bx * 32 + i, load(a, bx * 32 + i) + 1.0)), threads=8)  # fmt: skip
    for size in (1, 31, 100, 128):
        lowered = agree(k, GivenLayouts(8, {}), [numbers((size,)), poisoned((size,))])
        assert calls(lowered) == []


@pytest.mark.parametrize("size", [1, 5, 32, 100])
def test_loops_whose_extents_are_known_when_they_run(size: int) -> None:
    n, m = symbol("n"), symbol("m")
    a, b = tensor("A", (n, m)), tensor("B", (n, m))
    k = kernel([a, b], 1, lambda bx: parallel(
        (n, m), lambda i, j: store(b, (i, j), load(a, i, j) * 3.0)), threads=8)  # fmt: skip
    agree(k, GivenLayouts(8, {}), [numbers((size, 3)), poisoned((size, 3))])


def test_safe_values_take_the_place_of_what_is_outside() -> None:
    a, b = tensor("A", (10,)), tensor("B", (16,))
    k = kernel([a, b], 1, lambda bx: [
        AnnotateSafeValue(a, value(-3.0, "float32")),
        parallel((16,), lambda i: store(b, i, load(a, i) + load(a, i - 4))),
    ], threads=8)  # fmt: skip
    agree(k, GivenLayouts(8, {}), [numbers((10,)), poisoned((16,))])


def test_nothing_is_guarded_when_guards_are_off() -> None:
    a, b = tensor("A", (64,)), tensor("B", (64,))
    body = lambda bx: parallel((32,), lambda i: store(b, bx * 32 + i, load(a, bx * 32 + i)))  # noqa: E731
    k = kernel([a, b], symbol("blocks"), body, threads=8)
    assert isinstance(k.body, Launch)
    for guarded in (True, False):
        lowered, _ = thread_program(k.body, GivenLayouts(8, {}), guarded=guarded)
        assert any(isinstance(n, If) for n in walk(lowered.body)) is guarded


def test_tiles_that_all_threads_hold_are_written_out_by_one() -> None:
    bias, s, b = fragment("bias", (8,)), shared("S", (8,)), tensor("B", (8,))
    k = kernel([b], 1, lambda bx: [
        alloc(bias, s),
        parallel((8,), lambda i: store(bias, i, i * 2)),
        parallel((8,), lambda i: store(s, i, load(bias, i) + 1.0)),
        Barrier(),
        copy(s, b),
    ], threads=32)  # fmt: skip
    agree(k, GivenLayouts(32, {bias: fully_replicated((8,), 32)}), [poisoned((8,))])


@pytest.mark.parametrize("threads", [4, 16, 32])
def test_fragments_of_matrix_instructions(threads: int) -> None:
    base = Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))
    tile = base.repeat((2, 2), lower_dim_first=False)
    if threads != 32:
        tile = plan((16, 16), threads)
    c, out, s = fragment("C", (16, 16)), tensor("B", (16, 16), "float16"), shared("S", (16, 16))
    k = kernel([out], 1, lambda bx: [
        alloc(c, s),
        parallel((16, 16), lambda i, j: store(s, (i, j), i * 16 + j)),
        Barrier(),
        copy(s, c),
        parallel((16, 16), lambda i, j: store(c, (i, j), load(c, i, j) + 1.0)),
        copy(c, out),
    ], threads=threads)  # fmt: skip
    lowered = agree(k, GivenLayouts(threads, {c: tile}), [poisoned((16, 16), "float16")])
    if threads == 32:
        assert ("store", 2) in calls(lowered)


def test_serial_loops_branches_and_names_in_bodies() -> None:
    a, w, b = tensor("A", (20, 6)), shared("W", (6,)), tensor("B", (20,))
    acc = fragment("acc", (24,))
    k = kernel([a, b], 1, lambda bx: [
        alloc(acc, w),
        parallel((6,), lambda i: store(w, i, i + 1)),
        Barrier(),
        fill(acc, 0.0),
        parallel((24,), lambda i: serial(6, lambda s: let(
            "x", load(a, i, s), lambda x: store(acc, i, load(acc, i) + x * load(w, s))))),
        parallel((24,), lambda i: when(
            load(acc, i) > 4.0, store(b, i, load(acc, i)), store(b, i, select(i < 9, 1.0, -1.0)))),
    ], threads=8)  # fmt: skip
    layouts = GivenLayouts(8, {acc: plan((24,), 8)})
    agree(k, layouts, [numbers((20, 6)), poisoned((20,))])


def test_private_scalars_and_arrays_in_bodies() -> None:
    a, b, x, t = tensor("A", (40,)), tensor("B", (40,)), variable("x"), local("t", (4,))
    k = kernel([a, b], 1, lambda bx: [
        alloc(x, t),
        parallel((40,), lambda i: [
            store(x, 0, load(a, i)),
            serial(4, lambda s: store(t, s, load(x, 0) * 2.0)),
            store(b, i, load(t, 3) + load(x, 0)),
        ]),
    ], threads=8)  # fmt: skip
    agree(k, GivenLayouts(8, {}), [numbers((40,)), poisoned((40,))])


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("vector", [1, 8])
def test_asynchronous_copies(dtype: str, vector: int) -> None:
    a, b = tensor("A", (30, 64), dtype), tensor("B", (32, 64), dtype)
    s = shared("S", (32, 64), dtype)
    k = kernel([a, b], 1, lambda bx: [
        alloc(s),
        replace(copy(region(a, (0, 0), (32, 64)), s), is_async=True),
        CopyCommit(),
        CopyWait(0),
        Barrier(),
        copy(s, b),
    ], threads=32)  # fmt: skip
    bits = dtype_of(dtype).bits
    layouts = GivenLayouts(32, {s: shared_operand((32, 64), bits)}, vector=vector)
    lowered = agree(k, layouts, [numbers((30, 64), dtype), poisoned((32, 64), dtype)])
    nbytes = min(16, vector * bits // 8)
    how = [size for name, size in calls(lowered) if name == "async_copy"]
    assert how == ([nbytes] if nbytes >= 4 else [])


@pytest.mark.parametrize("safe", [0.0, -0.0, 2.0])
def test_asynchronous_copies_write_zeros_only_where_zero_is_meant(safe: float) -> None:
    a, b, s = tensor("A", (30,)), tensor("B", (32,)), shared("S", (32,))
    k = kernel([a, b], 1, lambda bx: [
        alloc(s),
        AnnotateSafeValue(a, value(safe, "float32")),
        replace(copy(region(a, (0,), (32,)), s), is_async=True),
        Barrier(),
        copy(s, b),
    ], threads=8)  # fmt: skip
    lowered = agree(k, GivenLayouts(8, {}), [numbers((30,)), poisoned((32,))])
    used = any(name == "async_copy" for name, _ in calls(lowered))
    assert used is (str(safe) == "0.0")


def test_transposes_and_image_patches() -> None:
    x, y = shared("X", (8, 12)), shared("Y", (12, 8))
    b = tensor("B", (12, 8))
    k = kernel([b], 1, lambda bx: [
        alloc(x, y),
        parallel((8, 12), lambda i, j: store(x, (i, j), i * 12 + j)),
        Barrier(),
        Transpose(region(x, (0, 0), (8, 12)), region(y, (0, 0), (12, 8))),
        Barrier(),
        copy(y, b),
    ], threads=8)  # fmt: skip
    agree(k, GivenLayouts(8, {}), [poisoned((12, 8))])
    image, out, columns = tensor("I", (2, 5, 5, 3)), tensor("O", (4, 16, 9)), shared("S", (16, 9))
    k = kernel([image, out], 4, lambda bx: [
        alloc(columns),
        Im2col(image, region(columns, (0, 0), (16, 9)), bx, value(1), 3, 1, 1, 1),
        Barrier(),
        copy(columns, region(out, (bx, 0, 0), (1, 16, 9))),
    ], threads=32)  # fmt: skip
    agree(k, GivenLayouts(32, {}), [numbers((2, 5, 5, 3)), poisoned((4, 16, 9))])


def test_views_of_shared_tiles_in_other_types() -> None:
    s, b = shared("S", (4, 16), "int8"), tensor("B", (4, 4), "int32")
    wide = view(s, (4, 4), "int32")
    a = tensor("A", (4, 16), "int8")
    k = kernel([a, b], 1, lambda bx: [alloc(s), copy(a, s), Barrier(), copy(wide, b)], threads=8)
    agree(k, GivenLayouts(8, {}), [numbers((4, 16), "int8"), poisoned((4, 4), "int32")])


def test_bulk_instructions_are_refused() -> None:
    a, s = tensor("A", (8,)), shared("S", (8,))
    op = replace(copy(a, s), prefer_instruction="tma")
    with pytest.raises(UnsupportedOnTarget, match="no rule lowers 'copy'"):
        GivenLayouts(8, {}).rule_of(op)


def _copied(op: Any, threads: int) -> Kernel:
    return kernel([op.src.buffer], 1, lambda bx: [alloc(op.dst.buffer), op], threads=threads)


def test_wishes_for_asynchronous_instructions_are_honoured_or_refused() -> None:
    a, s, h = tensor("A", (32,)), shared("S", (32,)), shared("H", (32,), "float16")
    wish = {"prefer_instruction": "cp_async"}
    lowered = agree(_copied(replace(copy(a, s), **wish), 8), GivenLayouts(8, {}), [numbers((32,))])
    assert calls(lowered) == [("async_copy", 16), ("async_copy_commit", 0), ("async_copy_wait", 0)]
    with pytest.raises(UnsupportedOnTarget, match="cannot use asynchronous instructions"):
        agree(_copied(replace(copy(a, h), **wish), 8), GivenLayouts(8, {}), [numbers((32,))])


def test_loops_without_a_formula_are_searched() -> None:
    tile = Fragment((4,), lambda i: (i * 3 % 5, 0))  # 0, 3, 1, 4: no digits of the coordinate
    assert loop_over(tile).searched
    f, b = fragment("F", (4,)), tensor("B", (4,))
    k = kernel([b], 1, lambda bx: [
        alloc(f),
        parallel((4,), lambda i: store(f, i, i)),
        parallel((4,), lambda i: store(b, i, load(f, i) * 2.0)),
    ], threads=8)  # fmt: skip
    agree(k, GivenLayouts(8, {f: tile}), [poisoned((4,))])


@pytest.mark.parametrize("threads", [32, 64])
def test_loops_over_registers_go_through_them_in_order(threads: int) -> None:
    base = Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))
    tile = base.repeat((2, 2), lower_dim_first=False)
    x, y, b = fragment("X", (16, 16)), fragment("Y", (16, 16), "float16"), tensor("B", (16, 16))
    k = kernel([b], 1, lambda bx: [
        alloc(x, y),
        parallel((16, 16), lambda i, j: store(x, (i, j), i * 16 + j)),
        fill(y, 3.0),
        parallel((16, 16), lambda i, j: let("t", load(x, i, j) * 2.0, lambda t: [
            store(x, (i, j), select(t > 9.0, t, load(y, i, j))),
        ])),
        copy(x, b),
    ], threads=threads)  # fmt: skip
    lowered = agree(k, GivenLayouts(threads, {x: tile, y: tile}), [poisoned((16, 16))])
    loops = [n for n in walk(lowered.body) if isinstance(n, For) and n.var.name.startswith("s")]
    assert [static_value(loop.stop) for loop in loops] == [8, 8]


def test_registers_that_hold_nothing_are_left_alone() -> None:
    tile = Fragment((5,), lambda i: (i % 4, i // 4))
    x, b = fragment("X", (5,)), tensor("B", (5,))
    k = kernel([b], 1, lambda bx: [
        alloc(x),
        parallel((5,), lambda i: store(x, i, i)),
        parallel((5,), lambda i: store(x, i, load(x, i) + 1.0)),
        copy(x, b),
    ], threads=4)  # fmt: skip
    agree(k, GivenLayouts(4, {x: tile}), [poisoned((5,))])
