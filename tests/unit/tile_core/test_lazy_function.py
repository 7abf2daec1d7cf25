"""Functions that are made when they are first called."""

from __future__ import annotations

import pytest

from tile_core.errors import MissingFeature
from tile_core.plugins.gpu_launch import made_at_first_call


def test_it_is_made_once_and_not_before() -> None:
    makings, calls = [], []

    def make():
        makings.append(len(calls))
        return lambda *args: calls.append(args)

    run = made_at_first_call(make)
    assert makings == []
    run(1, "a")
    run(2, "b")
    assert makings == [0]
    assert calls == [(1, "a"), (2, "b")]


def test_what_cannot_be_made_is_tried_again() -> None:
    calls: list[int] = []
    outcomes = iter((MissingFeature("no GPU"), calls.append))

    def make():
        outcome = next(outcomes)
        if isinstance(outcome, MissingFeature):
            raise outcome
        return outcome

    run = made_at_first_call(make)
    with pytest.raises(MissingFeature):
        run(1)
    run(2)
    assert calls == [2]
