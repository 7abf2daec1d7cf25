"""Scalar arguments: numbers of the right kind that fit."""

from __future__ import annotations

import math
import re
from typing import Any

from tile_launch.dtypes import bits_of
from tile_launch.errors import ArgumentTypeError
from tile_launch.views import view_of

_INTEGER = re.compile(r"u?int\d+")
# Significant bits and the greatest exponent; narrower types saturate, and wider ones hold all.
_FLOATS = {"float16": (11, 15), "bfloat16": (8, 127), "float32": (24, 127), "tfloat32": (24, 127)}


def integer_bounds(dtype: str) -> tuple[int, int] | None:
    """Return the least and the greatest number of an integer type; None for other types.

    Examples
    --------
    >>> integer_bounds("int8"), integer_bounds("uint8"), integer_bounds("float16")
    ((-128, 127), (0, 255), None)
    """
    if not _INTEGER.fullmatch(dtype):
        return None
    bits = bits_of(dtype)
    if dtype.startswith("u"):
        return 0, (1 << bits) - 1
    return -1 << (bits - 1), (1 << (bits - 1)) - 1


def largest_float(dtype: str) -> float:
    """Return the greatest finite number of a type of floats; infinity if it takes all numbers.

    Examples
    --------
    >>> largest_float("float16"), largest_float("float64")
    (65504.0, inf)
    """
    if dtype not in _FLOATS:
        return math.inf
    bits, exponent = _FLOATS[dtype]
    return (2.0 - 2.0 ** (1 - bits)) * 2.0**exponent


def overflows(value: float, dtype: str) -> bool:
    """Tell whether a finite number becomes infinity when it is rounded to a type of floats.

    Examples
    --------
    >>> [overflows(x, "float32") for x in (1e300, 3.4028235e38, float("inf"))]
    [True, False, False]
    """
    if dtype not in _FLOATS or not math.isfinite(value):
        return False
    bits, exponent = _FLOATS[dtype]
    return abs(value) >= (2.0 - 2.0**-bits) * 2.0**exponent


def scalar_value(name: str, dtype: str, arg: Any) -> Any:
    """Return a scalar argument as a Python bool, int or float.

    Numbers of NumPy, and tensors of rank 0, are read. A bool is no int, an int is a float,
    a float is no int.
    """
    if dtype == "handle":
        return _address(name, arg)
    if getattr(arg, "shape", None) == () and callable(getattr(arg, "item", None)):
        arg = arg.item()
    is_bool = isinstance(arg, bool)
    bounds = integer_bounds(dtype)
    if dtype == "bool" and is_bool:
        return arg
    if bounds is not None and not is_bool and _is_integer(arg):
        value = int(arg)
        if not bounds[0] <= value <= bounds[1]:
            raise ArgumentTypeError(
                f"{name}: {value} does not fit {dtype} ({bounds[0]}..{bounds[1]})",
                hint="pass a number in that range, or declare the parameter with a wider type",
            )
        return value
    if bounds is None and dtype != "bool" and not is_bool and isinstance(arg, int | float):
        return _float(name, dtype, arg)
    kind = "an int" if bounds is not None else "a bool" if dtype == "bool" else "a float"
    raise ArgumentTypeError(
        f"{name}: expected {kind} ({dtype}), got {type(arg).__name__}",
        hint="convert it: int(x), float(x) or bool(x)",
    )


def _is_integer(arg: Any) -> bool:
    return isinstance(arg, int) or (hasattr(arg, "__index__") and not hasattr(arg, "shape"))


def _float(name: str, dtype: str, arg: float) -> float:
    try:
        value = float(arg)
    except OverflowError:
        raise ArgumentTypeError(
            f"{name}: the integer does not fit {dtype}", hint="pass a smaller number"
        ) from None
    if overflows(value, dtype):
        raise ArgumentTypeError(
            f"{name}: {arg} does not fit {dtype}, whose largest finite value is "
            f"{largest_float(dtype)}",
            hint="pass a smaller number, or float('inf') if infinity is meant",
        )
    return value


def _address(name: str, arg: Any) -> int:
    view = view_of(arg)
    if view is not None and not view.problem:
        return view.address
    if hasattr(arg, "__index__") and not isinstance(arg, bool) and 0 <= int(arg) < 1 << 64:
        return int(arg)
    raise ArgumentTypeError(
        f"{name}: expected an address (int) or a tensor, got {type(arg).__name__}",
        hint="pass x.data_ptr(), or the tensor itself",
    )
