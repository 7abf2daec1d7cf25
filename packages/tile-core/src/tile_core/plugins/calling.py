"""What executables share: addresses, strides and symbols of arguments that were checked."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_core.arith.evaluate import solve
from tile_core.errors import AssumptionError
from tile_core.ir.arith import as_expr
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Binary, BinaryOp, Cast, Const, Extent, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.names import Names
from tile_core.ir.print_expr import print_expr
from tile_core.ir.stmt import Check


def solutions(
    params: Sequence[Buffer | Var], symbols: Sequence[Var], args: Sequence[Any]
) -> list[int]:
    """Return the value of each symbol, also of those that take several equations."""
    shapes: list[tuple[Extent, int]] = []
    strides: list[tuple[Extent, int]] = []
    values: dict[Var, Any] = {}
    for param, arg in zip(params, args, strict=True):
        if isinstance(param, Var):
            values[param] = arg
        elif arg is not None:
            factor, last = param.dtype.packing, param.rank - 1
            for axis, (extent, got) in enumerate(zip(param.shape, arg.shape, strict=True)):
                shapes.append((extent, got * factor if axis == last else got))
            for axis, stride in enumerate(param.strides or ()):
                got = strides_of(arg)[axis]
                strides.append((stride, got if axis == last else got * factor))
    solve((*shapes, *strides), values)
    return [values.get(symbol, 0) for symbol in symbols]


def symbol_text(params: Sequence[Buffer | Var], names: Sequence[str], symbol: Var) -> str | None:
    """Return Python text that computes a symbol from one extent or stride of an argument.

    None if it takes several equations; `solutions` solves those.
    """
    for name, param in zip(names, params, strict=True):
        if not isinstance(param, Buffer):
            continue
        last = param.rank - 1
        for axis, extent in enumerate(param.shape):
            scale = f" * {param.dtype.packing}" if axis == last and param.dtype.packing > 1 else ""
            text = _solved(extent, symbol, f"{name}.shape[{axis}]{scale}")
            if text is not None:
                return text
        for axis, stride in enumerate(param.strides or ()):
            scale = f" * {param.dtype.packing}" if axis != last and param.dtype.packing > 1 else ""
            text = _solved(stride, symbol, f"strides({name})[{axis}]{scale}")
            if text is not None:
                return text
    return None


def _solved(extent: Any, symbol: Var, got: str) -> str | None:
    """Return text for the value of `symbol` if ``extent == got`` determines it."""
    if isinstance(extent, int) or free_variables(as_expr(extent)).keys() != {symbol}:
        return None
    match extent:
        case Var():
            return got
        case Cast(value=value):
            return _solved(value, symbol, got)
        case Binary(op=op, a=a, b=Const(value=number)):
            inverse = {
                BinaryOp.ADD: f"({got} - {number})",
                BinaryOp.SUB: f"({got} + {number})",
                BinaryOp.MUL: f"({got} // {number or 1})",
            }.get(op)
            return None if inverse is None else _solved(a, symbol, inverse)
        case Binary(op=op, a=Const(value=number), b=b) if op in (BinaryOp.ADD, BinaryOp.MUL):
            inverse = f"({got} - {number})" if op is BinaryOp.ADD else f"({got} // {number or 1})"
            return _solved(b, symbol, inverse)
    return None


def address_of(tensor: Any) -> int:
    """Return the address of a tensor's first element; 0 for None; an int is an address."""
    if tensor is None:
        return 0
    if isinstance(tensor, int):
        return tensor
    if isinstance(tensor, np.ndarray):
        return int(tensor.__array_interface__["data"][0])
    pointer = getattr(tensor, "data_ptr", None)
    if pointer is not None:
        return int(pointer())
    if isinstance(tensor, ctypes.c_void_p):
        return tensor.value or 0
    return int(np.from_dlpack(tensor).__array_interface__["data"][0])


def strides_of(tensor: Any) -> tuple[int, ...]:
    """Return the distances between a tensor's elements, in elements."""
    if isinstance(tensor, np.ndarray):
        return tuple(s // tensor.itemsize for s in tensor.strides)
    stride = getattr(tensor, "stride", None)
    if callable(stride):
        return tuple(stride())
    return strides_of(np.from_dlpack(tensor))


def unmet(check: Check) -> AssumptionError:
    """Return the error that a condition between launches is false for a call's arguments."""
    told = check.message or print_expr(check.cond, Names())
    return AssumptionError(
        f"{told} (does not hold for these arguments)",
        span=check.span,
        hint="pass arguments for which it holds",
    )
