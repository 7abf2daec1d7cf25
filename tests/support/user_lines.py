"""Hand-built nodes with places in a pretended user's file, for tests of messages."""

from __future__ import annotations

import linecache
from typing import Any

import numpy as np
import pytest

from tile_core.errors import Span, TileError
from tile_core.interp import interpret
from tile_core.testing.build_ir import kernel, shared, tensor

FILE = "user.py"


def pretend(monkeypatch: pytest.MonkeyPatch, source: str) -> None:
    """Let `source` be the text of user.py."""
    lines = source.splitlines(keepends=True)
    monkeypatch.setitem(linecache.cache, FILE, (len(source), None, lines, FILE))


def at(node: Any, line: int, width: int = 4) -> Any:
    """Return `node`, which is written on `line` of user.py."""
    object.__setattr__(node, "span", Span(FILE, line, 0, width))
    return node


SOURCE = """\
s = T.alloc_shared((8,), "int32")
s[i + 1] = 0
A[i] = s[i]
A[0] = i
T.sync_threads()
A[i] = 1 // A[i]
"""


def failure(
    monkeypatch: pytest.MonkeyPatch, error: type[TileError], body: Any, threads: int | None = None
) -> str:
    """Return the message of interpreting `body`, whose lines are those of `SOURCE`."""
    pretend(monkeypatch, SOURCE)
    a = tensor("A", (8,), "int32")
    s = at(shared("s", (8,), "int32"), 1)
    made = lambda *indices: body(a, s, *indices)  # noqa: E731
    k = kernel([a], 1, made, threads=threads or 1, thread_indices=threads is not None)
    with pytest.raises(error) as caught:
        interpret(k, [np.zeros(8, np.int32)])
    assert isinstance(caught.value, TileError)
    return str(caught.value)
