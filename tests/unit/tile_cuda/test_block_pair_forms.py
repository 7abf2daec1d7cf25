"""Kernels of other forms in pairs of blocks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
from support.pair_kernels import (
    COLUMNS,
    ROWS,
    deep,
    factors,
    plain,
    product,
    promoted,
    triangle,
    twice,
)
from tile_sim import checking


def check(kernel: Any, rounds: int, rows: int = ROWS) -> None:
    a, b = factors(rows)
    c = np.full((rows, COLUMNS), np.nan, np.float32)
    tile.compile(kernel, target="cuda:sm_100a@sim")(a, b, rounds, c)
    np.testing.assert_array_equal(c, product(a[:, : rounds * 64], b[:, : rounds * 64]))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("schedule", ["forward", "random:1", "random:2"])
@pytest.mark.parametrize(
    ("kernel", "rounds", "rows"),
    [
        (deep, 6, 256),
        (plain, 0, 256),
        (plain, 1, 200),
        (plain, 6, 300),
        (promoted, 5, 256),
        (twice, 6, 256),
    ],
    ids=lambda x: getattr(x, "__name__", str(x)),
)
def test_forms(kernel: Any, rounds: int, rows: int, schedule: str) -> None:
    assert "tcgen05_mma_pair" in tile.lower(kernel, target="cuda:sm_100a").kernel_source
    with checking("all", schedule=schedule, async_mode="random" if ":" in schedule else "late"):
        check(kernel, rounds, rows)


def test_blocks_with_other_iterations_are_no_pairs() -> None:
    text = tile.lower(triangle, target="cuda:sm_100a").kernel_source
    assert "tcgen05_mma<" in text
