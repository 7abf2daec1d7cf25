"""Scalar arguments: numbers of the right kind that fit."""

from __future__ import annotations

import re
from typing import Any

from tile_runtime.dtypes import bits_of
from tile_runtime.errors import ArgumentTypeError
from tile_runtime.views import view_of

_INTEGER = re.compile(r"u?int\d+")


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


def scalar_value(name: str, dtype: str, arg: Any) -> Any:
    """Return a scalar argument as a Python bool, int or float.

    Numbers of NumPy, and tensors of rank 0, are read. A bool is no int, an int is a float,
    a float is no int.

    Raises
    ------
    ArgumentTypeError
        If it is of another kind, or an integer that the type cannot hold.
    """
    if dtype == "handle":
        return _address(name, arg)
    if getattr(arg, "shape", None) == () and callable(getattr(arg, "item", None)):
        arg = arg.item()
    is_bool = isinstance(arg, bool)
    bounds = integer_bounds(dtype)
    if dtype == "bool" and is_bool:
        return arg
    if bounds is not None and not is_bool and hasattr(arg, "__index__"):
        value = int(arg)
        if not bounds[0] <= value <= bounds[1]:
            raise ArgumentTypeError(
                f"{name}: {value} does not fit {dtype} ({bounds[0]}..{bounds[1]})",
                hint="pass a number in that range",
            )
        return value
    if bounds is None and dtype != "bool" and not is_bool and isinstance(arg, int | float):
        return _float(name, dtype, arg)
    kind = "an int" if bounds is not None else "a bool" if dtype == "bool" else "a float"
    raise ArgumentTypeError(
        f"{name}: expected {kind} ({dtype}), got {type(arg).__name__}",
        hint="convert it: int(x), float(x) or bool(x)",
    )


def _float(name: str, dtype: str, arg: float) -> float:
    try:
        return float(arg)
    except OverflowError:
        raise ArgumentTypeError(
            f"{name}: the integer does not fit {dtype}", hint="pass a smaller number"
        ) from None


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
