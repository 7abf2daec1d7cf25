"""The emulator finds what is wrong with warps that begin copies for others."""

from __future__ import annotations

import numpy as np
import pytest

from support.mixed_kernels import odd_rows, three_ways
from support.ring_kernels import Case
from tile_core.errors import BarrierMisuse, Deadlock, MissingFence, MissingWait, TileError
from tile_core.passes import fence_async_reads, specialise_warps
from tile_core.passes.warp_specialisation.circular_buffers import CircularBuffer
from tile_core.passes.warp_specialisation.copy_warps import CopyWarps
from tile_core.plugins.host import installed_plugins
from tile_core.testing.oracle import runner


@pytest.fixture(autouse=True)
def barriers_are_followed() -> None:
    """Leave it to the emulator: `protocol/test_mixed_mistakes.py` has the proof refute the same."""


def broken(case: Case) -> None:
    arguments = case.arguments(np.random.default_rng(0))
    runner("cuda:sm_90a@sim", installed_plugins())(case.function.kernel, arguments)


def test_copies_must_be_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(CopyWarps, "_behind", lambda filler, signals: ())
    with pytest.raises(MissingWait, match="B_s"):
        broken(odd_rows(5))


def test_what_products_read_must_be_fenced(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fence_async_reads, "_fenced", lambda launch, read: launch)
    with pytest.raises(MissingFence, match="B_s"):
        broken(odd_rows(5))


@pytest.mark.parametrize("rounds", [1, 5])
def test_products_must_not_read_what_arrives_by_itself(
    monkeypatch: pytest.MonkeyPatch, rounds: int
) -> None:
    monkeypatch.setattr(
        CircularBuffer, "arrives_by_itself", property(lambda ring: bool(ring.issued))
    )
    with pytest.raises(MissingFence, match="B_s"):
        broken(odd_rows(rounds))


@pytest.mark.parametrize(
    ("lanes", "error"), [(0, (MissingWait, BarrierMisuse)), (31, TileError), (33, Deadlock)]
)
def test_each_lane_is_counted(
    monkeypatch: pytest.MonkeyPatch, lanes: int, error: type[TileError]
) -> None:
    monkeypatch.setattr(specialise_warps, "LANES", lanes)
    with pytest.raises(error):
        broken(three_ways(5))
