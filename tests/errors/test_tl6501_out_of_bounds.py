"""TL6501: a tile access left its buffer."""

from __future__ import annotations

from support.user_lines import at, failure
from tile_core.errors import OutOfBounds
from tile_core.testing.build_ir import alloc, parallel, store


def test_message(monkeypatch):
    def body(a, s, bx):
        return [alloc(s), parallel((8,), lambda i: at(store(s, i + 1, 0), 2, 12))]

    assert (
        failure(monkeypatch, OutOfBounds, body)
        == """\
[TL6501] s[8] is outside s[8]
 --> user.py:2:1
  |
2 | s[i + 1] = 0
  | ^^^^^^^^^^^^
note: s is declared here
 --> user.py:1:1
  |
1 | s = T.alloc_shared((8,), "int32")
  | ^^^^
hint: only global tensors are guarded; guard the access to this shared buffer with `if`, or make \
it larger"""
    )
