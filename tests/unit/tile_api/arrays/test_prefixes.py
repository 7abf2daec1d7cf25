"""Running sums and maxima along rows: scans of tiles, resident and in blocks."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
RNG = np.random.default_rng(0)


def sums(x):
    return np.cumsum(x, axis=-1)


def decays(x):
    total = np.cumsum(np.minimum(x, 0), axis=-1)
    return np.exp(total), total[..., -1]


def largest(x):
    return np.maximum.accumulate(x * x[:, :1], axis=1) + 1


def turned(x):
    total = np.cumsum(x, axis=1)
    return total * total[:, ::-1]


def whole(x):
    return np.cumsum((8 * x).astype("int16"), axis=-1)


def check(function, x, target, **blocks):
    made = Function(function, target=target, blocks=Blocks(**blocks))
    found, wanted = made(x), function(x.astype("float64"))
    found, wanted = (r if isinstance(r, tuple) else (r,) for r in (found, wanted))
    for got, exact in zip(found, wanted, strict=True):
        assert got.shape == exact.shape
        error = np.abs(got - exact).max(initial=0) / (1 + np.abs(exact).max(initial=0))
        assert error <= (1e-6 if got.dtype == np.float32 else 0)
    return str(made.explain(x))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("resident", [16_384, 0], ids=["resident", "streamed"])
@pytest.mark.parametrize(
    ("function", "shape", "kernels"),
    [(sums, (37, 211), 1), (sums, (7,), 1), (sums, (1, 1), 1), (sums, (2, 3, 70), 1),
     (sums, (2, 1, 3, 5, 20), 1), (decays, (13, 131), 1), (largest, (5, 100), 1),
     (turned, (5, 100), 2), (whole, (5, 77), 1)],
)  # fmt: skip
def test_rows(function, shape, kernels, resident):
    x = RNG.standard_normal(shape).astype("float32")
    told = check(function, x, "cpu", resident=resident, stream=16)
    assert told.count("running totals of tiles") == 1 or shape == (1, 1)
    assert told.count(" -> ") == kernels


def test_no_elements():
    assert Function(sums, target="cpu")(np.zeros((3, 0), "float32")).shape == (3, 0)
    assert Function(sums, target="cpu")(np.zeros((0, 3), "float32")).shape == (0, 3)


def test_a_sum_that_leaves_out_its_own_element():
    def exclusive(x):
        return tile.scan(lambda h, x: (h + x, h), 0.0, x)[1]

    x = np.arange(10, dtype="float32")
    np.testing.assert_array_equal(Function(exclusive, target="cpu")(x), np.cumsum(x) - x)


@pytest.mark.parametrize("target", ["cuda:sm_90a@sim", "hip:gfx942@sim"])
def test_rows_on_gpus(target):
    x = RNG.standard_normal((5, 70)).astype("float32")
    check(decays, x, target, resident=0, stream=32)
    check(largest, x, target)


def test_blocks_are_told():
    x = np.zeros((5, 100), "float32")
    told = str(Function(sums, blocks=Blocks(resident=0, stream=16)).explain(x))
    assert "carried: 1 value, 100 steps in blocks of 100: running totals of tiles" in told
    assert "T.reduce_sum" not in Function(sums).source(x)
    told = str(Function(sums).explain(np.zeros(100_000, "float32")))
    assert "carried: 1 value, 100000 steps in blocks of 4096: running totals of tiles" in told


def test_infinities_stay_where_they_are():
    x = np.float32([[1, np.inf, 2, 3], [1, 2, np.nan, 3], [1, np.inf, -np.inf, 0]])
    for resident in (16_384, 0):
        made = Function(sums, target="cpu", blocks=Blocks(resident=resident, stream=2))
        with np.errstate(invalid="ignore"):
            wanted = np.cumsum(x, 1)
        np.testing.assert_array_equal(made(x), wanted)
