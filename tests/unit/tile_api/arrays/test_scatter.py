"""Gradients of gathers: each element collects what was read from it, in the order of indices."""

from __future__ import annotations

import numpy as np
import pytest

from support.gradients import equations_of, gradients
from tile_api.arrays.deriving import derive
from tile_api.arrays.function import Function
from tile_api.arrays.gradients.residuals import passes
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.planning.traffic import machine_of

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
RNG = np.random.default_rng(0)
SCATTER = "# scatter: of "


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def tokens(size, *shape):
    return RNG.integers(0, size, shape)


GATHERS = {
    "rows": (lambda x, i: np.take(x, i, 0) * 2, floats(37, 12), tokens(37, 5, 8)),
    "columns": (lambda x, i: np.take(x, i, 1), floats(7, 33), tokens(33, 40)),
    "elements": (lambda x, i: x[i], floats(500), tokens(500, 40)),
    "pairs": (lambda x, i, j: x[i, j] * 2, floats(15, 13), tokens(15, 5, 8), tokens(13, 8)),
    "along": (lambda x, i: np.take_along_axis(x, i, 1), floats(5, 30), tokens(30, 5, 40)),
    "of batches": (
        lambda x, i: np.take_along_axis(x, i[:, :, None], 1), floats(3, 30, 9), tokens(30, 3, 40),
    ),
    "from the end": (lambda x, i: x[:, -1 - i], floats(5, 30), tokens(30, 40)),
    "what is there": (
        lambda x, i: np.where((i >= 0)[:, None], x[np.maximum(i, 0)], 0), floats(37, 12),
        tokens(37, 40) - 5,
    ),
    "twice": (lambda x, i: x[i] @ x.T, floats(37, 12), tokens(37, 20)),
    "wide": (lambda x, i: x[i], floats(3, 1100), tokens(3, 20)),
}  # fmt: skip
ON_GPUS = {
    "interpret": "pairs", "cuda:sm_80@sim": "of batches", "cuda:sm_90a@sim": "rows",
    "hip:gfx942@sim": "elements",
}  # fmt: skip


def backward(name: str):
    function, *arrays = GATHERS[name]
    equations = equations_of(function, *arrays)
    return derive(passes(equations, [equations.parameters[0].name]).backward, Blocks())


def check(name: str, target: str) -> None:
    function, x, *indices = GATHERS[name]
    result, pull = Function(function, target=target).vjp(x, *indices)
    weight = floats(*result.shape)
    wide = (y.astype("float64") for y in (weight, x))
    (wanted,) = gradients(function, [next(wide)], next(wide), *indices)
    found = pull(weight)
    assert np.abs(found - wanted).max() <= 3e-6 * (1 + np.abs(wanted).max())
    np.testing.assert_array_equal(pull(weight), found)


@pytest.mark.parametrize("name", GATHERS)
def test_one_kernel_adds_where_indices_say(name: str) -> None:
    source = backward(name).source
    assert source.count(SCATTER) == 1
    assert source.count("@tile.jit") == (3 if name == "twice" else 1)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("name", ["along", "columns", "what is there", "twice", "wide"])
def test_on_the_cpu(name: str) -> None:
    check(name, "cpu")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ON_GPUS)
def test_elsewhere(target: str) -> None:
    check(ON_GPUS[target], target)


def test_short_floats_are_added_in_32_bits() -> None:
    i = np.zeros(300, "int64")
    x = np.ones((4, 8), "float16")
    result, pull = Function(lambda x, i: x[i], target="cpu").vjp(x, i)
    weight = np.full(result.shape, 10 + 2**-7, "float16")  # 3002.34, of which float16 has half
    found = pull(weight)
    assert found.dtype == np.float16
    np.testing.assert_array_equal(found[0], np.float16(300 * (10 + 2**-7)))
    assert not found[1:].any()


def test_few_indices_are_compared_with_all_elements() -> None:
    equations = equations_of(lambda x, i: x[i], floats(5, 4), tokens(5, 3))
    assert SCATTER not in derive(passes(equations, ["x"]).backward, Blocks()).source


@pytest.mark.parametrize(("rows", "blocks"), [(1, 64), (4, 16), (70, 1)])
def test_a_row_is_cut_only_where_blocks_are_too_few(rows, blocks):
    """Each block goes through all indices of its row."""
    equations = equations_of(lambda x: np.sort(x, -1), floats(rows, 5000))
    made = derive(equations, Blocks(), "cuda:sm_80")  # where sorted runs are merged
    (merged,) = (kernel.text for kernel in made.kernels if SCATTER in kernel.text)
    assert f"BM={-(-5000 // blocks)}," in merged


def test_no_more_blocks_than_a_cpu_has_cores():
    """More would go through all indices again."""

    def counted(i):
        y = np.zeros(5000, "float32")
        np.add.at(y, i, 1.0)
        return y

    i = tokens(5000, 4000)
    function, machine = Function(counted, target="cpu"), machine_of("cpu")
    assert machine is not None
    assert f"BM={-(-5000 // machine.peaks.units)}," in function.source(i)
    assert "BM=79," in Function(counted, target="cuda:sm_80").source(i)
    np.testing.assert_array_equal(function(i), counted(i))


def test_an_index_that_takes_long_is_computed_once():
    def counted(x):
        at = x
        for k in range(12):
            at = (at * at + k) % 97
        y = np.zeros(97, "int64")
        np.add.at(y, at, 1)
        return y

    x = tokens(97, 300)
    function = Function(counted, target="cpu")
    assert len(derive(function.equations(x), target="cpu").kernels) == 2
    np.testing.assert_array_equal(function(x), counted(x))


def test_places_found_among_running_totals():
    """A sum over two dimensions is one, though its index is found among totals: as for experts."""

    def collected(y, sizes):
        ends = np.cumsum(sizes)
        block = np.sum(np.arange(6)[:, None] >= ends, axis=-1)
        at = (ends[block] + block)[:, None] + np.arange(5)
        is_of = at[:, :, None, None] == np.arange(40)[:, None]
        return np.sum(np.where(is_of, y[:, :, None, :], 0), axis=(0, 1))

    y, sizes = floats(6, 5, 8), np.array([2, 1, 0, 3, 9])
    function = Function(collected)
    assert f"{SCATTER}30 indices" in function.source(y, sizes)
    np.testing.assert_allclose(function(y, sizes), collected(y, sizes), rtol=1e-6)
