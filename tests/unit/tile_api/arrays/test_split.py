"""Streams that blocks share: parts are merged by what corrects an accumulator in a loop."""

from __future__ import annotations

import numpy as np
import pytest

from support.array_programs import (
    PROGRAMS,
    Program,
    attention,
    logsumexp,
    moments,
    positions,
    softmax,
)
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

SHARED = Blocks(stream=32, parts=3)
SPLIT = {
    "softmax": 3, "logsumexp": 2, "positions": 2, "moments": 2, "power_mean": 2, "rms_linear": 2,
    "low_rank": 3, "attention": 2, "causal": 2, "windowed": 2, "with_log_sum": 2, "with_sink": 2,
    "keys_and_values": 3, "cross_entropy": 2, "no_rule": 1,
}  # fmt: skip
GPUS = ("cuda:sm_80@sim", "cuda:sm_90a@sim", "hip:gfx942@sim")
# Loops without copies to shared memory, and row values that registers cannot be named for.
pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def chosen(*names: str) -> list[Program]:
    return [p for p in PROGRAMS if p.name in names]


def check(program: Program, function: Function) -> None:
    arguments = program.arguments()
    found = function(**arguments)
    found = found if isinstance(found, tuple) else (found,)
    for got, wanted in zip(found, program.expected(arguments), strict=True):
        most = 4e-6 * (1 + float(np.abs(wanted).max()))
        np.testing.assert_allclose(got, wanted, rtol=0, atol=most)


def naming(program: Program) -> str:
    return program.name


@pytest.mark.in_turn(12)
@pytest.mark.parametrize("program", chosen(*SPLIT), ids=naming)
def test_on_the_cpu(program: Program) -> None:
    function = Function(program.function, target="cpu", blocks=SHARED)
    check(program, function)
    source = function.source(**program.arguments())
    assert source.count("@tile.jit") == SPLIT[program.name]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("program", "target"),
    [*zip(chosen("positions", "moments", "with_log_sum"), GPUS, strict=True)],
)
def test_on_gpus(program: Program, target: str) -> None:
    check(program, Function(program.function, target=target, blocks=SHARED))


def test_parts_of_which_nothing_is_left() -> None:
    x = np.random.default_rng(0).standard_normal((5, 211)).astype("float32")
    x[0] = -np.inf  # all of it
    x[1, :150] = -np.inf  # the first part and more
    x[2, 60:] = -np.inf  # parts behind the first
    x[3, 7] = np.inf
    with np.errstate(all="ignore"):
        for function in (logsumexp, softmax):
            found = Function(function, target="cpu", blocks=SHARED)(x)
            np.testing.assert_allclose(found, function(x), rtol=2e-6, atol=1e-7)


def test_a_spread_that_is_small_beside_the_mean() -> None:
    x = (1e4 + np.random.default_rng(0).standard_normal((3, 5000))).astype("float32")
    for got, wanted in zip(
        Function(moments, target="cpu", blocks=SHARED)(x), moments(x.astype("float64")), strict=True
    ):
        np.testing.assert_allclose(got, wanted, rtol=2e-4)


def test_the_first_of_equal_elements_is_found() -> None:
    x = np.zeros((4, 211), "float32")
    x[1, [90, 180]] = 1
    x[2, [0, 210]] = -1
    for got, wanted in zip(
        Function(positions, target="cpu", blocks=SHARED)(x), positions(x), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)


def test_equal_plans_give_equal_bits() -> None:
    arguments = chosen("attention")[0].arguments()
    function = Function(attention, target="cpu", blocks=SHARED)
    first = function(**arguments)
    assert all(np.array_equal(first, function(**arguments)) for _ in range(3))


def paged(q, keys, values, pages):
    k = keys[pages].reshape(-1, *keys.shape[2:])
    v = values[pages].reshape(-1, *values.shape[2:])
    s = np.einsum("hd,thd->ht", q, k) / np.sqrt(np.float32(q.shape[-1]))
    return np.einsum("ht,thd->hd", softmax(s), v)


@pytest.mark.parametrize("target", ["cpu", GPUS[0]])
def test_pages_of_keys(target: str) -> None:
    random = np.random.default_rng(0)
    shapes = (2, 16), (9, 16, 2, 16), (9, 16, 2, 16)
    arrays = [random.standard_normal(shape).astype("float32") for shape in shapes]
    pages = random.permutation(9)[:6].astype("int32")
    function = Function(paged, target=target, blocks=Blocks(stream=16, parts=2))
    assert function.source(*arrays, pages).count("@tile.jit") == 2
    wanted = paged(*(x.astype("float64") for x in arrays), pages)
    np.testing.assert_allclose(function(*arrays, pages), wanted, atol=2e-6)


def test_what_is_no_number_is_told_by_all_parts() -> None:
    def extremes(x):
        return x.max(axis=-1), x.min(axis=-1)

    x = np.random.default_rng(0).standard_normal((4, 211)).astype("float32")
    x[1, 3] = x[2, 200] = np.nan
    for got, wanted in zip(
        Function(extremes, target="cpu", blocks=SHARED)(x), extremes(x), strict=True
    ):
        np.testing.assert_array_equal(got, wanted)
