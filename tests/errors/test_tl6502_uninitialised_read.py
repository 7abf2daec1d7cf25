"""TL6502: a kernel read an element that nothing had written."""

from __future__ import annotations

from support.user_lines import at, failure
from tile_core.errors import UninitialisedRead
from tile_core.testing.build_ir import alloc, load, parallel, store


def test_message(monkeypatch):
    def body(a, s, bx):
        return [
            alloc(s),
            store(s, 0, 0),
            parallel((8,), lambda i: at(store(a, i, load(s, i)), 3, 11)),
        ]

    assert (
        failure(monkeypatch, UninitialisedRead, body)
        == """\
[TL6502] s[1] is read before anything is written to it
 --> user.py:3:1
  |
3 | A[i] = s[i]
  | ^^^^^^^^^^^
note: s is declared here
 --> user.py:1:1
  |
1 | s = T.alloc_shared((8,), "int32")
  | ^^^^
hint: initialise it with T.clear, T.fill or T.copy"""
    )
