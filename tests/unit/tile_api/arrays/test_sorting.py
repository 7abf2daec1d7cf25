"""Sorted rows against NumPy: by a network, in runs, by ranks, the first and last few one by one."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import assert_agrees, filled, outputs
from tile_api.arrays.capturing import numpy_names, sorting
from tile_api.arrays.function import Function
from tile_api.arrays.planning import sorts

M = filled((5, 41), "float32", 0, -4, 5)  # ties are common
CASES = {
    "sort": [
        (lambda x: np.sort(x), M), (lambda x: np.sort(x, axis=0, kind="stable"), M),
        (lambda x: np.sort(x, axis=None)[7:9], M[:2, :20]), (lambda x: np.sort(x)[..., -3:], M),
        (lambda x: np.sort(x)[:, :4], M), (lambda x: np.sort(x)[:, ::-1][:, :3], M),
        (lambda x: np.sort(x)[:, 2], M), (lambda x: np.sort(x)[:, -1], M),
        (lambda x: np.sort(x, stable=True), M[:, :1]), (lambda x: np.sort(x), M[:, :7] > 0),
        (lambda x: np.sort(x)[:, 20], M.astype("int8")), (lambda x: np.sort(x)[:, :2], -M[0] < M),
        (lambda x: np.sort(x.astype("uint8"))[:, -2:], M), (lambda x: np.sort(x - 0.5), M),
        (lambda x: np.sort(x)[:, 3:3], M), (lambda x: np.sort(x)[:, 3:], M[:, :2]),
        (lambda x: np.sort(x)[:, 40:3], M), (lambda x: np.sort(x)[:1, -3:][:, 3:3].squeeze(), M),
    ],
    "argsort": [
        (lambda x: np.argsort(x, kind="stable"), M),
        (lambda x: x.argsort(0, kind="stable"), M),
        (lambda x: np.argsort(-x, stable=True)[..., :3], M),
        (lambda x: np.argsort(x, kind="stable")[..., -2:], M),
        (lambda x: np.take_along_axis(x, np.argsort(x, kind="stable"), -1), M[:, :9]),
        (lambda x: np.argsort(x, kind="stable")[:, 20], M.astype("int8")),
    ],
    "partition": [
        (lambda x: np.partition(x, 5)[:, 5], M), (lambda x: np.partition(x, (1, 20), 1)[:, 20], M),
        (lambda x: np.sort(np.partition(x, -3)[:, -3:]), M), (lambda x: np.partition(x[:0], 7), M),
    ],
    "argpartition": [
        (lambda x: np.take_along_axis(x, np.argpartition(x, 5, axis=-1), -1)[:, 5], M),
        (lambda x: np.take_along_axis(x, x.argpartition(-4), -1)[:, -4], M),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    for function, *arrays in CASES[name]:
        assert_agrees(function, *arrays, exact=True)


def test_every_function_is_met():
    names = {n for n, f in numpy_names.FUNCTIONS.items() if f.__module__ == sorting.__name__}
    assert names == set(CASES)


def test_what_is_no_number_comes_last():
    x = np.array([[3, np.nan, -np.inf, 4, 1] * 8, [np.nan] * 40], "float32")

    def ends(x):
        return np.sort(x), np.argsort(x, kind="stable"), np.sort(x)[:, -9:], np.sort(x[:1])[:, :9]

    made = Function(ends, target="cpu")(x)
    for got, right in zip(made, ends(x), strict=True):
        np.testing.assert_array_equal(got, right)


def test_what_is_no_number_comes_after_infinity():
    x = np.array([[np.nan, np.inf], [np.nan, np.nan], [1, -np.inf]], "float32")

    def both(x):
        last = np.sort(x)[:, -1:], np.argsort(x, kind="stable")[:, -1:]
        return np.sort(x), np.argsort(x, kind="stable"), *last

    for got, right in zip(Function(both, target="interpret")(x), both(x), strict=True):
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("kth", [41, -42])
def test_an_element_beyond_the_row_is_refused(kth):
    with pytest.raises(ValueError, match=f"TL1204.*np.partition: element {kth} of 41"):
        outputs(lambda x: np.partition(x, kth), M)


def test_positions_are_added_in_64_bits():
    def positions(x):
        n = np.arange(x.shape[0])
        return n.sum(), x.sum() * np.arange(3)

    x = np.full(100_000, 30_000, "int32")
    for got, right in zip(Function(positions, target="cpu")(x), positions(x), strict=True):
        np.testing.assert_array_equal(got, right)


@pytest.mark.parametrize("size", [17, 36, 64])
def test_many_of_a_row_are_found_by_ranks(size):
    x = filled((5, size), "float32", 3)

    def sweeps(function):
        return str(Function(function).explain(x)).count("another sweep")

    # the last element, which tells whether one is no number, is still an extremum
    for f in (lambda x: np.median(x, axis=1), lambda x: np.sort(x)[:, : size // 2 + 1]):
        assert sweeps(f) < 3
        assert_agrees(f, x)
    assert sweeps(lambda x: np.sort(x)[:, :4]) > 3


KINDS = ["float32", "float16", "float64", "int8", "bool", "uint32", "int64", "uint64"]


def hostile(shape, dtype):
    """Return numbers with ties, and the extremes of their type."""
    x = filled(shape, dtype, 4, 0, 2 if dtype == "bool" else 50)
    if dtype.startswith("f"):
        x.flat[3:8] = np.nan, -np.inf, np.inf, -0.0, np.nan
    elif dtype != "bool":
        x.flat[3:5] = np.iinfo(dtype).min, np.iinfo(dtype).max
    return x


def both(x):
    return np.sort(x), np.argsort(x, kind="stable")


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(3, 50), (4, 64), (2, 2, 65), (130,), (2, 300)])
def test_the_network_sorts(shape, dtype):
    x = hostile(shape, dtype)
    for target in ("interpret", "cpu"):
        made = Function(both, target=target)(x)
        for got, right in zip(made, both(x), strict=True):
            np.testing.assert_array_equal(got, right)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_network_sorts_on_gpus(dtype, target):
    x = hostile((2, 50), dtype)
    for got, right in zip(Function(both, target=target)(x), both(x), strict=True):
        np.testing.assert_array_equal(got, right)


@pytest.fixture
def short_runs(monkeypatch):
    """Let blocks hold no more than 32 elements, or 16 long ones, and sort nothing by digits."""
    monkeypatch.setattr(sorts, "MOST_BYTES", 256)
    monkeypatch.setattr(sorts, "FEWEST_BY_DIGITS", 1 << 40)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("shape", [(2, 2, 65), (130,)])
@pytest.mark.usefixtures("short_runs")
def test_sorted_runs_are_merged(shape, dtype):
    x = hostile(shape, dtype)
    for target in ("interpret", "cpu"):
        made = Function(both, target=target)(x)
        for got, right in zip(made, both(x), strict=True):
            np.testing.assert_array_equal(got, right)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
@pytest.mark.usefixtures("short_runs")
def test_sorted_runs_are_merged_on_gpus(target):
    x = hostile((2, 70), "float32")
    for got, right in zip(Function(both, target=target)(x), both(x), strict=True):
        np.testing.assert_array_equal(got, right)


def test_long_rows_are_sorted_as_runs_and_searched():
    explained = str(Function(both, target="cuda:sm_80").explain(hostile((1, 9001), "float32")))
    assert "scatter: of 12288 indices" in explained


@pytest.mark.usefixtures("short_runs")
def test_gradients_of_sorted_runs():
    x = np.random.default_rng(0).permutation(130).reshape(2, 65).astype("float64")
    weights = np.arange(65.0)
    found = Function(lambda x: (np.sort(x) * weights).sum(), target="cpu").grad(x)
    np.testing.assert_array_equal(found, np.argsort(np.argsort(x)))


@pytest.mark.parametrize("target", ["cuda:sm_70", "hip:gfx90a"])
@pytest.mark.parametrize(("size", "dtype"), [(4096, "float32"), (2048, "float64"), (700, "int64")])
def test_rows_of_the_network_fit_a_block(size, dtype, target):
    explained = Function(lambda x: np.sort(x), target=target).explain(np.zeros((9, size), dtype))
    assert "carried" in str(explained)
    Function(lambda x: np.sort(x), target=target).kernels(np.zeros((9, size), dtype))


def test_gradients_go_where_elements_came_from():
    x = filled((3, 50), "float64", 5)
    result, pull = Function(lambda x: np.sort(x), target="interpret").vjp(x)
    weight = filled(result.shape, "float64", 6)
    wanted = np.empty_like(x)
    np.put_along_axis(wanted, np.argsort(x, kind="stable"), weight, -1)
    np.testing.assert_array_equal(pull(weight), wanted)


def test_carried_rows_are_sorted_by_ranks():
    def f(x):
        def step(c, row):
            return (np.sort(c, kind="stable") + row, c[0])

        return tile.scan(step, np.zeros_like(x[0]), x)[0]

    x = filled((3, 60), "float32", 7)
    np.testing.assert_array_equal(Function(f, target="interpret")(x), f(x))


@pytest.mark.usefixtures("short_runs")
def test_parts_of_sorted_rows_that_are_cut_into_runs():
    """Runs are longer than their row: what is beyond its end is not read."""

    @tile.function(target="cpu")
    def part(x):
        return np.sort(x, axis=-1)[:, -50:-49], np.argsort(x, axis=-1)[:, 40:42]

    x = np.random.default_rng(0).permutation(200).astype("float32")[None]
    value, position = part(x)
    assert value.item() == 150
    assert x[0, position[0]].tolist() == [40, 41]
