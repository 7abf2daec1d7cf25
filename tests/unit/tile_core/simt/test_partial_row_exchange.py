"""Who shares a row of a fragment: bits of lanes, and warps at a regular step."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.layout import Fragment
from tile_core.simt.partial_row_exchange import Exchange, exchange_along


def spread(shape: tuple[int, ...], thread: Any, replicas: int = 1) -> Fragment:
    """Return a tile with a register for each element: who shares a row is all that matters."""
    return Fragment(
        shape,
        forward_thread_fn=thread,
        replicate=replicas,
        forward_index_fn=lambda *coords: coords[: len(shape)],
    )


SPREAD: list[tuple[str, tuple[int, ...], int, Any, int, Exchange]] = [
    # name, shape, dim, thread of (i, j[, rep]), replicas, what is expected
    ("rows of one thread", (32, 8), 1, lambda i, j: i, 1, Exchange(())),
    ("eight neighbours", (4, 8), 1, lambda i, j: i * 8 + j, 1, Exchange((1, 2, 4))),
    ("every fourth lane", (4, 8), 1, lambda i, j: j * 4 + i, 1, Exchange((4, 8, 16))),
    ("bits apart", (8, 4), 1, lambda i, j: i % 4 * 2 + i // 4 * 16 + j % 2 + j // 2 * 8, 1,
     Exchange((1, 8))),
    ("the first dimension", (8, 4), 0, lambda i, j: i * 4 + j, 1, Exchange((4, 8, 16))),
    ("a warp a row", (4, 32), 1, lambda i, j: i * 32 + j, 1, Exchange((1, 2, 4, 8, 16))),
    ("three warps a row", (4, 96), 1, lambda i, j: j, 1, Exchange((1, 2, 4, 8, 16), 3, 1)),
    ("five warps, one lane of each", (32, 5), 1, lambda i, j: j * 32 + i, 1, Exchange((), 5, 1)),
    ("every second warp", (2, 64), 1, lambda i, j: i * 32 + j % 32 + j // 32 * 64, 1,
     Exchange((1, 2, 4, 8, 16), 2, 2)),
    ("replicas in other warps", (4, 8), 1, lambda i, j, rep: rep * 32 + i * 8 + j, 3,
     Exchange((1, 2, 4))),
    ("replicas in other lanes", (2, 4), 1, lambda i, j, rep: rep * 8 + i * 4 + j, 4,
     Exchange((1, 2))),
]  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "dim", "thread", "replicas", "expected"),
    [row[1:] for row in SPREAD],
    ids=[row[0] for row in SPREAD],
)
def test_rows_that_lanes_and_warps_share(
    shape: tuple[int, ...], dim: int, thread: Any, replicas: int, expected: Exchange
) -> None:
    assert exchange_along(spread(shape, thread, replicas), dim, 32) == expected


@pytest.mark.parametrize(
    ("shape", "thread"),
    [
        pytest.param((8, 12), lambda i, j: i * 12 + j, id="twelve lanes are no cube"),
        pytest.param((4, 3), lambda i, j: i * 3 + j, id="three lanes are no cube"),
        pytest.param((2, 8), lambda i, j: i * 16 + j * (i + 1), id="rows with bits of their own"),
        pytest.param((2, 64), lambda i, j: i * 32 + j, id="warps that rows share in part"),
        pytest.param((1, 64), lambda i, j: i + j + 32, id="warps from the second on"),
    ],
)
def test_irregular_rows_go_through_memory(shape: tuple[int, ...], thread: Any) -> None:
    assert exchange_along(spread(shape, thread), 1, 32) is None


def test_warps_of_another_width() -> None:
    tile = spread((2, 64), lambda i, j: i * 64 + j)
    assert exchange_along(tile, 1, 64) == Exchange((1, 2, 4, 8, 16, 32))
    assert exchange_along(tile, 1, 32) == Exchange((1, 2, 4, 8, 16), 2, 1)
    assert exchange_along(tile, 1, 16) == Exchange((1, 2, 4, 8), 4, 1)
