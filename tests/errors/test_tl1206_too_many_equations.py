"""TL1206: a function of arrays that is written out by a loop of Python."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import refusal, told
from tile_api.arrays.capturing import capture, materialisation
from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.equations import places
from tile_api.arrays.equations.equations import Parameter
from tile_core.dtypes import dtype_of
from tile_core.errors import TooManyEquations

HINT = (
    "a loop of Python over elements or steps is written out: reduce over an axis, or let "
    "tile.scan go through the steps"
)


def message(line, what) -> str:
    return told("TL1206", line, f"f {what}: it looks unrolled", HINT)


def test_many_expressions(program, monkeypatch):
    monkeypatch.setattr(capture, "MOST_EXPRESSIONS", 5)
    monkeypatch.setattr(capture, "MOST_EQUATIONS", 5)
    line = "return np.exp(np.exp(np.exp(x)))"
    # two indices, an element, three functions of it
    assert refusal(program, line, TooManyEquations) == message(line, "comes to 6 expressions")


def test_expressions_within_expressions(program):
    # what a step carries is stored nowhere
    step = "lambda c, v: ([c := c * 1.5 + v for _ in range(3000)][-1], v)"
    line = f"import tile_api; return tile_api.scan({step}, x[0], x)[1]"
    told = message(line, "has expressions within expressions without end")
    assert refusal(program, line, TooManyEquations) == told


def test_no_end(program, monkeypatch):
    monkeypatch.setattr(places, "MOST_ARRAYS", 100)
    line = "while True: x = x + 1"
    told = message(line, "made 100 arrays, and there is no end to it")
    assert refusal(program, line, TooManyEquations) == told


def test_a_step_that_reads_again_and_again(program, monkeypatch):
    """It has as many elements as there are ways through it, and none of them may be stored."""
    monkeypatch.setattr(materialisation.Cut, "most", 1_000)
    monkeypatch.setattr(materialisation.Whole, "most", 1_000)
    step = "lambda c, v: ([c := c + np.roll(c, 1) * np.roll(c, 2) for _ in range(30)][-1], v)"
    line = f"import tile_api; return tile_api.scan({step}, x[0], x)[0]"
    told = message(line, "asks for more than 1000 elements of arrays")
    assert refusal(program, line, TooManyEquations) == told


def test_many_expressions_wherever_they_are_cut(program, monkeypatch):
    monkeypatch.setattr(capture, "MOST_IN_ALL", 1_000)
    line = "return [x := x * 1.5 + x[:1] for _ in range(300)][-1]"
    told = message(line, "comes to 1244 expressions")
    assert refusal(program, line, TooManyEquations) == told


def test_the_loop_is_named(program, monkeypatch):
    monkeypatch.setattr(capture, "MOST_IN_ALL", 500)
    text = """
        def f(x):
            y = x[0]
            for step in range(
                300
            ):
                for layer in range(1):
                    pass
                z = y * 0.5
                y = z + x[step % 4]
            return y
    """
    with pytest.raises(TooManyEquations) as caught:
        captured(program(text, np=np)["f"], [Parameter("x", (4, 6), dtype_of("float32"))], {})
    assert "3 |     for step in range(\n" in str(caught.value)
