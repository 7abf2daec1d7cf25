"""The emulator finds what is wrong with pairs of blocks that the compiler makes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import support.pair_kernels
from support.pair_kernels import COLUMNS, ROWS, deep, factors, plain
from tile_core.errors import BarrierMisuse, Deadlock, MissingWait, TileError
from tile_core.ops.control import Barrier
from tile_core.plugins.host import installed_plugins
from tile_core.testing.oracle import runner
from tile_cuda import block_pairs
from tile_sim import checking


@pytest.fixture(autouse=True)
def barriers_are_followed() -> None:
    """Leave it to the emulator."""


def unmet(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_pairs._Meetings, "visit", lambda meetings, stmt: stmt)


def own_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    before = block_pairs._nbytes
    monkeypatch.setattr(block_pairs, "_nbytes", lambda region: 2 * before(region))


def alone(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(block_pairs, "ClusterSync", Barrier)


MISTAKES = {
    unmet: (BarrierMisuse, "multiply", "may still write it"),
    own_bytes: ((BarrierMisuse, MissingWait), "copy A or copy B", ""),
    alone: (TileError, "", "which need not have started"),
}
"""What the pass does wrong; what finds it, at which line of the user, in which words."""


@pytest.mark.parametrize("schedule", ["forward", "random:1"])
@pytest.mark.parametrize("mistake", MISTAKES, ids=lambda m: m.__name__)
def test_the_emulator_finds_mistakes(
    mistake: Any, schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kind, marker, words = MISTAKES[mistake]
    mistake(monkeypatch)
    run = runner("cuda:sm_100a@sim", installed_plugins())
    with checking("all", schedule=schedule, threads=1), pytest.raises(TileError) as caught:
        run(plain.kernel, (*factors(), 6, np.zeros((ROWS, COLUMNS), np.float32)))
    error = caught.value
    assert isinstance(error, kind), str(error)
    assert words in str(error)
    if marker:
        text = Path(support.pair_kernels.__file__).read_text().splitlines()
        wanted = {n for n, line in enumerate(text, 1) if line.endswith(tuple(
            f"  # {one}" for one in marker.split(" or ")))}  # fmt: skip
        spans = [error.span, *(note.span for note in error.notes)]
        assert wanted & {span.line for span in spans if span is not None}, str(error)


@pytest.mark.parametrize("schedule", ["forward", "reverse"])
def test_barriers_of_products_must_be_as_many_as_tiles(
    schedule: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second block would miss a phase: of eight tiles, four barriers complete two each."""
    monkeypatch.setattr(block_pairs, "_barriers_of", lambda depth: 4)
    run = runner("cuda:sm_100a@sim", installed_plugins())
    arguments = (*factors(), 6, np.zeros((ROWS, COLUMNS), np.float32))
    with (
        checking("all", schedule=schedule, async_mode="early", threads=1),
        pytest.raises(Deadlock),
    ):
        run(deep.kernel, arguments)
