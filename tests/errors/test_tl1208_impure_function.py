"""TL1208: a function of arrays computes something else each time that it is captured."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import tile_api as tile
from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.equations.equations import Parameter
from tile_core.dtypes import dtype_of
from tile_core.errors import ImpureFunction

TEXT = """
    def f(x):
        y = x + 1
        {}
"""
HINT = "hint: make what changes from call to call an argument"


def refused(program, line, **names) -> str:
    f = program(TEXT.format(line), np=np, **names)["f"]
    with pytest.raises(ImpureFunction) as caught:
        captured(f, [Parameter("x", (4, 6), dtype_of("float32"))], {})
    return str(caught.value)


def text_of(line, what, number=3) -> str:
    return (
        f"[TL1208] f is captured twice, and {what}\n --> program.py:{number}:5\n  |\n"
        f"{number} |     {line}\n  |     {'^' * len(line)}\n{HINT}"
    )


def test_a_number_that_changes(program):
    line = "return y * next(numbers)"
    assert refused(program, line, numbers=itertools.count(2)) == text_of(
        line,
        "differs: (2.0 * (1.0 + x[x0, x1])) the first time, (3.0 * (1.0 + x[x0, x1])) the second",
    )


def test_a_global_that_grows(program):
    line = "return seen.append(0) or y * 3.0 ** len(seen)"
    assert refused(program, line, seen=[]) == text_of(
        line,
        "differs: (3.0 * (1.0 + x[x0, x1])) the first time, (9.0 * (1.0 + x[x0, x1])) the second",
    )


def test_something_else_of_the_same_elements(program):
    line = "return y if next(numbers) else y.sum(axis=0)"
    assert refused(program, line, numbers=iter([1, 0])) == text_of(
        line, "differs: nothing more the first time, Σ_x0 (1.0 + x[x0, x1]) the second"
    )


def test_failing_the_second_time(program):
    line = "return y * (1 / next(numbers))"
    assert refused(program, line, numbers=iter([1, 0])) == (
        "[TL1208] f is captured twice, and fails the second time: ZeroDivisionError: division by "
        "zero\n --> program.py:1:1\n  |\n1 | def f(x):\n  | ^^^^^^^^^\n" + HINT
    )


def test_what_changes_nothing_is_done_twice_and_printed_once(capsys):
    calls = []

    @tile.function(target="cpu")
    def noted(x):
        calls.append(x.shape)
        print("noted")
        return x * 2

    assert noted(np.ones(3)).tolist() == [2, 2, 2]
    noted(np.ones(3))
    assert len(calls) == 2
    assert capsys.readouterr().out == "noted\n"
