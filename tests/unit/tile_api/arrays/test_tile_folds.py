"""Norms of the rows of a tile that a product reads: folds in the kernel of the product."""

from __future__ import annotations

import numpy as np
import pytest

from support.array_programs import Program, softmax
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")


def unit(x):
    return x / np.sqrt((x * x).sum(axis=-1, keepdims=True))


def highest_is_one(x):
    return x / np.abs(x).max(axis=-1, keepdims=True)


def causal_of_units(q, k, v):
    s = 8 * (unit(q) @ np.swapaxes(unit(k), -1, -2))
    seen = np.arange(q.shape[-2])[:, None] >= np.arange(k.shape[-2])
    return softmax(np.where(seen, s, -np.inf)) @ v


def nearest(q, k):
    return (highest_is_one(q) @ np.swapaxes(highest_is_one(k), -1, -2)).max(axis=-1)


def scaled(q, k, weight):
    return (unit(q) * weight @ unit(k).T).max(axis=-1)


ROWS = {"q": (2, 50, 32), "k": (2, 75, 32)}
SMALL = {"q": (20, 16), "k": (40, 16), "weight": (16,)}


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("target", ["cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
@pytest.mark.parametrize(
    "program",
    [Program(causal_of_units, {**ROWS, "v": (2, 75, 24)}), Program(nearest, ROWS)],
    ids=lambda p: p.name,
)
def test_norms_are_folds_of_tiles(program: Program, target: str) -> None:
    arguments = program.arguments()
    function = Function(
        program.function, target=target, blocks=Blocks(rows=32, stream=32, resident=0)
    )
    assert len(function.explain(**arguments).kernels) == 1
    (wanted,) = program.expected(arguments)
    assert np.abs(function(**arguments) - wanted).max() <= 4e-6 * (1 + np.abs(wanted).max())


def test_products_read_elements_as_they_are() -> None:
    source = Function(nearest, blocks=Blocks()).source(
        *(np.ones(s, "float16") for s in ROWS.values())
    )
    assert "T.gemm(q_tile, k_tile, scores, transpose_B=True" in " ".join(source.split())


def test_what_does_not_fit_into_its_type_is_normalised_first() -> None:
    """A row times weights may be too large for float16, until it is divided by its norm."""
    arguments = Program(scaled, SMALL).arguments()
    halves = {n: x.astype("float16") for n, x in arguments.items()}
    halves["q"], halves["weight"] = halves["q"] * 12, halves["weight"] * 3000
    (wanted,) = Program(scaled, SMALL).expected(halves)
    found = Function(scaled, target="cpu", blocks=Blocks())(**halves)
    assert np.abs(found - wanted).max() <= 2e-2 * np.abs(wanted).max()


def test_strict_numbers_stay_where_they_are_written() -> None:
    program = Program(nearest, ROWS)
    function = Function(nearest, target="cpu", numerics="strict", blocks=Blocks())
    arguments = program.arguments()
    assert "/ folded[i]" in function.source(**arguments)
    (wanted,) = program.expected(arguments)
    assert np.abs(function(**arguments) - wanted).max() <= 4e-6 * np.abs(wanted).max()
