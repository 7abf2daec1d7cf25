"""Barriers that the program names itself: right ones are proved, mistakes told by their line."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import pytest

from protocol.by_hand import exchanged, passed_on, shared_factor
from protocol.kernels import lowered
from tile_core.testing.protocol.events import Violation

PRODUCTS = {
    "the second block expects nothing": ("hears of bytes that nobody expects", "T.tma_copy"),
    "half of the arrivals": (
        "phase 0 of empty[0] may be over before threads 160 to 191 of block 0 have",
        "mbarrier_wait_parity(empty",
    ),
    "too many arrivals": ("nobody can go on", "mbarrier_wait_parity"),
    "too few bytes": ("nobody can go on", "mbarrier_wait_parity"),
    "too many bytes": ("nobody can go on", "mbarrier_wait_parity"),
    "wrong parity": ("A_s[0] is filled while an asynchronous operation reads it", "T.tma_copy(A"),
    "free places are not waited for": ("is filled while", "T.tma_copy"),
    "given back before it is read": ("is filled while", "T.tma_copy"),
    "given back while it is read": ("is filled while", "T.tma_copy"),
    "own block only": ("nobody can go on", "mbarrier_wait_parity"),
}
TILES = {
    "too few bytes": ("hears of bytes that nobody expects", "T.copy_cluster"),
    "source is written while it is copied": (
        "is filled while an asynchronous operation reads it",
        "T.copy(A",
    ),
    "nobody is told": ("nobody can go on", "mbarrier_wait_parity(read"),
}
SUMS = {
    "written before the block begins": ("may be reached before it has begun", "T.copy_cluster"),
    "read before it came": ("is filled while others read it", "T.copy_cluster"),
    "told without the data": ("is read while others write it", "for i in T.Parallel(128)"),
}
"""By program and mistake: what a report says, and the line that it names."""

CASES: list[tuple[Callable[[str], Any], str, str, str]] = [
    (program, mistake, reason, line)
    for program, mistakes in ((shared_factor, PRODUCTS), (passed_on, TILES), (exchanged, SUMS))
    for mistake, (reason, line) in mistakes.items()
]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("program", [shared_factor, passed_on, exchanged])
def test_right_ones_are_proved(program: Callable[..., Any]) -> None:
    violation = lowered(program()).violation()
    assert violation is None, str(violation)


def line_of(violation: Violation) -> str:
    assert violation.span is not None
    return linecache.getline(violation.span.file, violation.span.line)


@pytest.mark.parametrize(
    ("program", "mistake", "reason", "line"), CASES, ids=[f"{c[0].__name__}: {c[1]}" for c in CASES]
)
def test_mistakes(program: Callable[[str], Any], mistake: str, reason: str, line: str) -> None:
    violation = lowered(program(mistake)).violation()
    assert violation is not None
    assert reason in violation.what
    assert line in line_of(violation)
