"""Scalar arguments: numbers of the right kind that fit."""

from __future__ import annotations

from typing import Any

from tile_api.geometry import declared
from tile_api.tensors import view_of
from tile_core.dtypes import Kind
from tile_core.errors import ArgumentTypeError
from tile_core.ir.arith import integer_bounds
from tile_core.ir.expr import Var
from tile_launch.scalars import largest_float, overflows

_KINDS = {
    Kind.BOOL: "a bool",
    Kind.INT: "an int",
    Kind.UINT: "an int",
    Kind.FLOAT: "a float",
    Kind.HANDLE: "an address",
}


def scalar_value(name: str, param: Var, arg: Any) -> Any:
    """Return a scalar argument as a Python bool, int or float.

    Numbers of NumPy, and tensors of rank 0, are read. A bool is no int, an int is a float,
    a float is no int.

    Raises
    ------
    ArgumentTypeError
        If it is of another kind, or a finite number that the type cannot hold.
    """
    kind = param.dtype.kind
    if kind is Kind.HANDLE:
        return _address(name, param, arg)
    if getattr(arg, "shape", None) == () and callable(getattr(arg, "item", None)):
        arg = arg.item()
    is_bool, is_int = isinstance(arg, bool), isinstance(arg, int) and not isinstance(arg, bool)
    if kind is Kind.BOOL and is_bool:
        return arg
    if kind is Kind.FLOAT and (is_int or isinstance(arg, float)):
        return _float(name, param, arg)
    if kind in (Kind.INT, Kind.UINT) and (is_int or _is_index(arg, is_bool=is_bool)):
        return _integer(name, param, int(arg))
    raise ArgumentTypeError(
        f"{name}: expected {_KINDS[kind]} ({param.dtype}), got {type(arg).__name__}",
        notes=declared(param),
        hint="convert it: int(x), float(x) or bool(x)",
    )


def _is_index(arg: Any, *, is_bool: bool) -> bool:
    return not is_bool and hasattr(arg, "__index__") and not hasattr(arg, "shape")


def _float(name: str, param: Var, arg: Any) -> float:
    try:
        value = float(arg)
    except OverflowError:
        raise ArgumentTypeError(
            f"{name}: the integer does not fit {param.dtype}",
            notes=declared(param),
            hint="pass a smaller number",
        ) from None
    if overflows(value, str(param.dtype)):
        raise ArgumentTypeError(
            f"{name}: {arg} does not fit {param.dtype}, whose largest finite value is "
            f"{largest_float(str(param.dtype))}",
            notes=declared(param),
            hint="pass a smaller number, or float('inf') if infinity is meant",
        )
    return value


def _integer(name: str, param: Var, value: int) -> int:
    low, high = integer_bounds(param.dtype)
    if not low <= value <= high:
        raise ArgumentTypeError(
            f"{name}: {value} does not fit {param.dtype} ({low}..{high})",
            notes=declared(param),
            hint="pass a number in that range, or declare the parameter with a wider type",
        )
    return value


def _address(name: str, param: Var, arg: Any) -> int:
    view = view_of(arg)
    if view is not None and view.problem is None:
        return view.address
    if hasattr(arg, "__index__") and not isinstance(arg, bool):
        address = int(arg)
        if 0 <= address < 1 << 64:
            return address
    raise ArgumentTypeError(
        f"{name}: expected an address (int) or a tensor, got {type(arg).__name__}",
        notes=declared(param),
        hint="pass x.data_ptr(), or the tensor itself",
    )
