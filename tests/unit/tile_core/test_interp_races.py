"""Who touched a place in which epoch: parties that write the same value there do not race."""

from __future__ import annotations

import numpy as np
import pytest

from tile_core.interp.races import AccessKind, Tracker
from tile_core.ir.build_expr import const

ALIKE = (1, 2)
"""Parties that write one value in the first epoch."""


def places(*parties: int) -> tuple[np.ndarray, np.ndarray]:
    return np.zeros(len(parties), np.int32), np.array(parties, np.int32)


def written_alike() -> Tracker:
    found = Tracker.of(1)
    node = const(0)
    assert found.write(*places(*ALIKE), 1, (node, None), np.array([True, False])) is None
    return found


@pytest.mark.parametrize(("reader", "races"), [(1, False), (2, False), (3, True)])
def test_who_wrote_a_value_with_others_may_read_it(reader: int, races: bool) -> None:
    conflict = written_alike().read(*places(reader), 1, (const(1), None))
    assert (conflict is not None) is races


@pytest.mark.parametrize("reader", [1, 2, 3])
def test_what_was_written_with_others_is_forgotten_with_its_epoch(reader: int) -> None:
    tracker = written_alike()
    assert tracker.write(*places(2), 2, (const(2), None), np.array([True])) is None
    conflict = tracker.read(*places(reader), 2, (const(1), None))
    assert (conflict is None) is (reader == 2)
    assert conflict is None or (conflict.earlier, conflict.party) == (AccessKind.WRITE, 2)
