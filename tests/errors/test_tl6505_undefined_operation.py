"""TL6505: an operation without a defined result."""

from __future__ import annotations

from support.user_lines import at, failure
from tile_core.errors import UndefinedOperation
from tile_core.testing.build_ir import load, parallel, store


def test_message(monkeypatch):
    def body(a, s, bx):
        return parallel((8,), lambda i: at(store(a, i, 1 // load(a, i)), 6, 16))

    assert (
        failure(monkeypatch, UndefinedOperation, body)
        == """\
[TL6505] '//' divides an integer by zero
 --> user.py:6:1
  |
6 | A[i] = 1 // A[i]
  | ^^^^^^^^^^^^^^^^
hint: guard it: T.if_then_else(d != 0, n // d, 0) evaluates one side only"""
    )
