"""TL6504: not all threads reach a barrier."""

from __future__ import annotations

from support.user_lines import at, failure
from tile_core.errors import Deadlock
from tile_core.ops.control import Barrier
from tile_core.testing.build_ir import when


def test_message(monkeypatch):
    def body(a, s, bx, tx, ty, tz):
        return when(tx < 3, at(Barrier(), 5, 16))

    assert (
        failure(monkeypatch, Deadlock, body, threads=8)
        == """\
[TL6504] this barrier waits for all threads of the block, but 5 of the 8 threads of warp 0 do not \
reach it
 --> user.py:5:1
  |
5 | T.sync_threads()
  | ^^^^^^^^^^^^^^^^
hint: move it out of the branch that only some threads take"""
    )
