"""Fractions, exponents of two and common divisors, of hostile numbers, against NumPy and torch."""

from __future__ import annotations

import runpy
import warnings

import ml_dtypes
import numpy as np
import pytest
import torch

import tile_api as tile
from support.captured_arrays import outputs
from tile_api.arrays.capturing import floating_and_rational, torch_floating_and_rational
from tile_core.errors import TileError

TARGETS = ("interpret", "cpu")
FLOATS = ("float16", "bfloat16", "float32", "float64")
INTEGERS = ("int8", "uint8", "int16", "int32", "uint32", "int64", "uint64")


def hostile(dtype: str) -> np.ndarray:
    """Return ends of a type, and numbers around powers of two."""
    kind = np.dtype(dtype)
    if kind.kind in "iu":
        least, most = np.iinfo(kind).min, np.iinfo(kind).max
        given = [least, least + 1, least // 2, 0, 1, 2, 3, 6, 12, 89, 55, 96, most // 2, most - 1]
        return np.array([*given, most], kind)
    limits = ml_dtypes.finfo(kind)
    least, most = float(limits.smallest_subnormal), float(limits.max)
    powers = [2.0**k * s for k in (-14, -3, -1, 0, 1, 7, 14) for s in (1, -1.0009765625)]
    numbers = [0.0, -0.0, np.inf, -np.inf, np.nan, least, -5 * least, most, -most, 2.5, -7.75, 1e4]
    small = [float(limits.smallest_normal) * s for s in (1, 0.5, -3)]
    return np.array([*numbers, *small, *powers], kind)


def assert_same(found: object, wanted: object) -> None:
    """Compare types and bits; any NaN equals any other."""
    several = [x if isinstance(x, (tuple, list)) else (x,) for x in (found, wanted)]
    for mine, numpys in zip(*several, strict=True):
        mine, numpys = np.asarray(mine), np.asarray(numpys)
        assert (mine.dtype, mine.shape) == (numpys.dtype, numpys.shape)
        if mine.dtype.kind in "fV":
            mine, numpys = mine.astype("float64"), numpys.astype("float64")
            np.testing.assert_array_equal(np.signbit(mine) & (mine == mine),
                                          np.signbit(numpys) & (numpys == numpys))  # fmt: skip
        np.testing.assert_array_equal(mine, numpys)


def assert_everywhere(function, *arrays, wanted=None) -> None:
    """Compare what equations mean and what kernels give with NumPy."""
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wanted = function(*arrays) if wanted is None else wanted
    assert_same(outputs(function, *arrays), list(wanted) if isinstance(wanted, tuple) else [wanted])
    for target in TARGETS:
        assert_same(tile.function(function, target=target)(*arrays), wanted)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int64"])
def test_fractions(dtype):
    x = hostile(dtype)
    assert_everywhere(lambda x: np.modf(x), x)
    assert_everywhere(lambda x: np.modf(x), x[:0])
    assert_everywhere(lambda x: np.modf(x), x[3])


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int8", "uint16", "int64"])
def test_exponents_of_two(dtype):
    x = hostile(dtype)
    assert_everywhere(lambda x: np.frexp(x), x)
    assert_everywhere(lambda x: np.frexp(x), x[:0])
    assert_everywhere(lambda x: np.frexp(x), x[-1])
    with np.errstate(all="ignore"):  # they lie in the whole range of numbers
        wide = np.ldexp(np.linspace(-2, 2, 41), np.arange(-1100, 1100, 50)[:, None])
    if dtype == "float64":
        assert_everywhere(lambda x: np.frexp(x), wide)


POWERS = [0, 1, -1, 5, -14, 24, 127, -127, -149, 200, -300, 1023, -1074, 2000, -2100, 1 << 30]


@pytest.mark.parametrize("power", ["int8", "int32", "int64"])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int16"])
def test_times_powers_of_two(dtype, power):
    powers = np.array(POWERS).astype(power)[:, None]
    assert_everywhere(lambda x, n: np.ldexp(x, n), hostile(dtype), powers)


def test_powers_that_are_numbers_and_many():
    x = hostile("float32")
    assert_everywhere(lambda x: (np.ldexp(x, 3), np.ldexp(x, -140), np.ldexp(1.5, 9)), x)
    assert_everywhere(lambda n: np.ldexp(1.5, n), np.array([3, -3, 1 << 40, -(1 << 62)]))
    random = np.random.default_rng(1)
    mantissas = np.float32(random.uniform(-2, 2, 512))
    for low, high in ((-160, 160), (-280, -100)):  # rounded once, where the least numbers are
        n = random.integers(low, high, 512).astype("int32")
        start = np.ldexp(mantissas, random.integers(-30, 120, 512))
        assert_everywhere(lambda x, n: np.ldexp(x, n), start, n)
    assert_everywhere(lambda x: np.ldexp(*np.frexp(x)), x)


@pytest.mark.parametrize("dtype", INTEGERS)
def test_common_divisors(dtype):
    x = hostile(dtype)
    for function in (lambda x, y: np.gcd(x, y), lambda x, y: np.lcm(x, y)):
        assert_everywhere(function, x, x[:, None])
        assert_everywhere(function, x[:0], x[:1])
        assert_everywhere(function, x[0], x[-1])


def test_common_divisors_of_several_types():
    x, y = hostile("int8"), hostile("uint8")
    assert_everywhere(lambda x, y: (np.gcd(x, y), np.gcd(x, 12), np.lcm(6, y)), x, y)
    assert_everywhere(lambda x, y: np.gcd.outer(x, y), x, y)
    numbers = np.array([3, 2], "int64")
    while numbers[0] < 1 << 61:  # of Fibonacci: no others need as many divisions
        numbers = np.array([numbers.sum(), numbers[0]])
    assert_everywhere(lambda x: np.gcd(x[1:], x[:1]), numbers)
    assert_everywhere(lambda x: np.gcd(x[:1], x[1:]), numbers)


@pytest.mark.parametrize(
    ("function", "told"),
    [
        (lambda x: np.gcd(x, 2), "np.gcd takes no elements of float32"),
        (lambda x: np.ldexp(x, x), "np.ldexp takes no elements of float32, float32"),
        (lambda x: np.frexp(x, out=(x, x)), "arrays are values"),
        (lambda x: torch.gcd(x, x), "torch.gcd of float32"),
        (lambda x: torch.frac(x > 1), "torch.frac of bool"),
    ],
)
def test_refused(function, told):
    with pytest.raises(TileError) as error:
        tile.function(function)(np.ones(3, "float32"))
    assert told in str(error.value)


def assert_as_torch(function, *arrays) -> None:
    tensors = [torch.from_numpy(x) for x in arrays]
    wanted = function(*tensors)
    several = tuple(wanted) if isinstance(wanted, tuple) else (wanted,)
    found = outputs(function, *arrays)
    for mine, torchs in zip(found, several, strict=True):
        assert f"torch.{mine.dtype}" == str(torchs.dtype)
        np.testing.assert_array_equal(mine, torchs.numpy())


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_as_torch(dtype):
    x = hostile(dtype)
    assert_as_torch(lambda x: torch.frac(x), x)
    assert_as_torch(lambda x: torch.frexp(x), x)
    n = np.arange(-9, len(x) - 9, dtype="int32") * 4
    assert_as_torch(lambda x, n: torch.ldexp(x, n), x, n)
    whole = hostile("int32")[: len(x)]
    assert_as_torch(lambda x, n: torch.ldexp(x, n), whole, n[: len(whole)])


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64"])
def test_divisors_as_torch(dtype):
    x = np.delete(hostile(dtype), 0)  # of the least number torch's divisor has another sign
    assert_as_torch(lambda x, y: torch.gcd(x, y), x, x[:, None])
    assert_as_torch(lambda x, y: torch.lcm(x, y), x[:9], x[:9, None])


@pytest.mark.parametrize(
    ("function", "torchs"),
    [
        (lambda x: np.modf(x)[0], torch.frac),
        (lambda x: np.frexp(x)[0], lambda x: torch.frexp(x)[0]),
        (lambda x: np.ldexp(x, np.array([3, -2, 0, 120, 7])), None),
    ],
)
def test_gradients(function, torchs):
    x = np.float32([2.5, -3.0, 0.0, 1e-12, 3e30])
    given = torch.from_numpy(x).requires_grad_()
    powers = torch.tensor([3.0, -2, 0, 120, 7])  # of integers it gives 0 where they are negative
    (torchs(given) if torchs else torch.ldexp(given, powers)).sum().backward()
    for target in TARGETS:
        (found,) = (
            tile.function(lambda x: (function(x).sum(),), target=target).vjp(x)[1](np.float32(1)),
        )
        np.testing.assert_array_equal(np.asarray(found), given.grad.numpy())


def test_as_a_program(tmp_path):
    path = tmp_path / "program.py"
    path.write_text(tile.function(lambda x: np.frexp(x), target="cpu").source(hostile("float32")))
    runpy.run_path(str(path))["main"]()  # which compares itself with NumPy


def test_every_function_is_met():
    public = {
        name for name, f in vars(floating_and_rational).items()
        if getattr(f, "__module__", "") == floating_and_rational.__name__
        and not name.startswith("_")
    }  # fmt: skip
    assert public >= {"divmod", "modf", "frexp", "ldexp", "gcd", "lcm"}
    assert torch_floating_and_rational.PARTS.keys() == {"frac", "frexp", "ldexp", "gcd", "lcm"}
