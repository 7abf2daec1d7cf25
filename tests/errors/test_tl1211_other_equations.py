"""TL1211: a file of kernels that was printed for other equations."""

from __future__ import annotations

import re

import numpy as np

from support.edited_kernels import X, told, twice
from tile_api.arrays.function import Function
from tile_core.errors import OtherEquations

HINT = "hint: print the file anew, twice.source(...), and carry the edits over"


def head(text: str) -> tuple[str, str]:
    """Return the error's place, and the line of the digest."""
    line = re.search(r"^Equations [0-9a-f]{16}:$", text, re.MULTILINE).group()
    return f" --> kernels.py:3:1\n  |\n3 | {line}\n  | {'^' * len(line)}", line


FIRST = (
    "[TL1211] the kernels in kernels.py are for other equations than twice has for these arguments"
)


def test_other_shapes(monkeypatch, tmp_path):
    printed = twice.source(np.zeros((4, 5), "float32"))
    assert told(printed, OtherEquations, monkeypatch, tmp_path) == (
        f"{FIRST}\n{head(printed)[0]}\n"
        "note: in the file: x: float32[4, 5]\n"
        "note: in the file: out[x0, x1]: float32[4, 5] = (2.0 * x[x0, x1])\n"
        "note: now: x: float32[3, 5]\n"
        "note: now: out[x0, x1]: float32[3, 5] = (2.0 * x[x0, x1])\n" + HINT
    )


def test_another_function(monkeypatch, tmp_path):
    def thrice(x):
        return x * 3.0

    printed = Function(thrice).source(X)
    assert told(printed, OtherEquations, monkeypatch, tmp_path) == (
        f"{FIRST}\n{head(printed)[0]}\n"
        "note: in the file: out[x0, x1]: float32[3, 5] = (3.0 * x[x0, x1])\n"
        "note: now: out[x0, x1]: float32[3, 5] = (2.0 * x[x0, x1])\n" + HINT
    )


def test_an_edited_digest(monkeypatch, tmp_path):
    printed = twice.source(X)
    edited = printed.replace(head(printed)[1], "Equations 0123456789abcdef:")
    assert told(edited, OtherEquations, monkeypatch, tmp_path) == (
        f"{FIRST}\n{head(edited)[0]}\n"
        "note: the equations are the same, and the digest was edited\n" + HINT
    )
