"""Recurrences in chunks: products of tiles, whatever the decays and the sizes are."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support import recurrent_programs
from tile_api.arrays.function import Function

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
RNG = np.random.default_rng(5)
CHUNKS = "steps in chunks of"


def floats(*shape):
    return RNG.standard_normal(shape).astype("float32")


def decayed(q, k, v, a):
    def step(h, now):
        q, k, v, a = now
        h = a[:, None, None] * h + k[:, :, None] * v[:, None, :]
        return h, np.einsum("hn,hnp->hp", q, h)

    return tile.scan(step, np.zeros((*k.shape[1:], v.shape[-1]), v.dtype), (q, k, v, a))


def check(function, *arguments, target="cpu"):
    """Compare with float64: no further away than four times NumPy with float32."""
    found = Function(function, target=target)(*arguments)
    wanted = function(*(x.astype("float64") for x in arguments))
    plain = function(*arguments)
    as_tuple = [x if isinstance(x, tuple) else (x,) for x in (found, wanted, plain)]
    for got, exact, single in zip(*as_tuple, strict=True):
        assert got.shape == exact.shape
        apart = np.abs(single - exact).max(initial=0)
        allowed = 4 * apart + 4e-7 * (1 + np.abs(exact).max(initial=0))
        assert np.abs(got - exact).max(initial=0) <= allowed


STEPS = np.arange(150)
DECAYS = {
    "none": np.ones(150),
    "resets": np.where(STEPS % 7 == 3, 0, 0.9),
    "underflowing": np.full(150, 1e-30),
    "denormal": np.where(STEPS % 3 == 1, 1e-38, 0.999),
    "signed": np.random.default_rng(1).uniform(-1.1, 1.1, 150),
    "growing": np.full(150, 1.05),
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", DECAYS)
def test_any_decay(name):
    a = np.repeat(DECAYS[name][:, None], 2, 1).astype("float32")
    arguments = floats(150, 2, 16), floats(150, 2, 16), floats(150, 2, 24), a
    assert CHUNKS in str(tile.function(decayed).explain(*arguments))
    check(decayed, *arguments)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("t", "n", "p"), [(12, 1, 1), (17, 7, 5), (64, 13, 131), (131, 16, 8)])
def test_odd_sizes(t, n, p):
    a = RNG.uniform(0, 1, (t, 2)).astype("float32")
    check(decayed, floats(t, 2, n), floats(t, 2, n), floats(t, 2, p), a)


@pytest.mark.parametrize("t", [0, 1, 7, 131])
def test_odd_numbers_of_steps(t):
    check(recurrent_programs.linear_attention, floats(t, 2, 11), floats(t, 2, 11), floats(t, 2, 13))


def gated(q, k, v, a):
    """Gated linear attention: each element that is summed has a decay of its own."""

    def step(carried, now):
        h, total = carried
        q, k, v, a = now
        h = a[..., None] * h + k[..., None] * v[:, None, :]
        total = a * total + k
        return (h, total), np.einsum("hn,hnp->hp", q, h) + (q * total).sum(-1, keepdims=True)

    start = np.zeros((*k.shape[1:], v.shape[-1]), v.dtype), np.zeros(k.shape[1:], k.dtype)
    return tile.scan(step, start, (q, k, v, a))[1]


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("t", "n", "p", "target"),
    [(40, 16, 24, "cpu"), (37, 7, 5, "cpu"), (37, 7, 70, "interpret"), (20, 5, 6, "hip:gfx942@sim"),
     (20, 5, 6, "cuda:sm_90a@sim")],
)  # fmt: skip
def test_decays_of_each_element(t, n, p, target):
    a = RNG.uniform(-1, 1, (t, 2, n)).astype("float32")
    a[::5], a[1::7] = 0, 1e-30
    arguments = floats(t, 2, n), floats(t, 2, n), floats(t, 2, p), a
    assert "steps in chunks of 16" in str(tile.function(gated).explain(*arguments))
    check(gated, *arguments, target=target)


@pytest.mark.parametrize("target", ["cuda:sm_90a@sim", "hip:gfx942@sim"])
def test_decays_that_underflow_in_an_emulator(target):
    rate = np.float32(20) * floats(20, 1)
    arguments = floats(20, 1, 6), rate, np.float32([3]), floats(20, 9), floats(20, 9), floats(1)
    check(recurrent_programs.mamba_2, *arguments, target=target)


def test_resets_are_conditions():
    def f(q, k, v, starts):
        def step(h, now):
            q, k, v, is_first = now
            h = np.where(is_first > 0, 0.0, 0.5 * h) + k[:, None] * v
            return h, q @ h

        start = np.ones((k.shape[1], v.shape[1]), v.dtype)
        return tile.scan(step, start, (q, k, v, starts))[1]

    arguments = floats(40, 8), floats(40, 8), floats(40, 8), np.float32(STEPS[:40] % 9 == 4)
    assert CHUNKS in str(tile.function(f).explain(*arguments))
    check(f, *arguments)


def test_small_floats_are_carried_in_32_bits():
    q, k, v = (floats(40, 2, 16).astype("float16") for _ in range(3))
    a = np.full((40, 2), 0.9, "float16")
    wide = [x.astype("float64") for x in (q, k, v, a)]
    for got, exact in zip(Function(decayed, target="cpu")(q, k, v, a), decayed(*wide), strict=True):
        assert got.dtype == np.float16
        np.testing.assert_allclose(got.astype("float64"), exact, rtol=2e-3, atol=2e-3)


def kept(q, k, v):
    def step(h, now):
        q, k, v = now
        return h + k[:, None] * v, q @ h

    return tile.scan(step, np.zeros((k.shape[1], v.shape[1]), v.dtype), (q, k, v))[1]


def test_values_before_a_step_are_read_in_chunks():
    arguments = floats(40, 8), floats(40, 8), floats(40, 5)
    assert CHUNKS in str(tile.function(kept).explain(*arguments))
    check(kept, *arguments)


def squared(q, k, v):
    def step(h, now):
        q, k, v = now
        h = h * h + k[:, None] * v
        return h, q @ h

    return tile.scan(step, np.zeros((k.shape[1], v.shape[1]), v.dtype), (q, k, v))[1]


def by_columns(q, k, v):
    def step(h, now):
        q, k, v = now
        h = np.tanh(v) * h + k[:, None] * v
        return h, q @ h

    return tile.scan(step, np.zeros((k.shape[1], v.shape[1]), v.dtype), (q, k, v))[1]


@pytest.mark.parametrize(
    ("function", "reason"),
    [
        (squared, "a step is no multiple and a summand"),
        (by_columns, "columns decay in different ways"),
    ],
)
def test_other_steps_say_why(function, reason):
    arguments = floats(20, 5), floats(20, 5) / 8, floats(20, 6) / 8
    told = str(tile.function(function).explain(*arguments))
    assert f"carried: 1 value, 20 steps one after the other: {reason}" in told
    check(function, *arguments)


def test_few_steps_are_taken_one_after_the_other():
    told = str(tile.function(kept).explain(floats(3, 5), floats(3, 5), floats(3, 6)))
    assert "carried: 1 value, 3 steps one after the other: few" in told
