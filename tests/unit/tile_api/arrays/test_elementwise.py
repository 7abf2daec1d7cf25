"""Functions of elements against NumPy: values, shapes, and types after promotion."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import assert_agrees, filled, outputs
from tile_api.arrays.capturing import elementwise, numpy_names
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.function import Function
from tile_core.dtypes import dtype_of

try:
    from scipy.special import erf
except ImportError:  # it is SciPy's alone
    erf = None

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float16", "float32", "float64"]
SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan, 0.5], "float32")
INTEGERS = {"bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift"}
EXACT = {
    "add", "subtract", "multiply", "negative", "positive", "square", "floor_divide", "remainder",
    "fmod", "less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "logical_and",
    "logical_or", "logical_xor", "logical_not", "maximum", "minimum", "fmax", "fmin", "absolute",
    "fabs", "sign", "signbit", "copysign", "heaviside", "floor", "ceil", "trunc", "rint",
    "isfinite", "isinf", "isnan", *INTEGERS,
}  # fmt: skip
"""Rounded nowhere, if operands are small whole numbers."""


def taken(name):
    return erf if name == "erf" else getattr(np, name)


def accepted(ufunc, dtypes):
    try:
        found = ufunc.resolve_dtypes((*map(np.dtype, dtypes), *[None] * ufunc.nout))
    except TypeError:
        return False
    return all(dtype.kind in "biuf" for dtype in found)


KNOWN = [name for name in UFUNCS if name != "erf" or erf is not None]
UNARY = [name for name in KNOWN if taken(name).nin == 1]
BINARY = [name for name in KNOWN if taken(name).nin == 2]


def operands(name, one, other, shapes=((3, 1, 5), (7, 1))):
    x = filled(shapes[0], one, 1)
    y = filled(shapes[1], other, 2)
    if name in ("left_shift", "right_shift"):
        y = abs(y)
    if name in ("power", "float_power"):
        return abs(x), abs(y)
    return x, y


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", UNARY)
def test_one_operand_of_each_type(name):
    ufunc = taken(name)
    tried = [dtype for dtype in DTYPES if accepted(ufunc, [dtype])]
    assert tried
    for dtype in tried:
        x = filled((2, 7), dtype, 3)
        if name == "reciprocal":
            x[x == 0] = 1  # of an integer 0 there is none
        assert_agrees(lambda x: ufunc(x), x, exact=name in EXACT)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", BINARY)
def test_two_operands_of_each_pair_of_types(name):
    ufunc = taken(name)
    tried = [(a, b) for a in DTYPES for b in DTYPES if accepted(ufunc, [a, b])]
    assert tried
    for one, other in tried:
        x, y = operands(name, one, other)
        assert_agrees(lambda x, y: ufunc(x, y), x, y, exact=name in EXACT)


@pytest.mark.parametrize("name", UNARY)
def test_one_operand_of_special_values(name):
    ufunc = taken(name)
    if accepted(ufunc, ["float32"]):
        assert_agrees(lambda x: ufunc(x), SPECIAL)


@pytest.mark.parametrize("name", BINARY)
def test_two_operands_of_special_values(name):
    ufunc = taken(name)
    if accepted(ufunc, ["float32", "float32"]) and name != "float_power":
        assert_agrees(lambda x, y: ufunc(x, y), SPECIAL[:, None], SPECIAL)


@pytest.mark.parametrize("name", ["add", "multiply", "maximum", "exp", "tanh", "sqrt", "less"])
def test_bfloat16(name):
    ufunc, x = taken(name), abs(filled((3, 5), "bfloat16", 4))
    if ufunc.nin == 1:
        assert_agrees(lambda x: ufunc(x), x)
    else:
        assert_agrees(lambda x, y: ufunc(x, y), x, x[::-1])


def test_bfloat16_stays_beside_numbers_of_python():
    (found,) = outputs(lambda x: (x + 1.5) * 2, filled((5,), "bfloat16"))
    assert found.dtype == np.dtype("bfloat16")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(
    "function",
    [
        lambda x: x + 2, lambda x: 3 - x, lambda x: x * 2.0, lambda x: 2 * x, lambda x: x / 2,
        lambda x: 6 / x, lambda x: x // 2, lambda x: x % 3, lambda x: 7 // x, lambda x: 7 % x,
        lambda x: np.power(x, 2), lambda x: x**3, lambda x: abs(x) ** 0.5, lambda x: 2.0**x,
        lambda x: x < 2,
        lambda x: 2 <= x, lambda x: x == 1, lambda x: x != 1, lambda x: x > 100.5,
        lambda x: abs(x), lambda x: x + True, lambda x: x + np.float32(1), lambda x: x * np.int8(2),
        lambda x: x + np.array(2.0), lambda x: divmod(x, 2), lambda x: x + np.arange(5),
        lambda x: x + np.array([[1], [2], [3]]), lambda x: x * np.full(5, 2),
    ],
)  # fmt: skip
def test_operators_with_numbers(function, dtype):
    assert_agrees(function, filled((3, 5), dtype, 5))


@pytest.mark.parametrize("dtype", DTYPES[1:])
def test_operators_that_truth_values_lack(dtype):
    assert_agrees(lambda x: (x**2, +x), filled((3, 5), dtype, 5), exact=True)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint8", "int32", "int64"])
def test_operators_of_bits(dtype):
    x, y = filled((3, 5), dtype, 6), filled((5,), dtype, 7)
    assert_agrees(lambda x, y: (x & y, x | y, x ^ y, ~x), x, y, exact=True)


def test_operators_that_are_refused_by_numpy_are_refused():
    x = filled((3,), "bool")
    for function in (lambda x: -x, lambda x: x - x):
        with pytest.raises(TypeError):
            function(x)
        with pytest.raises(TypeError, match="TL1203"):
            outputs(function, x)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_quotients_that_are_whole_are_not_rounded_down(dtype):
    y = np.arange(1, 200).astype(dtype)
    assert_agrees(lambda x, y: (x // y, x % y, x / y), y * 3, y, exact=True)


def test_comparisons_with_numbers_out_of_range():
    x = np.array([0, 1, 255], "uint8")
    assert_agrees(lambda x: (x < -1, x < 300, x == 256), x, exact=True)


@pytest.mark.parametrize("shape", [(0,), (0, 3), (1,), (), (7, 1, 1), (13,)])
def test_shapes(shape):
    x = filled(shape, "float32", 8)
    assert_agrees(lambda x, y: x + y, x, np.float32([[2.0]]), exact=True)


FUNCTIONS = {
    "where": [lambda x, y: np.where(x > y, x, y), lambda x, y: np.where(x, 1, 0),
              lambda x, y: np.where(x > 0, x, -np.inf), lambda x, y: np.where(x == y, 2.0, y)],
    "clip": [lambda x, y: np.clip(x, 0, 3), lambda x, y: x.clip(1, None),
             lambda x, y: np.clip(x, None, y), lambda x, y: np.clip(x, min=1, max=2),
             lambda x, y: np.clip(np.abs(x).astype("uint8"), -4, 300)],
    "astype": [lambda x, y: x.astype("float32"), lambda x, y: np.astype(y, np.int8),
               lambda x, y: x.astype(bool), lambda x, y: x.astype(float),
               lambda x, y: y.astype("f2"), lambda x, y: x.astype("int"),
               lambda x, y: x.astype(y.dtype)],
    "round": [lambda x, y: np.round(x / 4), lambda x, y: (x / 8).round(1),
              lambda x, y: np.round(y * 7, -1), lambda x, y: x.round(3),
              lambda x, y: (y > 1).round(), lambda x, y: np.round(x * 30, -2)],
    "around": [lambda x, y: np.around(x / 4, 2)],
    "fix": [lambda x, y: np.fix(x / 3)],
    "nan_to_num": [lambda x, y: np.nan_to_num(x), lambda x, y: np.nan_to_num(x / y, nan=7.0),
                   lambda x, y: np.nan_to_num(x / y, posinf=3.0, neginf=-3.0)],
    "isclose": [lambda x, y: np.isclose(x, y), lambda x, y: np.isclose(x, y + 0.5, atol=0.6)],
    "allclose": [lambda x, y: np.allclose(x, y), lambda x, y: np.allclose(x, x)],
    "copy": [lambda x, y: np.copy(x), lambda x, y: y.copy()],
}  # fmt: skip


@pytest.mark.parametrize("dtypes", [("int8", "int8"), ("float32", "int32"), ("float16", "float16")])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_of_elements(name, dtypes):
    x, y = filled((3, 5), dtypes[0], 9), filled((5,), dtypes[1], 10)
    for function in FUNCTIONS[name]:
        assert_agrees(function, x, y)


def test_not_a_number_becomes_one():
    assert_agrees(lambda x: np.nan_to_num(x), SPECIAL, exact=True)
    assert_agrees(lambda x: np.isclose(x, x, equal_nan=True), SPECIAL)
    assert_agrees(lambda x: np.isclose(x > 0, x > 1), SPECIAL)


@pytest.mark.parametrize("divisor", [3.0, -3.0])
def test_a_remainder_of_zero_has_the_sign_of_the_divisor(divisor):
    x = np.array([-6.0, -3.0, -0.0, 0.0, 3.0], "float32")
    for function in (lambda x, y: np.signbit(x % divisor), lambda x, y: np.signbit(x % y)):
        assert_agrees(function, x, np.full(5, divisor, "float32"))


def test_sizes_meet_truth_values():
    assert_agrees(lambda x: x.shape[0] * (x > 0) + np.shape(x)[0], SPECIAL)


def test_a_constant_is_rounded_to_its_type():
    assert_agrees(lambda x: x + np.full(3, 0.1, "float16").astype("float32"), np.zeros(3, "f4"))
    assert_agrees(lambda x: x + np.float32(0.1).astype("float64"), np.zeros(3), exact=True)
    assert_agrees(lambda x: x + np.full(3, 0.1, "float32").astype("float64"), np.zeros(3))


def test_factors_beyond_a_float_are_not_joined():
    assert_agrees(lambda x: x * 1e-30 * 1e-30, np.float32([1e30, 1e-5]))


def test_every_function_of_elements_is_met():
    met = {
        name for name, f in numpy_names.FUNCTIONS.items() if f.__module__ == elementwise.__name__
    }
    assert met <= set(FUNCTIONS)
    assert set(UNARY) | set(BINARY) | {"erf"} == set(UFUNCS)


def wrapped(x, y):
    return (x + y).astype("float32"), x * y, (x - y).astype("int32")


def wrapped_and_read(x, y):
    return (*wrapped(x, y), x - y < 3, (x + y) // 3, abs(x - y), (-x).astype("int32"),
            (x - 1).sum(axis=-1))  # fmt: skip


@pytest.mark.parametrize("dtype", ["int4", "uint4", "int8", "uint8", "int16"])
def test_short_integers_wrap_around_before_they_are_widened(dtype):
    kind = dtype_of(dtype)
    low = -(1 << kind.bits - 1) * (not dtype.startswith("u"))
    numbers = np.random.default_rng(0).integers(low, low + (1 << kind.bits), (2, 5, 6))
    x, y = numbers.astype(kind.numpy())
    function = wrapped if kind.bits == 4 else wrapped_and_read
    with np.errstate(all="ignore"):
        wanted = function(x, y)
    for got, right in zip(Function(function, target="cpu")(x, y), wanted, strict=True):
        assert (got.shape, got.dtype) == (right.shape, right.dtype)
        np.testing.assert_array_equal(got.astype("float64"), right.astype("float64"))


COUNTED = {
    "shifted": lambda x: ((x > 0) * 3) << 40,
    "multiplied": lambda x: ((x > 0) * 100000) * ((x < 2) * 100000),
    "chosen": lambda x: np.where(x > 0, 100000, (x < 0) * 70000) * np.where(x > 1, 100000, 3),
    "added": lambda x: ((x > 0) * 2000000000 + (x < 2) * 2000000000) * 0.5,
    "compared": lambda x: x > ((x > 0) * 3 << 40),
    "summed": lambda x: ((x > 0) * 2000000000).sum(),
    "running": lambda x: np.cumsum((x > 0) * 2000000000),
}


PLACED = {
    "joined": lambda x: (x.argmax(0) | 1) << 31,
    "of a product": lambda x: ((x.argmax(0) ^ 3) * -1) << 33,
    "rest": lambda x: (x.argmax(0) % (x.argmin(1)[:1] + 1)) << 40,
    "turned": lambda x: ~x.argmax(0) << 33,
    "moved": lambda x: (x.argmax(0) >> 1 | 3) * 2147483647,
    "least": lambda x: np.maximum(x.argmax(0), 3) * 5000000000,
    "chosen": lambda x: np.where(x[0] > 1, x.argmax(0), 5000000000) | 1,
    "added": lambda x: (x.argmax(0) | 1) + 2147483647 >> 3,
}


@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize("name", PLACED)
def test_positions_are_counted_in_64_bits(name, target):
    x = np.array([[3, 1, 2], [5, 2, 7]], "float32")
    function = PLACED[name]
    np.testing.assert_array_equal(Function(function, target=target)(x), function(x))


@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize("name", COUNTED)
def test_truth_values_are_counted_in_64_bits(name, target):
    x = np.array([0.5, 1.5, -2.0, 1.0, 3.0], "float32")
    function = COUNTED[name]
    np.testing.assert_array_equal(Function(function, target=target)(x), function(x))
