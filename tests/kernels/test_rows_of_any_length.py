"""Rows that threads do not share out evenly: reduced among their holders like all others."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support import gpu_kernels
from tile_core.layout.loop_layout import planned
from tile_core.layout.preimages import reduced_fragment
from tile_sim import checking

COLUMNS = [3, 33, 130, 300, 500, 1000]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("columns", COLUMNS)
def test_softmax(columns: int) -> None:
    x = np.random.default_rng(0).standard_normal((62, columns)).astype(np.float32)
    y = np.full_like(x, np.nan)
    kernel = tile.compile(gpu_kernels.softmax(62, columns), target="cuda:sm_80@sim")
    with checking("all", schedule="random:1"):
        kernel(x, y)
    e = np.exp(x - x.max(axis=1, keepdims=True))
    np.testing.assert_allclose(y, e / e.sum(axis=1, keepdims=True), rtol=1e-5, atol=1e-6)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("columns", COLUMNS)
def test_layer_norm(columns: int) -> None:
    rng = np.random.default_rng(1)
    x = rng.standard_normal((60, columns)).astype(np.float32)
    weight = rng.standard_normal(columns).astype(np.float32)
    y = np.full_like(x, np.nan)
    kernel = tile.compile(gpu_kernels.layer_norm(60, columns), target="cuda:sm_75@sim")
    with checking("all", schedule="random:2"):
        kernel(x, weight, y)
    centred = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centred * centred).mean(axis=1, keepdims=True) + 1e-5)
    np.testing.assert_allclose(y, centred / deviation * weight, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("columns", [300, 500, 1000])
def test_lanes_exchange_their_parts(columns: int) -> None:
    kernel = tile.compile(gpu_kernels.softmax(62, columns), target="cuda:sm_80@sim")
    text = kernel.get_kernel_source()
    assert "tile::load<4>" in text
    assert "tile::shfl_xor" in text
    assert len(text.splitlines()) < 200


@pytest.mark.parametrize(
    ("box", "vector", "lanes", "registers"),
    [
        ((4, 500), 4, 32, 16), ((4, 300), 4, 32, 12), ((8, 130), 2, 16, 10), ((4, 1000), 4, 32, 32),
        ((64, 64), 4, 16, 32),  # accesses of a row divide the threads
        ((64, 48), 4, 4, 24), ((32, 96), 4, 8, 24),  # they do not: what divides both
    ],
)  # fmt: skip
def test_rows_begin_with_the_first_of_their_threads(
    box: tuple[int, int], vector: int, lanes: int, registers: int
) -> None:
    loop = planned(box, 128, 4, holds_tiles=True)
    assert (loop.vector, loop.slots) == (vector, registers)
    rows = reduced_fragment(loop.fragment, 1)
    assert rows.replication == lanes
    for row in range(box[0]):
        owners = {t for j in range(box[1]) for t in loop.fragment.owners(row, j)}
        assert set(rows.owners(row)) == owners
        assert len(owners) == lanes
