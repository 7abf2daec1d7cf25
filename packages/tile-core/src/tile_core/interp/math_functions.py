"""Mathematical functions: in float64, to be rounded once to the result's type."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np

from tile_core.dtypes import DType
from tile_core.interp.values import Array, settle

_erf = np.vectorize(math.erf, otypes=[np.float64])

_OF_NUMPY = """
    exp exp2 expm1 log log2 log10 log1p sqrt tanh sin cos tan sinh cosh floor ceil trunc fmod
    hypot copysign
"""
"""Functions that NumPy has under the same name."""

FLOAT64: dict[str, Callable[..., Array]] = {
    **{name: getattr(np, name) for name in _OF_NUMPY.split()},
    "exp10": lambda x: np.power(10.0, x),
    "rsqrt": lambda x: 1.0 / np.sqrt(x),
    "sigmoid": lambda x: 1.0 / (1.0 + np.exp(-x)),
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "erf": lambda x: _erf(x),
    "round": np.rint,
    "nearbyint": np.rint,
    "__exp": np.exp,
    "__exp10": lambda x: np.power(10.0, x),
    "__log": np.log,
    "__log2": np.log2,
    "__log10": np.log10,
    "__tan": np.tan,
    "__cos": np.cos,
    "__sin": np.sin,
    "fast_rcp": lambda x: 1.0 / x,
    "pow": np.power,
    "atan2": np.arctan2,
}
"""By intrinsic: the function of float64 values whose result is rounded once."""


def fma(a: Array, b: Array, c: Array, dtype: DType) -> Array:
    """Return ``a * b + c`` rounded once."""
    if dtype.base == "float64":
        return _exactly(lambda x, y, z: x * y + z, "rn", dtype, a, b, c)
    product = a.astype(np.float64) * b.astype(np.float64)  # exact: 24 + 24 bits
    addend = c.astype(np.float64)
    total = product + addend
    virtual = total - product
    error = (product - (total - virtual)) + (addend - virtual)
    even = (np.ascontiguousarray(total).view(np.uint64) & np.uint64(1)) == 0
    inexact = np.isfinite(total) & (error != 0) & np.isfinite(error) & even
    odd = np.nextafter(total, np.where(error > 0, np.inf, -np.inf))
    return settle(np.where(inexact, odd, total), dtype)


def rounded(function: str, args: list[Array], dtype: DType) -> Array:
    """Return a correctly rounded operation, ``ieee_<operation>_<mode>``."""
    _, operation, mode = function.split("_")
    if operation == "fsqrt":
        return _by_root(args[0], mode, dtype, lambda x: Fraction(x), False)
    if operation == "frsqrt":
        return _by_root(args[0], mode, dtype, lambda x: 1 / Fraction(x), True)
    return _exactly(_RATIONAL[operation], mode, dtype, *args)


_RATIONAL: dict[str, Callable[..., Fraction]] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "fmaf": lambda a, b, c: a * b + c,
    "frcp": lambda a: 1 / a,
    "fdiv": lambda a, b: a / b,
}


def _exactly(rational: Callable[..., Fraction], mode: str, dtype: DType, *args: Array) -> Array:
    """Evaluate in rational numbers and round; special values go through float64."""
    shape = np.broadcast_shapes(*(a.shape for a in args))
    columns = [np.broadcast_to(a, shape).astype(np.float64).ravel() for a in args]
    result = np.empty(math.prod(shape), np.float64)
    for k, row in enumerate(zip(*columns, strict=True)):
        result[k] = _one(rational, mode, dtype, [float(x) for x in row])
    return settle(result.reshape(shape), dtype)


def _one(rational: Callable[..., Fraction], mode: str, dtype: DType, row: list[float]) -> float:
    try:
        exact = rational(*(Fraction(x) for x in row))
    except (ZeroDivisionError, OverflowError, ValueError):
        exact = Fraction(0)
    if exact == 0:  # an infinity or NaN, exact as it is, or zero with its sign
        with np.errstate(all="ignore"):
            return float(rational(*map(np.float64, row)))
    return round_rational(exact, mode, dtype)


def round_rational(exact: Fraction, mode: str, dtype: DType) -> float:
    """Return `exact` rounded to `dtype`: "rn", "rz" (to zero), "ru" (up) or "rd" (down)."""
    unit = np.float64 if dtype.base == "float64" else np.float32
    try:
        near = unit(exact.numerator / exact.denominator)
    except OverflowError:
        near = unit(math.inf if exact > 0 else -math.inf)
    near = _nearest(near, exact, unit)
    if mode == "rn" or (np.isfinite(near) and Fraction(float(near)) == exact):
        return float(near)
    down, up = near, near
    if not np.isfinite(near) or Fraction(float(near)) > exact:
        down = np.nextafter(near, unit(-math.inf)) if near > -math.inf else near
    if not np.isfinite(near) or Fraction(float(near)) < exact:
        up = np.nextafter(near, unit(math.inf)) if near < math.inf else near
    toward_zero = down if exact > 0 else up
    return float({"rz": toward_zero, "ru": up, "rd": down}[mode])


def _nearest(near: np.floating, exact: Fraction, unit: type) -> np.floating:
    """Repair the double rounding of a quotient taken in float64."""
    if not np.isfinite(near):
        return near
    best = near
    for other in (np.nextafter(near, unit(-math.inf)), np.nextafter(near, unit(math.inf))):
        if not np.isfinite(other):
            continue
        there, here = abs(Fraction(float(other)) - exact), abs(Fraction(float(best)) - exact)
        even = int(np.array([other]).view(f"u{other.itemsize}")[0]) % 2 == 0
        if there < here or (there == here and even):
            best = other
    return best


def _by_root(
    x: Array, mode: str, dtype: DType, square: Callable[[float], Fraction], reciprocal: bool
) -> Array:
    """Round a square root whose exact square is `square` of the argument."""
    flat = x.ravel()
    result = np.empty(flat.shape, np.float64)
    for k, value in enumerate(flat):
        with np.errstate(all="ignore"):
            root = np.sqrt(np.float64(value))
            root = np.float64(1) / root if reciprocal else root
        if not np.isfinite(root) or root == 0:
            result[k] = root
            continue
        # 200 more bits than any format has settle the direction; an exact root stays exact
        exact = square(float(value))
        scale = 1 << 400
        whole = math.isqrt(exact.numerator * exact.denominator * scale)
        candidate = Fraction(whole, exact.denominator * (1 << 200))
        if candidate * candidate != exact:
            candidate += Fraction(1, exact.denominator * (1 << 202))
        result[k] = round_rational(candidate, mode, dtype)
    return settle(result.reshape(x.shape), dtype)
