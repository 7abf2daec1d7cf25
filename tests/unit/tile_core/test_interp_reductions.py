"""Reductions, scans and reducers in the interpreter."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.interp import InterpretOptions, interpret
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.build_expr import cast
from tile_core.ops.reduce import ReduceKind
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.ops.scan import Scan
from tile_core.testing.build_ir import (
    alloc,
    copy,
    fill,
    kernel,
    load,
    parallel,
    reduce,
    serial,
    store,
    tensor,
    value,
)

rng = np.random.default_rng(7)


def ints(*shape, low=-4, high=5, dtype=np.float32):
    return rng.integers(low, high, shape).astype(dtype)


def run(k, *args, **options):
    interpret(k, args, options=InterpretOptions(**options))


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("sum", lambda x: x.sum(1)),
        ("max", lambda x: x.max(1)),
        ("min", lambda x: x.min(1)),
        ("abssum", lambda x: abs(x).sum(1)),
        ("absmax", lambda x: abs(x).max(1)),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "int32", "float16"])
def test_reduce(kind, expected, dtype):
    a, b = tensor("A", (5, 7), dtype), tensor("B", (5,), dtype)
    x = ints(5, 7, dtype=dtype)
    old = ints(5, dtype=dtype)
    out = old.copy()
    run(kernel([a, b], 1, lambda bx: reduce(kind, a, b, 1)), x, out)
    np.testing.assert_array_equal(out, expected(x))
    again = old.copy()
    run(kernel([a, b], 1, lambda bx: reduce(kind, a, b, 1, clear=False)), x, again)
    meet = {"max": np.maximum, "absmax": np.maximum, "min": np.minimum}.get(kind, np.add)
    np.testing.assert_array_equal(again, meet(expected(x), old))


def test_reduce_bits_and_kept_dimension():
    a = tensor("A", (3, 4), "uint8")
    outs = [tensor(f"B{k}", (1, 4), "uint8") for k in range(3)]
    kinds = ["bitand", "bitor", "bitxor"]
    x = ints(3, 4, low=0, high=256, dtype=np.uint8)
    results = [np.empty((1, 4), np.uint8) for _ in kinds]

    def body(bx):
        return [reduce(k, a, o, 0) for k, o in zip(kinds, outs, strict=False)]

    run(kernel([a, *outs], 1, body), x, *results)
    for r, f in zip(results, (np.bitwise_and, np.bitwise_or, np.bitwise_xor), strict=False):
        np.testing.assert_array_equal(r[0], f.reduce(x, axis=0))


def test_reduce_of_nan_and_of_nothing():
    a, b, c = (
        tensor("A", (2, 2), "float16"),
        tensor("B", (2,), "float16"),
        tensor("C", (2,), "float16"),
    )
    x = np.array([[np.nan, 1], [np.nan, np.nan]], np.float16)
    ignoring, propagating = np.zeros(2, np.float16), np.zeros(2, np.float16)

    def body(bx):
        return [reduce("max", a, b, 1), reduce("max", a, c, 1, nan_propagate=True)]

    run(kernel([a, b, c], 1, body), x, ignoring, propagating)
    np.testing.assert_array_equal(ignoring, np.array([1, -np.inf], np.float16))
    assert np.isnan(propagating).all()
    empty, total = tensor("E", (3, 0)), tensor("T", (3,))
    out = np.full(3, np.nan, np.float32)
    run(
        kernel([empty, total], 1, lambda bx: reduce("sum", empty, total, 1)),
        np.empty((3, 0), np.float32),
        out,
    )
    np.testing.assert_array_equal(out, np.zeros(3))


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("kind", "f"), [("sum", np.cumsum), ("max", np.maximum.accumulate)])
def test_scan(kind, f, reverse):
    a, b = tensor("A", (4, 5), "int32"), tensor("B", (4, 5), "int32")
    x, out = ints(4, 5, dtype=np.int32), np.zeros((4, 5), np.int32)

    def op(bx):
        return Scan(ReduceKind(kind), whole(a), whole(b), 1, reverse)

    run(kernel([a, b], 1, op), x, out)
    want = np.flip(f(np.flip(x, 1), axis=1), 1) if reverse else f(x, axis=1)
    np.testing.assert_array_equal(out, want)


def test_reducers_old_and_new():
    a, b, c = tensor("A", (6, 4), "int32"), tensor("B", (6,), "int32"), tensor("C", (6,), "int32")
    acc = Buffer("acc", (6,), dtype_of("int32"), Scope.REDUCER)
    old = Buffer("old", (6,), dtype_of("int32"), Scope.REDUCER)

    def body(bx):
        return [
            alloc(acc, old),
            ReducerInit(acc, ReduceKind.SUM, value(100)),
            parallel((6, 4), lambda i, j: ReducerUpdate(acc, ReduceKind.SUM, (i,), load(a, i, j))),
            ReducerFinalize(acc, ReduceKind.SUM, whole(b)),
            fill(old, -1000),
            parallel(
                (6, 4), lambda i, j: store(old, i, cast(_max(load(old, i), load(a, i, j)), "int32"))
            ),
            ReducerFinalize(old, ReduceKind.MAX, whole(old)),
            copy(old, c),
        ]

    x = ints(6, 4, low=-50, high=50, dtype=np.int32)
    total, largest = np.empty(6, np.int32), np.empty(6, np.int32)
    run(kernel([a, b, c], 1, body), x, total, largest)
    np.testing.assert_array_equal(total, 100 + x.sum(1))
    np.testing.assert_array_equal(largest, x.max(1))


def _max(a, b):
    from tile_core.ir.build_expr import maximum

    return maximum(a, b)


def test_stores_of_other_elements_are_no_updates():
    a, b = tensor("A", (6,), "int32"), tensor("B", (6,), "int32")
    acc = Buffer("acc", (6,), dtype_of("int32"), Scope.REDUCER)

    def body(bx):
        return [
            alloc(acc),
            ReducerInit(acc, ReduceKind.SUM, value(100)),
            serial(6, lambda i: store(acc, i, load(a, i))),
            serial(1, lambda i: serial(6, lambda j: store(acc, j, load(acc, i) + 1))),
            ReducerFinalize(acc, ReduceKind.SUM, whole(b)),
        ]

    x, found = np.arange(6, dtype=np.int32) * 10, np.empty(6, np.int32)
    run(kernel([a, b], 1, body), x, found)
    assert found.tolist() == [1, 2, 2, 2, 2, 2]
