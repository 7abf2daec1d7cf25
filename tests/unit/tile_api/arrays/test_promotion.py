"""Types of results: NumPy's, for every function of elements and every two types."""

from __future__ import annotations

import itertools
import warnings

import ml_dtypes
import numpy as np
import pytest

from tile_api.arrays.capturing.capture import captured
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.equations.equations import Parameter
from tile_api.arrays.equations.evaluate import evaluated
from tile_api.arrays.function import Function
from tile_core.dtypes import dtype_of
from tile_core.errors import UnknownArrayFunction

TYPES = ("bool", "int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64",
         "float16", "float32", "float64")  # fmt: skip
NAMES = sorted(name for name in UFUNCS if hasattr(np, name))
ONE = {name: np.ones(2, name) for name in TYPES}
NUMBERS = (1, 2.5, True, np.float64(2.5), np.int8(3))


def given(function, *arrays):
    """Return type and values that the captured function gives, None where it is refused."""
    names = "xy"[: len(arrays)]
    kinds = [
        Parameter(n, x.shape, dtype_of(str(x.dtype))) for n, x in zip(names, arrays, strict=True)
    ]
    source = f"lambda {', '.join(names)}: f({', '.join(names)})"
    try:
        made = captured(eval(source, {"f": function}), kinds, {})
    except UnknownArrayFunction:
        return None
    (found,) = evaluated(made, dict(zip(names, arrays, strict=True)))
    return found


def right(function, *arrays):
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            found = np.asarray(function(*arrays))
        except (TypeError, ValueError, OverflowError):
            return None
    return found if found.dtype.kind in "fiub" else None


def same(function, *arrays) -> bool:
    found, wanted = given(function, *arrays), right(function, *arrays)
    if found is None or wanted is None:
        return found is wanted
    close = np.allclose(found.astype("float64"), wanted.astype("float64"), rtol=2e-3)
    return found.dtype == wanted.dtype and close


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("name", NAMES)
def test_every_type(name):
    ufunc = getattr(np, name)
    cases = itertools.product(TYPES, repeat=ufunc.nin)
    assert [case for case in cases if not same(ufunc, *(ONE[d] for d in case))] == []


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", [n for n in NAMES if getattr(np, n).nin == 2])
def test_numbers_of_python_are_weak_and_those_of_numpy_are_not(name):
    ufunc = getattr(np, name)
    wrong = [
        (dtype, number)
        for dtype in TYPES
        for number in NUMBERS
        if not same(lambda x, n=number: ufunc(x, n), ONE[dtype])
        or not same(lambda x, n=number: ufunc(n, x), ONE[dtype])
    ]
    assert wrong == []


def test_bfloat16_stays_narrow_beside_itself_only():
    narrow = np.ones(2, ml_dtypes.bfloat16)
    for other, wanted in (("bfloat16", "bfloat16"), ("float32", "float32"), ("float64", "float64")):
        x = np.ones(2, dtype_of(other).numpy())
        assert given(np.add, narrow, x).dtype == dtype_of(wanted).numpy()


def test_indices_widen_as_in_numpy():
    def f(x):
        return x * np.arange(len(x))

    x = np.ones(5, "float32")
    assert Function(f).interpret(x).dtype == f(x).dtype == np.float64


SAMPLED = [("add", "int8", "uint8"), ("multiply", "uint16", "int32"), ("divide", "int8", "int8"),
           ("maximum", "float16", "int16"), ("add", "float32", "int64"), ("sqrt", "uint8"),
           ("add", "bool", "bool"), ("power", "int16", "int16"), ("exp", "bool"),
           ("subtract", "uint32", "uint32"), ("add", "uint64", "int64")]  # fmt: skip


@pytest.mark.parametrize("case", SAMPLED, ids="-".join)
def test_kernels_give_these_types(case):
    name, *types = case
    ufunc, arrays = getattr(np, name), [ONE[d] for d in types]
    names = "xy"[: len(arrays)]
    f = eval(f"lambda {', '.join(names)}: f({', '.join(names)})", {"f": ufunc})
    found = Function(f, target="interpret")(*arrays)
    wanted = right(ufunc, *arrays)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found.astype("float64"), wanted.astype("float64"), rtol=2e-3)


def test_explain_names_the_line_that_widens():
    def f(x):
        y = x + 1
        return y * np.arange(len(x))

    line = f.__code__.co_firstlineno + 2
    assert Function(f).explain(np.ones(5, "float32")).remarks == (
        f"line {line}: np.multiply of float32 and int64 is float64, as in NumPy; cast the integers "
        'to keep float32, as np.arange(n, dtype="float32") does',
    )
    assert "is float64" in str(Function(f).explain(np.ones(5, "float32")))
    assert Function(lambda x: x * 2).explain(np.ones(5, "float32")).remarks == ()
    assert Function(f).explain(np.ones(5)).remarks == ()
