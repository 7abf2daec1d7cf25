"""Rows that a CPU sorts by the digits of their elements, against NumPy's stable sort."""

from __future__ import annotations

import runpy

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import filled
from tile_api.arrays.capturing.sorting import FEWEST_IN_NETWORK
from tile_api.arrays.deriving import derive
from tile_api.arrays.function import Function
from tile_api.arrays.gradients.residuals import passes

FLOATS = ["float16", "bfloat16", "float32", "float64"]
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]
SIZES = [0, 1, 2, 7, 13, 49, 127, 128, 131, 1000, 4096, 4097, 50_000]


def both(x):
    return np.sort(x), np.argsort(x, kind="stable")


def rows_of(size, dtype):
    """Return rows: any bits, ascending, descending, ties, extremes, all equal."""
    kind = np.dtype(dtype)
    random = np.random.default_rng(size)
    if dtype == "bool":
        x = random.integers(0, 2, (7, size)).astype(bool)
    else:
        x = random.integers(0, 256, (7, size * kind.itemsize), "uint8").view(kind)
    wide = x.astype("float32") if dtype == "bfloat16" else x
    x[1] = np.sort(wide[1]).astype(kind)
    x[2] = np.sort(wide[2])[::-1].astype(kind)
    x[3] = filled(size, "int8", 3, 0, 5).astype(kind)
    x[4] = filled(size, "int8", 4, -3, 4).astype(kind)
    if dtype in INTEGERS:
        extremes = np.array([np.iinfo(kind).max, np.iinfo(kind).min, 0, np.iinfo(kind).max - 1])
    else:
        extremes = np.array([-0.0, 0.0, np.nan, np.inf, -np.inf, 1, -1, np.nan, -0.0])
    with np.errstate(all="ignore"):
        x[5] = np.resize(extremes.astype(kind), size)
    x[6] = x[3, :1]
    return x


def require_sorted(target, x):
    """Compare bits: zeros of either sign are equal, and stay in their order.

    Ranks of short rows tell where elements go, and sums which they are: no sum is -0.0.
    """
    wide = x.astype("float32") if x.dtype == ml_dtypes.bfloat16 else x
    order = np.argsort(wide, axis=-1, kind="stable")
    values, positions = Function(both, target=target)(x)
    np.testing.assert_array_equal(positions, order)
    right = np.take_along_axis(x, order, -1)
    assert values.dtype == x.dtype
    is_number = np.take_along_axis(wide, order, -1) == np.take_along_axis(wide, order, -1)
    bits = f"u{x.dtype.itemsize}" if x.shape[-1] >= FEWEST_IN_NETWORK else x.dtype
    np.testing.assert_array_equal(values.view(bits)[is_number], right.view(bits)[is_number])
    assert not is_number.all() or not (values != values).any()


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("dtype", ["bool", *INTEGERS, *FLOATS])
@pytest.mark.parametrize("size", SIZES)
def test_rows_of_a_cpu(size, dtype):
    require_sorted("cpu", rows_of(size, dtype))


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64"])
def test_the_interpreter_sorts_by_digits(dtype):
    require_sorted("interpret", rows_of(131, dtype))


@pytest.mark.parametrize("dtype", ["int16", "float32"])
def test_a_gpu_sorts_by_a_network(dtype):
    require_sorted("cuda:sm_80@sim", rows_of(131, dtype)[3:])


def test_the_way_is_chosen_by_the_target():
    x = np.zeros((9, 1000), "float32")

    def told(target):
        return str(Function(both, target=target).explain(x))

    assert "sorted: 1000 elements by 3 digits of 11 bits" in told("cpu")
    assert "sorted:" not in told("cuda:sm_80")
    assert "carried: 1 value, 55 steps" in told("cuda:sm_80")


def order(x):
    return np.argsort(x, kind="stable")


M = filled((5, 150), "float32", 0)
READERS = {
    "in one kernel": lambda x: (np.sort(x) * 2 + np.arange(150), order(x)[:, ::-1]),
    "another axis": lambda x: (np.sort(x.T, axis=0), np.sort(x.reshape(5, 3, 50, 1), axis=1)),
    "sums over rows": lambda x: (np.sort(x).sum(0), np.sort(x).sum(1), np.sort(x).max()),
    "running sums": lambda x: np.cumsum(np.sort(x), axis=1),
    "sorted again": lambda x: np.sort(np.sort(x).reshape(150, 5), axis=0),
    "ranks": lambda x: order(order(x)),
    "two sorts": lambda x: np.sort(x) - np.sort(-x)[::-1],
    "of what is computed": lambda x: np.sort(x - x.sum(0) + x.max(1, keepdims=True)),
    "all elements": lambda x: np.sort(x, axis=None),
    "other elements": lambda x: np.take_along_axis(-x, order(x), 1),
    "where it came from": lambda x: np.where(order(x) > 9, np.sort(x), 0)[1:4],
    "a row": lambda x: np.sort(x)[2],
    "an element": lambda x: (np.sort(x)[2, 70], np.median(x, axis=1), np.sort(x)[:, 70]),
    "searched": lambda x: np.searchsorted(np.sort(x[0]), x),
    "products": lambda x: np.sort(x) @ np.sort(x).T,
    "quantiles": lambda x: np.quantile(x.astype("float64"), [0.25, 0.5], axis=1),
    "the same row": lambda x: np.sort(np.broadcast_to(x[:1], x.shape)),
    "in steps": lambda x: tile.scan(lambda c, row: (c + row, np.sort(row)), np.zeros_like(x[0]), x),
}


@pytest.mark.parametrize("name", READERS)
def test_what_reads_sorted_rows(name):
    function = READERS[name]
    found, right = Function(function, target="cpu")(M), function(M)
    if not isinstance(right, tuple):
        found, right = (found,), (right,)
    for got, wanted in zip(found, right, strict=True):
        assert np.shape(got) == np.shape(wanted)
        np.testing.assert_array_equal(got, wanted)


def test_what_reads_a_row_is_in_its_kernel():
    explained = str(Function(READERS["in one kernel"], target="cpu").explain(M))
    assert explained.count("expected:") == 1


def test_gradients_go_where_elements_came_from():
    result, pull = Function(lambda x: np.sort(x) * 2, target="cpu").vjp(M)
    weight = filled(result.shape, "float32", 6)
    wanted = np.empty_like(M)
    np.put_along_axis(wanted, np.argsort(M, kind="stable"), 2 * weight, -1)
    np.testing.assert_array_equal(pull(weight), wanted)


def test_a_backward_pass_reads_what_was_sorted():
    made = passes(Function(lambda x: np.sort(x) * 2).equations(M), ["x"])
    assert made.takes == ("d_out", "saved0")
    source = derive(made.backward, target="cpu").source
    assert "# sorted:" not in source
    assert "# scatter: of 150 indices" in source


def test_the_printed_program_sorts(tmp_path):
    file = tmp_path / "printed.py"
    file.write_text(Function(both, target="cpu").source(M))
    launch = runpy.run_path(str(file))["launch"]
    for got, right in zip(launch(M), both(M), strict=True):
        np.testing.assert_array_equal(got, right)
