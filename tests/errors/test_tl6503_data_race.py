# ruff: noqa: E501 - messages are compared as they are printed
"""TL6503: unsynchronised accesses to one element."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
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


MISTAKES = [
    Mistake(
        "in a branch where no barrier can stand",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                tx = T.get_thread_binding()
                row = T.alloc_shared((64,), "float32")
                if tx < 48:
                    row[tx] = A[tx]
                    A[tx] = row[47 - tx]
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL6503] threads of a branch have 'row' written and read by each other, and no barrier of the block can stand in a branch that not all threads take
         --> program.py:8:13
          |
        8 |             A[tx] = row[47 - tx]
          |             ^^^^^
        note: it is written here
         --> program.py:7:13
          |
        7 |             row[tx] = A[tx]
          |             ^^^^^^^
        hint: end the branch in between, or write T.sync_warp() where the threads are of one warp
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message_while_compiling(mistake):
    error = mistake.error()
    assert type(error) is DataRace
    assert str(error) == mistake.expected
