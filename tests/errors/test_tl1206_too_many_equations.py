"""TL1206: a function of arrays that is written out by a loop of Python."""

from __future__ import annotations

from support.captured_arrays import refusal
from tile_api.arrays import capture
from tile_core.errors import TooManyEquations

HINT = "hint: a loop of Python over elements or steps is written out; reduce over an axis"


def test_many_expressions(program, monkeypatch):
    monkeypatch.setattr(capture, "MOST_EQUATIONS", 5)
    text = refusal(program, "return np.exp(np.exp(np.exp(x)))", TooManyEquations)
    # two indices, an element, three functions of it
    assert text == f"[TL1206] f comes to 6 expressions: it looks unrolled\n{HINT}"


def test_expressions_within_expressions(program):
    line = "return [x := x * 1.5 + x[:1] for _ in range(3000)][-1]"
    assert refusal(program, line, TooManyEquations) == (
        "[TL1206] f has expressions within expressions without end: it looks unrolled\n" + HINT
    )
