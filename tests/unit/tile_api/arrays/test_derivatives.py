"""The table of derivatives, against differences of what the functions give in 64 bits."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_api.arrays.equations.equations import Equations, Output, Parameter
from tile_api.arrays.equations.evaluate import BINARY, UNARY, evaluated
from tile_api.arrays.equations.expressions import COMPARISONS, const, load, make
from tile_api.arrays.gradients.derivatives import DERIVATIVES
from tile_core.dtypes import dtype_of

FLOAT = dtype_of("float64")
OPERATORS = sorted({*DERIVATIVES} - {"bits"})  # steps of these are no slopes
UNIT = {"asin", "acos", "atanh"}
ABOVE = {"sqrt", "log", "log2", "log10", "log1p", "reciprocal", "pow", "acosh"}


def value(x, arguments) -> float:
    parameters = tuple(Parameter(name, (1,), FLOAT) for name in arguments)
    output = Output("out", (1,), FLOAT, (const(0),), x)
    held = {name: np.array([number]) for name, number in arguments.items()}
    return evaluated(Equations("f", parameters, (output,), None), held)[0].item()


def test_all_functions_of_floats_have_one() -> None:
    whole = {"not", "and", "or", "floordiv", "mod"} | {
        x for x in BINARY if x.startswith(("bit", "sh"))
    }
    assert {*UNARY, *BINARY} - {*DERIVATIVES} == whole | COMPARISONS | {"bitnot"}


@pytest.mark.in_turn(4)
@settings(max_examples=25)
@pytest.mark.parametrize("op", OPERATORS)
@given(st.floats(0.05, 0.95), st.floats(-2.3, 2.3).filter(lambda x: abs(x) > 0.1))
def test_differences_agree(op: str, u: float, v: float) -> None:
    first = u if op in UNIT else 1.1 + u if op in ABOVE else 4 * u - 2.03
    count = 2 if op in BINARY else 1
    assert op in BINARY or op in UNARY
    arguments = dict(zip("xy"[:count], (first, v), strict=False))
    if count == 2 and abs(first - v) < 1e-3:
        return  # a tie
    operands = [load(name, (const(0),), FLOAT) for name in arguments]
    z = make(op, *operands)
    step = 1e-6
    for name, partial in zip(arguments, DERIVATIVES[op](z, *operands), strict=True):
        ends = [value(z, {**arguments, name: arguments[name] + moved}) for moved in (step, -step)]
        difference = (ends[0] - ends[1]) / (2 * step)
        if abs(difference) > 1e4:
            continue  # a step lies between
        found = 0.0 if partial is None else value(partial, arguments)
        assert found == pytest.approx(difference, rel=1e-5, abs=1e-6)


@pytest.mark.parametrize(
    ("op", "at", "derivatives"),
    [
        ("absolute", (0.0,), (0.0,)),
        ("maximum", (2.0, 2.0), (0.5, 0.5)),
        ("minimum", (2.0, 2.0), (0.5, 0.5)),
        ("sqrt", (0.0,), (np.inf,)),
        ("reciprocal", (0.0,), (-np.inf,)),
        ("pow", (0.0, 2.0), (0.0, 0.0)),
        ("pow", (2.0, 0.0), (0.0, np.log(2))),
        ("pow", (0.0, 0.0), (0.0, 0.0)),
        ("copysign", (-2.0, 3.0), (-1.0, 0.0)),
    ],
)
def test_conventions(op: str, at, derivatives) -> None:
    arguments = dict(zip("xy", at, strict=False))
    operands = [load(name, (const(0),), FLOAT) for name in arguments]
    made = DERIVATIVES[op](make(op, *operands), *operands)
    found = tuple(0.0 if x is None else value(x, arguments) for x in made)
    assert found == pytest.approx(derivatives)
