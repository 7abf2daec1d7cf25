"""Functions of whole arrays, captured and evaluated, beside NumPy running the same function."""

from __future__ import annotations

import inspect
import pickle
import warnings
from typing import Any

import ml_dtypes  # NumPy knows bfloat16 by name once it is imported
import numpy as np
import pytest

from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.equations.equations import Parameter
from tile_api.arrays.equations.evaluate import evaluated
from tile_core.dtypes import dtype_of

ROUNDING = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-6, "float64": 1e-14}
"""Relative errors of a few roundings."""


def outputs(function, *arrays) -> list[Any]:
    """Return what the captured function gives for arrays."""
    names = list(inspect.signature(function).parameters)
    parameters = [
        Parameter(name, x.shape, dtype_of(str(x.dtype)))
        for name, x in zip(names, arrays, strict=True)
    ]
    equations = captured(function, parameters, {})
    return evaluated(equations, dict(zip(names, arrays, strict=True)))


def assert_agrees(function, *arrays, exact=False) -> None:
    """Compare values, shapes and types with NumPy's; values in full where they are `exact`."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = function(*arrays)
    wanted = list(wanted) if isinstance(wanted, (tuple, list)) else [wanted]
    found = outputs(function, *arrays)
    assert len(found) == len(wanted)
    for mine, numpys in zip(found, map(np.asarray, wanted), strict=True):
        assert mine.shape == numpys.shape
        assert mine.dtype == numpys.dtype
        error = 0.0 if exact else ROUNDING.get(str(mine.dtype), 0.0)
        wide = [x.astype("float64") if x.dtype == ml_dtypes.bfloat16 else x for x in (mine, numpys)]
        np.testing.assert_allclose(*wide, rtol=error, atol=error, equal_nan=True)


def filled(shape, dtype, seed=0, low=-4, high=5) -> Any:
    """Return small whole numbers, which every type holds and adds without rounding."""
    kind = np.dtype(dtype)
    random = np.random.default_rng(seed)
    if kind.kind == "u":
        low = 0
    if kind.kind == "b":
        low, high = 0, 2
    return random.integers(low, high, shape).astype(kind)


X, Y = "(x0=4, x1=6)", "(y0=6, y1=4)"
PROGRAM = """
    def f(x, y):
        {}
"""


def refusal(program, line, error) -> str:
    """Return the text of the error that a line of a function of two matrices gets."""
    names = program(PROGRAM.format(line), np=np)
    shapes = {"x": (4, 6), "y": (6, 4)}
    parameters = [Parameter(name, shape, dtype_of("float32")) for name, shape in shapes.items()]
    with pytest.raises(error) as caught:
        captured(names["f"], parameters, {})
    text = str(caught.value)
    assert str(pickle.loads(pickle.dumps(caught.value))) == text
    return text


def told(code, line, message, hint=None, of="") -> str:
    """Return the text that the user is to read: what is wrong, the line, carets, a way out.

    Parameters
    ----------
    of
        Parameters whose shapes and places are told between.
    """
    parts = [f"[{code}] {message}", " --> program.py:2:5", "  |", f"2 |     {line}"]
    parts.append(f"  |     {'^' * len(line)}")
    for name in of:
        column = " xy".index(name) * 3 + 3
        parts.append(f"note: {name} has shape {dict(x=X, y=Y)[name]}")
        parts += [f" --> program.py:1:{column + 1}", "  |", "1 | def f(x, y):"]
        parts.append(f"  | {' ' * column}^")
    return "\n".join([*parts, f"hint: {hint}"] if hint else parts)


def written(line: str):
    """Return a function of a line that writes into `u`."""
    names = {"np": np}
    body = line.replace("; ", "\n    ")
    exec(f"def f(x, v, k, y):\n    u = x.copy()\n    {body}\n    return u", names)
    return names["f"]
