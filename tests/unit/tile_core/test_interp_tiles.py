"""Tile programs in the interpreter: copies, products, reductions, loops, branches."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.errors import AssumptionError, DeviceAssertError, EmptyGridError, UndefinedOperation
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.buffer import Region, whole
from tile_core.ir.build_expr import cast
from tile_core.ir.expr import Bitcast, Ramp, Shuffle
from tile_core.ir.stmt import (
    AnnotateSafeValue,
    Break,
    Check,
    CheckKind,
    Continue,
    Kernel,
)
from tile_core.ops.copy import Transpose
from tile_core.ops.im2col import Im2col
from tile_core.testing.build_ir import (
    alloc,
    copy,
    fill,
    fragment,
    gemm,
    kernel,
    launch,
    let,
    load,
    local,
    loop_while,
    parallel,
    pipelined,
    region,
    seq,
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

rng = np.random.default_rng(7)


def ints(*shape, low=-4, high=5, dtype=np.float32):
    return rng.integers(low, high, shape).astype(dtype)


def run(k, *args, **options):
    interpret(k, args, options=InterpretOptions(**options))


def test_gemm_with_pipeline_and_epilogue():
    a, b, c = tensor("A", (20, 24)), tensor("B", (24, 12)), tensor("C", (20, 12))
    sa, sb, acc = shared("sa", (16, 8)), shared("sb", (8, 8)), fragment("acc", (16, 8))

    def body(bx, by):
        return [
            alloc(sa, sb, acc),
            fill(acc, 0),
            pipelined(
                3,
                lambda ko: [
                    copy(region(a, (by * 16, ko * 8), (16, 8)), sa),
                    copy(region(b, (ko * 8, bx * 8), (8, 8)), sb),
                    gemm(sa, sb, acc),
                ],
            ),
            parallel((16, 8), lambda i, j: store(acc, (i, j), load(acc, i, j) * 2.0 + 1.0)),
            copy(acc, region(c, (by * 16, bx * 8), (16, 8))),
        ]

    k = kernel([a, b, c], (2, 2), body, outputs=(2,), threads=128)
    x, y, out = ints(20, 24), ints(24, 12), np.full((20, 12), np.nan, np.float32)
    run(k, x, y, out, block_order="random", seed=3)
    np.testing.assert_array_equal(out, 2 * (x @ y) + 1)


@pytest.mark.parametrize("transpose_a", [False, True])
@pytest.mark.parametrize("transpose_b", [False, True])
def test_gemm_transposes_and_clear(transpose_a, transpose_b):
    a = tensor("A", (5, 3) if transpose_a else (3, 5))
    b = tensor("B", (7, 5) if transpose_b else (5, 7))
    c = tensor("C", (3, 7))
    acc = fragment("acc", (3, 7))
    sa, sb = shared("sa", a.shape), shared("sb", b.shape)

    def body(bx):
        return [
            alloc(acc, sa, sb),
            copy(a, sa),
            copy(b, sb),
            serial(
                3,
                lambda s: gemm(
                    sa, sb, acc, transpose_a=transpose_a, transpose_b=transpose_b, clear=s.__eq__(0)
                ),
            ),
            copy(acc, c),
        ]

    x, y, out = ints(*a.shape), ints(*b.shape), np.full((3, 7), np.nan, np.float32)
    run(kernel([a, b, c], 1, body, outputs=(2,)), x, y, out)
    np.testing.assert_array_equal(
        out, 3 * (x.T if transpose_a else x) @ (y.T if transpose_b else y)
    )


def test_int8_gemm_wraps_in_its_accumulator():
    a, b, c = tensor("A", (2, 4), "int8"), tensor("B", (4, 2), "int8"), tensor("C", (2, 2), "int32")
    c8 = tensor("C8", (2, 2), "int8")
    x, y = (
        ints(2, 4, low=-128, high=128, dtype=np.int8),
        ints(4, 2, low=-128, high=128, dtype=np.int8),
    )
    wide, narrow = np.empty((2, 2), np.int32), np.empty((2, 2), np.int8)

    def body(bx):
        return [gemm(a, b, c, clear=True), gemm(a, b, c8, clear=True)]

    run(kernel([a, b, c, c8], 1, body), x, y, wide, narrow)
    exact = x.astype(np.int64) @ y.astype(np.int64)
    np.testing.assert_array_equal(wide, exact)
    np.testing.assert_array_equal(narrow, exact.astype(np.int8))


def test_bounds_of_global_tensors_and_safe_values():
    a, b = tensor("A", (6,), "int32"), tensor("B", (4,), "int32")
    tile = shared("t", (8,), "int32")

    def body(bx):
        return seq(
            AnnotateSafeValue(a, value(-7)),
            alloc(tile),
            copy(region(a, (3,), (8,)), tile),
            store(tile, 0, load(a, value(100)) + load(a, value(-1))),
            parallel((8,), lambda i: store(b, i + 1, load(tile, i))),
        )

    x, out = np.arange(6, dtype=np.int32), np.full(4, 99, np.int32)
    run(kernel([a, b], 1, body), x, out)
    np.testing.assert_array_equal(out, [99, -14, 4, 5])


def test_safe_value_ends_with_its_block():
    a, b = tensor("A", (1,), "int32"), tensor("B", (2,), "int32")

    def body(bx):
        inner = seq(AnnotateSafeValue(a, value(5)), store(b, 0, load(a, 9)))
        return [inner, store(b, 1, load(a, 9))]

    out = np.full(2, -1, np.int32)
    run(kernel([a, b], 1, body), np.zeros(1, np.int32), out)
    np.testing.assert_array_equal(out, [5, 0])


def test_transpose_and_im2col():
    a, b = tensor("A", (3, 5)), tensor("B", (5, 3))
    x, out = ints(3, 5), np.zeros((5, 3), np.float32)
    run(kernel([a, b], 1, lambda bx: Transpose(whole(a), whole(b))), x, out)
    np.testing.assert_array_equal(out, x.T)

    image, cols = tensor("I", (2, 5, 5, 3)), tensor("O", (2, 5, 9, 27))
    pic = ints(2, 5, 5, 3)
    got = np.full((2, 5, 9, 27), np.nan, np.float32)  # 2*3*3 rows of 3*3*3, stride 2, pad 1

    def body(bx):
        rows = region(cols, (bx // 3, bx % 3, 0, 0), (1, 1, 9, 27))
        return Im2col(image, rows, bx, value(0), 3, 2, 1, 1)

    run(kernel([image, cols], 2, body), pic, got)
    padded = np.pad(pic, ((0, 0), (1, 1), (1, 1), (0, 0)))
    want = np.stack(
        [
            padded[n, 2 * h : 2 * h + 3, 2 * w : 2 * w + 3].ravel()
            for n in range(2)
            for h in range(3)
            for w in range(3)
        ]
    )
    np.testing.assert_array_equal(got[0, :2].reshape(18, 27), want)


def test_loops_break_continue_while():
    out = tensor("O", (10,), "int32")
    n = variable("n", "int32")

    def body(bx):
        return [
            alloc(n),
            store(n, 0, 0),
            serial(
                10,
                lambda i: [
                    when((i % 2).__eq__(1), Continue()),
                    when(i > 6, Break()),
                    store(out, i, i * 10),
                ],
            ),
            serial(7, lambda i: store(out, i, -i), start=9, step=-1),
            loop_while(load(n, 0) < 5, store(n, 0, load(n, 0) + 2)),
            store(out, 1, load(n, 0)),
        ]

    got = np.full(10, 99, np.int32)
    run(kernel([out], 1, body), got)
    np.testing.assert_array_equal(got, [0, 6, 20, 99, 40, 99, 60, 99, -8, -9])


def test_lanes_leave_loops_at_different_times():
    out = tensor("O", (6,), "int32")
    n = variable("n", "int32")

    def body(bx):
        def lane(i):
            return [
                alloc(n),
                store(n, 0, 0),
                serial(
                    100,
                    lambda s: [
                        when(s.__eq__(1), Continue()),
                        when(s > i, Break()),
                        store(n, 0, load(n, 0) + 1),
                    ],
                ),
                loop_while(load(n, 0) < i * 3, store(n, 0, load(n, 0) + 5)),
                store(out, i, load(n, 0)),
            ]

        return parallel((6,), lane)

    def expected(i):
        n = 0
        for s in range(100):
            if s == 1:
                continue
            if s > i:
                break
            n += 1
        while n < 3 * i:
            n += 5
        return n

    got = np.full(6, -1, np.int32)
    run(kernel([out], 1, body), got)
    np.testing.assert_array_equal(got, [expected(i) for i in range(6)])


def test_dynamic_shapes_and_strides():
    m, n, s = symbol("m"), symbol("n"), symbol("s")
    a = tensor("A", (m, n), strides=(s, 1))
    b = tensor("B", (n, m))

    def body(bx, by):
        return parallel((m, n), lambda i, j: store(b, (j, i), load(a, i, j) + cast(m, "float32")))

    base = ints(4, 9)
    out = np.full((6, 4), np.nan, np.float32)
    run(kernel([a, b], (1, 1), body), base[:, :6], out)
    np.testing.assert_array_equal(out, base[:, :6].T + 4)


def test_views_share_bits():
    a, b = tensor("A", (4, 6), "float32"), tensor("B", (8, 12), "uint8")
    tile = shared("t", (4, 6))
    as_bytes, flat = view(tile, (8, 12), "uint8"), view(tile, (24,))

    def body(bx):
        return [
            alloc(tile),
            copy(a, tile),
            serial(24, lambda i: store(flat, i, load(flat, i) + 1.0)),
            copy(as_bytes, b),
        ]

    x, out = ints(4, 6), np.zeros((8, 12), np.uint8)
    run(kernel([a, b], 1, body), x, out)
    np.testing.assert_array_equal(out, (x + 1).view(np.uint8).reshape(8, 12))


def test_packed_four_bit_tensors():
    a, b = tensor("A", (3, 4), "int4"), tensor("B", (3, 4), "int8")
    c = tensor("C", (3, 4), "int4")

    def body(bx):
        return [
            parallel((3, 4), lambda i, j: store(b, (i, j), load(a, i, j))),
            parallel((3, 4), lambda i, j: store(c, (i, j), load(a, i, j) + value(3, "int4"))),
        ]

    x = rng.integers(-8, 8, (3, 4))
    packed = ((x[:, 0::2] & 15) | ((x[:, 1::2] & 15) << 4)).astype(np.uint8)
    out, again = np.zeros((3, 4), np.int8), np.zeros((3, 2), np.uint8)
    run(kernel([a, b, c], 1, body), packed, out, again)
    np.testing.assert_array_equal(out, x)
    y = (x + 3 + 8) % 16 - 8
    np.testing.assert_array_equal(again, ((y[:, 0::2] & 15) | ((y[:, 1::2] & 15) << 4)))
    logical = x.astype(ml_dtypes.int4)
    written = np.zeros((3, 4), ml_dtypes.int4)
    run(kernel([a, b, c], 1, body), logical, out, written)
    np.testing.assert_array_equal(written.astype(int), y)


def test_vectors():
    a, b = tensor("A", (8,), "int32"), tensor("B", (8,), "int32")

    def body(bx):
        four = load(a, Ramp(value(0), value(1), 4)), load(a, Ramp(value(7), value(-1), 4))
        mixed = Shuffle(four, (0, 7, 1, 6))
        return [
            store(b, Ramp(value(0), value(2), 4), mixed * 2),
            store(b, 1, Shuffle(four, (5,))),
            store(b, 3, Bitcast(dtype_of("int32"), load(a, Ramp(value(3), value(0), 1)))),
            store(b, 5, 0),
            store(b, 7, 0),
        ]

    x, out = np.arange(8, dtype=np.int32) + 10, np.full(8, -1, np.int32)
    run(kernel([a, b], 1, body), x, out)
    np.testing.assert_array_equal(out, [20, 16, 28, 13, 22, 0, 30, 0])


def test_several_launches_lets_and_checks():
    a = tensor("A", (4,), "int32")
    n = symbol("n")
    first = launch(4, lambda bx: let("v", bx * 2, lambda v: store(a, bx, v + n)))
    second = launch(4, lambda bx: store(a, bx, load(a, bx) * 10))
    checked = Check(n > 0, "n is positive", CheckKind.ASSUME)
    k = Kernel("two", (a, n), seq(checked, first, second))
    out = np.zeros(4, np.int32)
    interpret(k, [out, 1])
    np.testing.assert_array_equal(out, [10, 30, 50, 70])
    with pytest.raises(AssumptionError, match="n is positive"):
        interpret(k, [out, 0])


def test_device_assert_empty_grid_division():
    a = tensor("A", (4,), "int32")
    n = symbol("n")

    def stop(bx):
        return Check(load(a, bx) > 0, "positive only", CheckKind.ASSERT)

    with pytest.raises(DeviceAssertError, match="positive only"):
        run(kernel([a], 4, stop), np.array([1, 1, 0, 1], np.int32))
    with pytest.raises(EmptyGridError, match="dimension x of the grid is 0"):
        run(kernel([a, n], n, lambda bx: store(a, 0, 0)), np.zeros(4, np.int32), 0)

    def divide(bx):
        return store(a, bx, 10 // load(a, bx))

    with pytest.raises(UndefinedOperation, match="divides an integer by zero"):
        run(kernel([a], 4, divide), np.array([1, 1, 0, 1], np.int32))

    def shift(bx):
        return store(a, bx, value(1) << load(a, bx))

    with pytest.raises(UndefinedOperation, match="shifts int32 by 32"):
        run(kernel([a], 4, shift), np.array([1, 31, 0, 32], np.int32))


def test_lazy_sides_are_not_evaluated():
    a, b = tensor("A", (4,), "int32"), tensor("B", (4,), "int32")
    tile = local("t", (2,), "int32")
    from tile_core.ir.build_expr import binary, select
    from tile_core.ir.expr import BinaryOp

    def body(bx):
        def lane(i):
            guarded = select(i < 2, load(tile, i), load(a, i))
            both = binary(BinaryOp.AND, i < 2, load(tile, i) > 0)
            return store(b, i, guarded + cast(both, "int32"))

        return [alloc(tile), store(tile, 0, 5), store(tile, 1, -5), parallel((4,), lane)]

    out = np.zeros(4, np.int32)
    run(kernel([a, b], 1, body), np.arange(4, dtype=np.int32), out)
    np.testing.assert_array_equal(out, [6, -5, 2, 3])


def test_element_regions_take_extents_from_the_other_side():
    a, b = tensor("A", (4, 6), "int32"), tensor("B", (4, 6), "int32")
    tile = shared("t", (2, 3), "int32")

    def at(buf, *i):
        return Region(buf, i, (1,) * len(i), is_element=True)

    def body(bx):
        return [alloc(tile), copy(at(a, 1, 2), tile), copy(tile, at(b, 3, 4))]

    x, out = np.arange(24, dtype=np.int32).reshape(4, 6), np.zeros((4, 6), np.int32)
    run(kernel([a, b], 1, body), x, out)
    want = np.zeros((4, 6), np.int32)
    want[3, 4:] = x[1, 2:4]
    np.testing.assert_array_equal(out, want)


def test_a_copy_of_one_element_outside():
    """Extents of one leave no axis to iterate over."""
    a, b, tile = tensor("A", (1, 1)), tensor("B", (1, 1)), shared("t", (1, 1))
    body = lambda bx: [alloc(tile), copy(region(a, (0, 1), (1, 1)), tile), copy(tile, b)]  # noqa: E731
    out = np.full((1, 1), np.nan, np.float32)
    run(kernel([a, b], 1, body), np.ones((1, 1), np.float32), out)
    assert out[0, 0] == 0
