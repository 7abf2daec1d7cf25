"""TL6503: unsynchronised accesses to one element."""

from __future__ import annotations

from support.user_lines import at, failure
from tile_core.errors import DataRace
from tile_core.testing.build_ir import alloc, fill, load, parallel, store


def test_message(monkeypatch):
    def body(a, s, bx):
        shifted = lambda i: [at(store(s, i + 1, 0), 2, 12), at(store(a, i, load(s, i)), 3, 11)]  # noqa: E731
        return [alloc(s), fill(s, 1), parallel((7,), shifted)]

    assert (
        failure(monkeypatch, DataRace, body)
        == """\
[TL6503] iteration 1 reads s[1], which was written by iteration 0 without synchronisation in between
 --> user.py:3:1
  |
3 | A[i] = s[i]
  | ^^^^^^^^^^^
note: written here
 --> user.py:2:1
  |
2 | s[i + 1] = 0
  | ^^^^^^^^^^^^
note: s is declared here
 --> user.py:1:1
  |
1 | s = T.alloc_shared((8,), "int32")
  | ^^^^
hint: let each iteration write elements of its own, or use T.reduce or an atomic"""
    )
