"""What equations mean in NumPy, beside what kernels of them give."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.equations.equations import Parameter
from tile_api.arrays.equations.evaluate import evaluated, number_of
from tile_api.arrays.equations.recursion_limit import DEEPEST, deep_recursion
from tile_core.dtypes import dtype_of


def test_whole_powers_of_two_are_exact() -> None:
    x = np.arange(-30, 31, dtype="float32")
    made = captured(lambda x: np.exp2(x), [Parameter("x", x.shape, dtype_of("float32"))], {})
    (found,) = evaluated(made, {"x": x}, precise=True)
    np.testing.assert_array_equal(found, [2.0**n for n in range(-30, 31)])


def test_conditions_that_read_elements_hold_or_not_as_told() -> None:
    given = [Parameter("x", (4,), dtype_of("float32"))]
    (output,) = captured(lambda x: np.where(x > 3, 5.0, 7.0), given, {}).outputs
    assert [number_of(output.element, {}, side) for side in (1, 2)] == [5, 7]
    assert number_of(output.element, {}) == 7, "an element is 1"


def test_a_recurrence_that_another_reads_is_laid_out_once(monkeypatch: pytest.MonkeyPatch) -> None:
    x = np.arange(60, dtype="float64")
    made = captured(
        lambda x: np.cumsum(np.cumsum(x)), [Parameter("x", x.shape, dtype_of("float64"))], {}
    )
    stack, calls = np.stack, []
    monkeypatch.setattr(np, "stack", lambda *args: calls.append(args) or stack(*args))
    (found,) = evaluated(made, {"x": x}, precise=True)
    np.testing.assert_array_equal(found, np.cumsum(np.cumsum(x)))
    assert 0 < len(calls) <= 4


def test_the_limit_of_recursion_is_raised_until_the_last_block_ends():
    """It is one for all threads: who ends first must not take it from those who descend."""
    before = sys.getrecursionlimit()
    first, second = deep_recursion(), deep_recursion()
    first.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert sys.getrecursionlimit() == DEEPEST > before
    second.__exit__(None, None, None)
    assert sys.getrecursionlimit() == before
