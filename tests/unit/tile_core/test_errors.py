"""Errors show where, why and what to do, in the characters that the user sees."""

from __future__ import annotations

import ast
import linecache
import pickle

import pytest

from tile_core.errors import Note, ShapeMismatch, Span, TileError

SOURCE = "größe = 'é'; copy(b,\n    a)\n"
EXPECTED = """\
[TL2001] b is larger
 --> user.py:1:14
  |
1 | größe = 'é'; copy(b,
  |              ^^^^^^^
note: a is declared here
  --> user.py:10:1
   |
10 |
   | ^^^
note: nothing is cut
hint: slice it"""


@pytest.fixture
def statements(monkeypatch: pytest.MonkeyPatch) -> list[ast.stmt]:
    entry = (len(SOURCE), None, SOURCE.splitlines(True), "user.py")
    monkeypatch.setitem(linecache.cache, "user.py", entry)
    return ast.parse(SOURCE).body


def test_spans_count_characters_not_bytes(statements: list[ast.stmt]) -> None:
    assert Span.of(statements[0], file="user.py") == Span("user.py", 1, 0, 11)
    assert Span.of(statements[1], file="user.py") == Span("user.py", 1, 13, 20)


def test_an_error_prints_its_parts_and_survives_pickling(statements: list[ast.stmt]) -> None:
    error = ShapeMismatch(
        "b is larger",
        span=Span.of(statements[1], file="user.py"),
        notes=(Note("a is declared here", Span("user.py", 10, 0, 3)), Note("nothing is cut")),
        hint="slice it",
    )
    printed = "\n".join(line.rstrip() for line in str(error).splitlines())
    assert printed == EXPECTED
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ShapeMismatch
    assert str(again) == str(error)
    assert (again.span, again.notes, again.hint) == (error.span, error.notes, error.hint)


def test_a_place_is_filled_in_once() -> None:
    inner, outer = Span("user.py", 1, 0, 5), Span("user.py", 2, 0, 5)
    error = TileError("oops")
    assert error.at(inner) is error
    assert error.at(outer).span == inner
