"""The kernels whose barriers are proved for every order also compute what they should."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
from protocol import kernels
from tile_core.testing.oracle import numbers, poison

TARGET = "cuda:sm_90a@sim"


def multiplied(function: Any, m: int, n: int, k: int) -> None:
    """Check a product, which is exact."""
    rng = np.random.default_rng(m + n + k)
    a, b = numbers(rng, (m, k), "float16", -2, 3), numbers(rng, (k, n), "float16", -2, 3)
    c = poison((m, n), "float16")
    tile.compile(function, target=TARGET)(a, b, c)
    expected = a.astype("float32") @ b.astype("float32")
    np.testing.assert_array_equal(c, expected.astype("float16"))


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(("rounds", "stages"), [(1, 4), (4, 4), (9, 4), (5, 2), (7, 3)])
@pytest.mark.parametrize("threads", [128, 256])
def test_rings_of_any_length(rounds: int, stages: int, threads: int) -> None:
    multiplied(kernels.gemm(rounds, stages, threads), 128, 256, 64 * rounds)


@pytest.mark.parametrize(("tiles", "rounds"), [(1, 1), (3, 2), (4, 5)])
def test_rings_that_go_on(tiles: int, rounds: int) -> None:
    multiplied(kernels.persistent(tiles, rounds), 128 * tiles, 128, 64 * rounds)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("rounds", [1, 2, 5])
@pytest.mark.parametrize("cluster", [(2, 1, 1), (1, 2, 1), (2, 2, 1)])
def test_tiles_that_clusters_share(rounds: int, cluster: tuple[int, int, int]) -> None:
    multiplied(kernels.in_clusters(rounds, cluster), 256, 256, 64 * rounds)


def test_rounds_of_clusters_that_arguments_decide() -> None:
    multiplied(kernels.in_clusters(3, (2, 2, 1), at_run_time=True), 256, 256, 200)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("tiles", [1, 2, 5])
def test_products_of_products(tiles: int) -> None:
    """Each query meets one key of each tile, with the same score: exact sums of values."""
    rng = np.random.default_rng(tiles)
    keys = np.tile(np.eye(128, dtype=np.float16), (tiles, 1))
    queries = np.zeros((128, 128), np.float16)
    queries[range(128), rng.permutation(128)] = 30
    values = numbers(rng, (128 * tiles, 128), "float16")
    out = poison((128, 128), "float16")
    tile.compile(kernels.attention(tiles), target=TARGET)(queries, keys, values, out)
    scores = queries.astype("float32") @ keys.astype("float32").T
    weights = np.exp2(scores - 30).astype("float16").astype("float32")
    expected = weights @ values.astype("float32")
    np.testing.assert_array_equal(out, expected.astype("float16"))
