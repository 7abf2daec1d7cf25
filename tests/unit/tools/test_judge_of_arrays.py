"""What the fuzzer takes for right in results of functions of whole arrays, and what not."""

from __future__ import annotations

import numpy as np

from fuzz.arrays.fillings import arguments
from fuzz.arrays.program import Argument, Program, Step
from fuzz.arrays.reference import Right, right


def judged(filling: str, *steps: Step) -> Right:
    """Return what is right for a function of one array of 8 x 8 float32."""
    program = Program(1, (Argument((8, 8), "float32", filling),), steps, (len(steps),))
    return right(program, arguments(program))[0]


def test_a_sum_that_overflows_on_its_way_is_anything() -> None:
    steps = Step("{0}.T @ {0}", (0,), "sum"), Step("np.maximum({0}, 1)", (1,))
    huge, normal = judged("huge", *steps), judged("normal", *steps)
    for told, is_right in ((huge, True), (normal, False)):
        found = np.where(told.wide == 1, np.nan, np.minimum(told.wide, 3e38)).astype("float32")
        assert (told.wrong(found) is None) == is_right


def test_a_sum_of_zeros_has_any_sign() -> None:
    steps = Step("np.cumsum({0}, axis=-1)", (0,), "sum"), Step("np.arctan2({0}, {0})", (1,))
    told = judged("zeros", *steps)
    assert told.wrong(np.zeros((8, 8), "float32")) is None
    told = judged("whole", Step("np.cumsum({0} * 0 + 1, axis=-1)", (0,), "sum"))
    assert told.wrong(np.zeros((8, 8), "float32")) is not None


def test_of_two_equal_products_one_is_rounded() -> None:
    told = judged("normal", Step("{0} ** 2", (0,)), Step("{0} - {1}", (1, 1)))
    x = arguments(Program(1, (Argument((8, 8), "float32", "normal"),), (), (0,)))[0]
    rest = x.astype("float64") ** 2 - (x * x).astype("float64")
    assert told.wrong(rest.astype("float32")) is None
    assert told.wrong(x * x * np.float32(1e-5)) is not None
