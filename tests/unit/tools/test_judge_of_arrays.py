"""What the fuzzer takes for right in results of functions of whole arrays, and what not."""

from __future__ import annotations

import numpy as np

from fuzz.arrays import gradients
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


def test_an_operand_of_a_product_is_rounded_to_its_type_and_no_further() -> None:
    steps = Step("np.hypot({0}, {0})", (0,)), Step("np.inner({0}, {1})", (1, 1), "sum")
    wider = Step("np.sum({0}, axis=-1, dtype='float64')", (2,), "sum")
    program = Program(1, (Argument((8, 8), "bfloat16", "normal"),), (*steps, wider), (3,))
    (x,) = arguments(program)
    (told,) = right(program, [x])
    y = np.hypot(*[x.astype("float64")] * 2)
    for found, is_right in ((y.astype(x.dtype).astype("float64"), True), (y * 1.01, False)):
        assert (told.wrong((found @ found.T).sum(axis=-1)) is None) == is_right


def test_a_negative_sum_that_is_flushed_is_a_negative_zero() -> None:
    steps = (
        Step("np.sum({0}, axis=-1, keepdims=True)", (0,), "sum"),
        Step("{0} / {1}", (0, 1)),
        Step("np.minimum({0}, -1)", (2,)),
    )
    program = Program(1, (Argument((1, 2), "float32", "subnormal"),), steps, (3,))
    (told,) = right(program, [np.array([[1e-40, -3e-40]], "float32")])
    for found, is_right in (((-1, -1), True), ((-np.inf, -1), True), ((-1, -np.inf), False)):
        assert (told.wrong(np.array([found], "float32")) is None) == is_right


def test_distances_of_large_numbers_are_rounded() -> None:
    step = Step("{0}.std(axis=-1, keepdims=True)", (0,), "spread")
    program = Program(1, (Argument((1, 1), "float32", "huge"),), (step,), (1,))
    (told,) = right(program, [np.full((1, 1), 1e29, "float32")])
    for found, is_right in ((0, True), (1e22, True), (1e24, False)):
        assert (told.wrong(np.full((1, 1), found, "float32")) is None) == is_right


def test_whole_numbers_that_jump_within_a_step_have_no_differences() -> None:
    class Flat:
        """A function whose gradients are 0."""

        def vjp(self, x):
            return x, np.zeros_like

    for line, is_right in (("{0} * 1e30 // 3.0", True), ("{0} // 3.0", True), ("{0} * 2", False)):
        program = Program(1, (Argument((4,), "float64", "normal"),), (Step(line, (0,)),), (1,))
        assert (gradients.wrong(program, Flat()) is None) == is_right
