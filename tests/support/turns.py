"""Which tests that are slow or marked `in_turn` a run of the suite takes: all, over some commits.

``TILE_TEST_TURN=all pytest`` runs every row of every test; a number repeats a run whose header has
it. Otherwise the date of the commit gives the turn, and tests whose files are named run whole.
"""

from __future__ import annotations

import os
import subprocess
from collections import defaultdict
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest

from support.slow_tests import slow_tests

VARIABLE = "TILE_TEST_TURN"
EVERY = "all"
NOT_DUE = "not_due"


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a test: its name, how seldom it is due, and what it stands for."""

    name: str
    share: int
    classes: Collection[Hashable]


def chosen(rows: Sequence[Row], turn: int, *, is_slow: bool = False) -> set[str]:
    """Return the names of the rows that are due, and of more until each common class has one.

    Rows are due one after the other, in an order that names give. A class is common if one of its
    rows is due in a run on average; what few rows stand for comes in the turn of those rows. Of
    rows of slow tests no more are taken than are due, and where there are few, none in some runs.
    """
    often: defaultdict[Hashable, float] = defaultdict(float)
    for row in rows:
        for each in set(row.classes):
            often[each] += 1 / row.share
    ordered = sorted(rows, key=lambda row: crc32(row.name.encode()))
    begin = turn + crc32(ordered[0].name.encode()) if ordered else 0
    first = [row for at, row in enumerate(ordered, begin) if at % row.share == 0]
    names = {row.name for row in first}
    if is_slow:
        return names
    later = [row for at, row in enumerate(ordered, begin) if at % row.share]
    later.sort(key=lambda row: crc32(f"{turn} {row.name}".encode()))
    met = {each for row in first for each in row.classes}
    for row in later:
        its = {each for each in row.classes if often[each] > 0.999}
        if not its <= met or not names:
            met |= its
            names.add(row.name)
    return names


def turn_of(names_tests: bool, environment: Mapping[str, str] = os.environ) -> int | None:
    """Return the turn of a run, or None if it takes every row.

    Parameters
    ----------
    names_tests
        Whether the command line names files or chooses tests: what is asked for is run.
    """
    wanted = environment.get(VARIABLE, "")
    if wanted == EVERY or (not wanted and names_tests):
        return None
    return int(wanted) if wanted else seconds_of_commit()


def seconds_of_commit() -> int:
    """Return the date of the last commit; 0 where there is no repository."""
    command = ("git", "log", "-1", "--format=%ct")
    try:
        told = subprocess.run(command, cwd=Path(__file__).parent, capture_output=True, text=True)
    except FileNotFoundError:
        return 0
    return int(told.stdout) if told.returncode == 0 else 0


def names_tests(config: pytest.Config) -> bool:
    """Tell whether the command line chooses tests by files, words or markers."""
    by_files = config.args_source is not pytest.Config.ArgsSource.TESTPATHS
    return by_files or bool(config.option.keyword or config.option.markexpr)


def require_shares(metafunc: pytest.Metafunc) -> None:
    """Refuse marks that do not say how seldom rows are due."""
    if not all(mark.args for mark in metafunc.definition.iter_markers("in_turn")):
        raise pytest.UsageError("in_turn takes how seldom a row is due, as in in_turn(3)")


def share_of(function: str, mark: pytest.Mark | None) -> int:
    """Return how seldom a function of tests is due, or rows of it: always is 1."""
    return max(slow_tests().get(function, 1), mark.args[0] if mark else 1)


def row_of(name: str, mark: pytest.Mark | None, parameters: Mapping[str, Any]) -> Row:
    """Return what the mark says of a row: ``in_turn(share, classes=...)``.

    It stands for the values of its parameters, or for what `classes` makes of them.
    """
    classes = mark.kwargs.get("classes", values_of) if mark else values_of
    return Row(name, share_of(name.partition("[")[0], mark), classes(**parameters))


def values_of(**parameters: Any) -> set[tuple[str, str]]:
    """Return each parameter with its value."""
    return {(name, repr(value)) for name, value in parameters.items()}


def left_to_others(items: Sequence[pytest.Item], turn: int) -> list[pytest.Item]:
    """Return the tests without parameters that are not due, each of which is a table of one row.

    And what stands for tables of which no row is due.
    """
    return [
        item
        for item in items
        if item.get_closest_marker(NOT_DUE)
        or (
            not hasattr(item, "callspec")
            and (share := share_of(item.nodeid, item.get_closest_marker("in_turn"))) > 1
            and (crc32(item.nodeid.encode()) + turn) % share
        )
    ]


def take_turn(metafunc: pytest.Metafunc, turn: int) -> None:
    """Drop the rows of a test that this turn leaves to others: no items are made of them."""
    of_all = metafunc.definition.get_closest_marker("in_turn")
    is_slow = metafunc.definition.nodeid in slow_tests()
    rows = {}
    for call in metafunc._calls:
        mark = next((mark for mark in call.marks if mark.name == "in_turn"), of_all)
        if mark or is_slow:
            name = f"{metafunc.definition.nodeid}[{call.id}]"
            rows[call.id] = row_of(name, mark, call.params)
    names = chosen([*rows.values()], turn, is_slow=is_slow)
    left = {key for key, row in rows.items() if row.name not in names}
    kept = [call for call in metafunc._calls if call.id not in left]
    if left and not kept:  # a function without any would be a test without parameters
        kept = metafunc._calls[:1]
        kept[0].marks.append(getattr(pytest.mark, NOT_DUE).mark)
    metafunc._calls[:] = kept
