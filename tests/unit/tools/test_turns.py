"""Rows of tests in turn: each commit keeps every class, and some commits run every row."""

from __future__ import annotations

import subprocess
from types import SimpleNamespace
from typing import Any

import pytest

from support.slow_tests import (
    HEAD,
    SELDOM,
    TABLE,
    TESTS,
    Stopwatch,
    renewed,
    slow_tests,
    written,
)
from support.turns import (
    EVERY,
    VARIABLE,
    Row,
    chosen,
    left_to_others,
    seconds_of_commit,
    share_of,
    take_turn,
    turn_of,
)

TYPES = ("int8", "float16", "float32", "float64")
ROWS = [
    Row(f"{op}-{dtype}-{target}", 4, (op, dtype, target))
    for op in ("add", "exp", "max", "min", "sum")
    for dtype in TYPES
    for target in ("cpu", "cuda", "hip")
]


def test_every_turn_keeps_each_class_and_leaves_most_rows_out() -> None:
    classes = {each for row in ROWS for each in row.classes}
    for turn in range(20):
        taken = [row for row in ROWS if row.name in chosen(ROWS, turn)]
        assert {each for row in taken for each in row.classes} == classes
        assert len(taken) < len(ROWS) / 2


def test_rows_that_are_alone_with_what_they_stand_for_come_in_turn() -> None:
    rows = [Row(f"example {n}", 3, (n,)) for n in range(30)]
    turns = [chosen(rows, turn) for turn in range(3)]
    assert set.union(*turns) == {row.name for row in rows}
    assert all(0 < len(names) < 20 for names in turns)
    assert len(chosen(rows[:1], 0) | chosen(rows[:1], 1) | chosen(rows[:1], 2)) == 1


def test_few_rows_of_slow_tests_are_not_due_with_every_turn() -> None:
    rows = [Row(f"example {n}", 6, (n,)) for n in range(2)]
    turns = [chosen(rows, turn, is_slow=True) for turn in range(6)]
    assert sorted(map(len, turns)) == [0, 0, 0, 0, 1, 1]
    assert set.union(*turns) == {row.name for row in rows}
    assert all(chosen(rows, turn) for turn in range(6))


def test_some_turns_take_every_row() -> None:
    assert set.union(*(chosen(ROWS, turn) for turn in range(4))) == {row.name for row in ROWS}


def test_classes_of_fewer_rows_than_a_share_come_in_the_turns_of_those() -> None:
    rows = [Row(f"{n} of {many}", 4, (many,)) for many in (3, 4) for n in range(many)]
    runs = [chosen(rows, turn) for turn in range(4)]
    assert all(any("of 4" in name for name in names) for names in runs)
    assert sum("of 3" in name for names in runs for name in names) == 3


@pytest.mark.parametrize("share_of_test", [None, 2])
def test_rows_of_others_are_no_items(share_of_test: int | None) -> None:
    of_test = share_of_test and pytest.mark.in_turn(share_of_test, classes=lambda n: ()).mark
    definition = SimpleNamespace(nodeid="test_it", get_closest_marker=lambda _: of_test)
    taken = []
    for turn in range(6):
        marked = [pytest.mark.in_turn(3, classes=lambda n: ()).mark, pytest.mark.skip.mark]
        calls = [
            SimpleNamespace(id=str(n), params={"n": n}, marks=marked if n % 2 else [])
            for n in range(40)
        ]
        metafunc: Any = SimpleNamespace(definition=definition, _calls=calls)
        take_turn(metafunc, turn)
        taken.append({int(call.id) for call in calls})
    often = [sum(n in names for names in taken) for n in range(40)]
    assert often == [6 // (share_of_test or 1), 2] * 20


def test_tests_without_parameters_come_in_turn_too() -> None:
    def item(name: str, share: int | None, **others: object) -> Any:
        marks = {"in_turn": share and pytest.mark.in_turn(share).mark}
        return SimpleNamespace(nodeid=name, get_closest_marker=marks.get, **others)

    always = [item("unmarked", None), item("of a table", 3, callspec=None)]
    items = [*always, *(item(f"test_{n}", 3) for n in range(30))]
    left = [left_to_others(items, turn) for turn in range(3)]
    assert all(0 < len(names) < 30 for names in left)
    assert all(sum(each in names for names in left) == 2 * (each not in always) for each in items)


def test_slow_tests_are_in_turn_without_a_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    slow = {"test_row": 4, **{f"test_{n}": 3 for n in range(20)}}
    monkeypatch.setattr("support.turns.slow_tests", lambda: slow)
    assert share_of("test_row", None) == share_of("test_row", pytest.mark.in_turn(2).mark) == 4
    assert share_of("test_row", pytest.mark.in_turn(5).mark) == 5
    items: Any = [SimpleNamespace(nodeid=n, get_closest_marker=lambda _: None) for n in slow]
    assert 0 < len(left_to_others(items, 0)) < len(items)
    calls = [SimpleNamespace(id=str(n), params={"n": n}, marks=[]) for n in range(40)]
    definition = SimpleNamespace(nodeid="test_row", get_closest_marker=lambda _: None)
    metafunc: Any = SimpleNamespace(definition=definition, _calls=calls)
    take_turn(metafunc, 0)
    assert len(metafunc._calls) == 10


def test_a_table_of_which_nothing_is_due_has_no_test(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nor a test without its parameters, which pytest makes of a function with no rows left."""
    monkeypatch.setattr("support.turns.slow_tests", lambda: {"test_row": 6})
    definition = SimpleNamespace(nodeid="test_row", get_closest_marker=lambda _: None)
    counts = []
    for turn in range(6):
        calls = [SimpleNamespace(id=str(n), params={"n": n}, marks=[]) for n in range(2)]
        metafunc: Any = SimpleNamespace(definition=definition, _calls=calls)
        take_turn(metafunc, turn)
        items: Any = [
            SimpleNamespace(
                nodeid=f"test_row[{call.id}]",
                callspec=call,
                get_closest_marker={mark.name: mark for mark in call.marks}.get,
            )
            for call in metafunc._calls
        ]
        assert items
        counts.append(len(items) - len(left_to_others(items, turn)))
    assert sorted(counts) == [0, 0, 0, 0, 1, 1]


def test_the_table_of_slow_tests_names_tests_that_are_there() -> None:
    """One that is gone or has another name would come with every commit."""
    for name, share in slow_tests().items():
        file, _, function = name.partition("::")
        text = (TESTS.parent / file).read_text()
        assert f"def {function.rpartition('::')[2]}(" in text, name
        assert 2 <= share <= 16, name


def test_the_table_is_written_as_it_is_read() -> None:
    assert TABLE.read_text() == written(slow_tests())


def test_measured_files_are_renewed() -> None:
    shares = {
        "tests/unit/a.py::test_f": 4,
        "tests/unit/a.py::test_g": 4,
        "tests/unit/b.py::test": 8,
    }
    seconds = {
        "tests/unit/a.py::test_f": 0.3,
        "tests/unit/a.py::test_g": 1.25,
        "tests/docs/c.py::t": 9,
    }
    found = {"tests/unit/a.py::test_g": 5, "tests/unit/b.py::test": 8}
    assert renewed(shares, seconds) == found
    assert renewed({}, {"tests/unit/a.py::test_f": 60.0}) == {"tests/unit/a.py::test_f": SELDOM}
    assert written(found) == f"{HEAD}unit/a.py\n  5 test_g\nunit/b.py\n  8 test\n"


def test_a_stopwatch_adds_up_the_rows_of_a_function() -> None:
    watch = Stopwatch()
    for name, when, took in (
        ("t[1]", "teardown", 1.5),
        ("t[2]", "teardown", 2.0),
        ("t[2]", "call", 0),
    ):
        properties = [("processor", took)] if when == "teardown" else []
        report: Any = SimpleNamespace(nodeid=name, when=when, user_properties=properties)
        watch.pytest_runtest_logreport(report)
    assert watch.seconds == {"t": 3.5}


def test_whose_turn_it_is() -> None:
    assert turn_of(True, {}) is None
    assert turn_of(False, {}) == seconds_of_commit()
    assert turn_of(True, {VARIABLE: "7"}) == turn_of(False, {VARIABLE: "7"}) == 7
    assert turn_of(False, {VARIABLE: EVERY}) is None


def test_without_git_it_is_the_first_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*_: object, **__: object) -> None:
        raise FileNotFoundError

    monkeypatch.setattr(subprocess, "run", run)
    assert seconds_of_commit() == 0
