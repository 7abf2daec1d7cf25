"""Zeros: what integers divided by them are, and which sign those of floats have."""

from __future__ import annotations

import numpy as np
import pytest

from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
TARGETS = ["interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim"]
TAILS = Blocks(rows=8, stream=16, columns=16, resident=0)
"""Blocks that end beside rows, where operands are read as 0."""

QUOTIENTS = {
    "quotients": lambda x, y: (x // y, x % y, np.fmod(x, y), *np.divmod(x, y)),
    "by a number": lambda x, y: (x // 0, x % 0, y // 3, y % -3 if y.dtype.kind == "i" else y),
    "turned": lambda x, y: (x // y).T,
    "sums of rows": lambda x, y: (x // y).sum(axis=-1),
    "sums of columns": lambda x, y: (x % y).sum(axis=0),
    "running sums": lambda x, y: np.cumsum(x // y, axis=-1),
    "running columns": lambda x, y: np.cumsum(x % y, axis=0),
    "greatest": lambda x, y: (x // y) - (x // y).max(axis=-1, keepdims=True),
    "places": lambda x, y: np.argmax(x // y, axis=-1),
    "order": lambda x, y: np.sort(x // y, axis=-1),
    "joined": lambda x, y: np.concatenate([x // y, x], axis=0),
    "products": lambda x, y: (x // y).astype("float32") @ (x % y).astype("float32").T,
}


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
@pytest.mark.parametrize("name", QUOTIENTS)
@pytest.mark.parametrize("has_zeros", [True, False], ids=["zeros", "none"])
def test_integers_are_divided_as_those_of_numpy(target, dtype, name, has_zeros):
    function, random = QUOTIENTS[name], np.random.default_rng(5)
    x = random.integers(0 if dtype == "uint8" else -100, 100, (7, 37)).astype(dtype)
    y = random.integers(0 if has_zeros else 1, 5, (7, 37)).astype(dtype)
    found = Function(function, target=target, blocks=TAILS)(x, y)
    wanted = function(x, y)
    several = isinstance(wanted, tuple)
    for got, right in zip(found, wanted, strict=True) if several else [(found, wanted)]:
        np.testing.assert_array_equal(got, right, strict=True)


def test_divisors_that_are_no_zero_are_not_compared():
    def quotients(x):
        return x // (np.arange(x.shape[-1]) + 1), x % 7, x // x.shape[-1]

    text = Function(quotients).source(np.arange(12, dtype="int32"))
    assert "T.if_then_else" not in text


SIGNS = {
    "less a number": lambda x: 0.0 - x,
    "and a number": lambda x: (x + 0.0, 0.0 + x, x - 0.0, x + -0.0, -0.0 + x, x - -0.0),
    "infinities": lambda x: (1 / (0.0 - x), 1 / (x + 0.0), 1 / -x),
    "products": lambda x: (x * 0.0, x * -0.0, 0.0 * -x),
    "chosen": lambda x: (np.where(x > 0, -0.0, 0.0), np.where(x == 0, x, 1)),
    "angles": lambda x: (np.arctan2(x, -1), np.arctan2(0.0 - x, -1)),
    "signs": lambda x: (np.signbit(-x), np.signbit(0.0 - x), np.copysign(1, x + 0.0)),
    "rounded": lambda x: (np.floor(x), np.ceil(x), np.trunc(x), np.rint(x)),
    "functions": lambda x: (np.sqrt(x), np.cbrt(x), np.sinh(x), np.expm1(x), np.log1p(x)),
}


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("name", SIGNS)
def test_zeros_have_the_signs_of_those_of_numpy(target, dtype, name):
    x = np.array([0.0, -0.0, 0.5, -0.5, 2.0, -2.0, np.inf], dtype)
    function = SIGNS[name]
    found, wanted = Function(function, target=target)(x), function(x)
    several = isinstance(wanted, tuple)
    for got, right in zip(found, wanted, strict=True) if several else [(found, wanted)]:
        np.testing.assert_array_equal(np.isnan(got), np.isnan(right))
        known = ~np.isnan(right)
        np.testing.assert_array_equal(np.signbit(got)[known], np.signbit(right)[known])
        np.testing.assert_allclose(got, right, rtol=1e-6)


NOTHING = {
    "xor": lambda v: v ^ v,
    "difference": lambda v: v - v,
    "product": lambda v: v * 0,
    "mask": lambda v: v & 0,
    "complement": lambda v: v & ~v,
    "remainder": lambda v: v % 1,
    "quotient": lambda v: (v % 4) // 4,
    "greatest": lambda v: np.maximum(v, v) - v,
    "least": lambda v: np.minimum(v, v) - v,
    "clipped": lambda v: np.clip(v, 0, 0),
    "comparison": lambda v: (v < v).astype(v.dtype),
    "shifts": lambda v: v << 7 << 7 << 7 << 7 << 7,
}


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
@pytest.mark.parametrize("name", NOTHING)
def test_what_is_known_to_be_nothing_divides(name: str, dtype: str) -> None:
    def function(x):
        value = np.frexp(x.astype("float32"))[1].astype(dtype)  # kernels name what is long
        nothing = NOTHING[name](value)
        return x // nothing, nothing % nothing

    x = np.array([3, -1, 0], dtype)
    for found, wanted in zip(Function(function, target="cpu")(x), function(x), strict=True):
        np.testing.assert_array_equal(found, wanted, strict=True)
