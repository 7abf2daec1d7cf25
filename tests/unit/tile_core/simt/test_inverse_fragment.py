"""Fragments read backwards: which element a register of a thread holds."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.arith.evaluate import evaluate
from tile_core.ir.build_expr import as_expr
from tile_core.layout import Fragment
from tile_core.layout.preimages import reduced_fragment
from tile_core.simt.inverse_fragment import held, is_dense, slot_map

TILES = {
    "rows": Fragment((4, 8), lambda i, j: (i * 8 + j, 0)),
    "registers": Fragment(
        (8, 24), lambda i, j: (j % 4 + i % 4 * 8, j // 4 + i // 4 * 6), threads=32
    ),
    "replicas": Fragment((4, 8), lambda i, j, rep: (rep * 16 + i * 4 + j // 2, j % 2), replicate=2),
}


@pytest.mark.parametrize("name", ["rows", "replicas"])
def test_every_register_knows_its_element(name: str) -> None:
    tile = TILES[name]
    assert is_dense(tile)
    seen = set()
    for thread in range(tile.thread_extent):
        for slot in range(tile.slots):
            place = held(tile, as_expr(thread), as_expr(slot))
            coords = tuple(int(evaluate(x, {})) for x in place.coords)
            replica = int(evaluate(place.replica, {}))
            assert tile.slot_at(*coords) == slot
            assert tile.forward_thread(*coords, rep=replica) == thread
            seen.add((*coords, replica))
    assert len(seen) == tile.size * tile.replication


def test_threads_that_hold_nothing() -> None:
    assert not is_dense(TILES["registers"])


def test_slots_of_rows() -> None:
    tile = TILES["registers"]
    rows = reduced_fragment(tile, 1)
    slots = slot_map(tile, rows, 1)
    assert slots is not None
    for i, j in np.ndindex(tile.shape):
        assert slots[tile.slot_at(i, j)] == rows.slot_at(i)


def test_slots_of_rows_that_depend_on_the_thread() -> None:
    tile = Fragment((4, 4), lambda i, j: (j, (i + j) % 4))
    rows = Fragment((4,), lambda i, rep: (rep, i), replicate=4)
    assert slot_map(tile, rows, 1) is None
