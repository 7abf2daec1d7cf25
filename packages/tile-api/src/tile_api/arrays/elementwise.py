"""Functions of elements: NumPy's ufuncs, broadcast and promoted as NumPy does."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays import equations as eq
from tile_api.arrays.array import Array, Indices
from tile_api.arrays.dims import joined
from tile_api.arrays.equations import Expr, const, make
from tile_api.frontend.source import calling_span
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

FLOAT32 = dtype_of("float32")
_ZERO = const(0)


def lift(x: Any) -> Array:
    """Return an array; constants become formulas where they are one number or a ramp.

    Raises
    ------
    UnknownArrayFunction
        If it is a table of numbers: those are arguments.
    """
    if isinstance(x, Array):
        return x
    values = np.asarray(x)
    dtype = dtype_of(str(values.dtype))
    if values.size == 1:
        only = values.reshape(()).item()
        return Array(values.shape, dtype, lambda indices: const(only, eq.computed_in(dtype)))
    flat, axes = values.reshape(-1), [k for k, n in enumerate(values.shape) if n > 1]
    if len(axes) == 1 and not dtype.is_bool:
        first, step = flat[0].item(), (flat[1] - flat[0]).item()
        if np.array_equal(flat, (first + step * np.arange(len(flat))).astype(flat.dtype)):
            return ramp(values.shape, axes[0], first, step, dtype)
    raise UnknownArrayFunction(
        f"a table of {values.size} numbers stands in the function",
        span=calling_span(),
        hint="make it a parameter of the function, or build it with np.arange and np.where",
    )


def ramp(shape: Sequence[int], axis: int, first: Any, step: Any, dtype: DType) -> Array:
    """Return ``first + step * index`` along one axis."""

    def at(indices: Indices) -> Expr:
        kind = eq.computed_in(dtype)
        along = eq.cast(indices[axis], kind)
        return eq.add(const(first, kind), eq.multiply(const(step, kind), along))

    return Array(shape, dtype, at)


def broadcast(shapes: Sequence[Sequence[int]], what: str) -> tuple[int, ...]:
    """Return the shape that arrays are broadcast to.

    Raises
    ------
    ArrayShapeError
        If they do not fit.
    """
    rank = max((len(shape) for shape in shapes), default=0)
    made: list[int] = [1] * rank
    for shape in shapes:
        for k, size in enumerate(shape, rank - len(shape)):
            if made[k] == 1:
                made[k] = size
            elif size == made[k]:
                made[k] = joined(made[k], size)
            elif size != 1:
                told = " and ".join(str(tuple(map(int, shape))) for shape in shapes)
                raise ArrayShapeError(
                    f"{what}: shapes {told} do not fit: {int(made[k])} and {int(size)}",
                    span=calling_span(),
                    hint="sizes are equal, or one of them is 1",
                )
    return tuple(made)


def spread(x: Array, indices: Indices) -> Indices:
    """Return the indices of an element of `x` which is broadcast to more dimensions."""
    mine = indices[len(indices) - x.ndim :]
    return tuple(_ZERO if n == 1 else at for n, at in zip(x.shape, mine, strict=True))


def apply(row: Row, name: str, operands: Sequence[Any]) -> Array:
    """Return a function of elements, applied."""
    arrays = [lift(x) for x in operands]
    shape = broadcast([x.shape for x in arrays], f"np.{name}")
    inputs, output = promoted(name, operands, arrays)

    def at(indices: Indices) -> Expr:
        read = [
            x.read_as(dtype, spread(x, indices)) for x, dtype in zip(arrays, inputs, strict=True)
        ]
        return row(*read)

    return Array(shape, output, at)


def promoted(
    name: str, operands: Sequence[Any], arrays: Sequence[Array]
) -> tuple[list[DType], DType]:
    """Return the types that a ufunc takes its operands in, and that of its result.

    Numbers of Python are weak: they take the type of the arrays beside them.
    """
    strong = [x.dtype for x, given in zip(arrays, operands, strict=True) if not _is_weak(given)]
    widest = max(strong, key=lambda dtype: (dtype.is_float, dtype.bits), default=None)
    asked: list[Any] = []
    for x, given in zip(arrays, operands, strict=True):
        if not _is_weak(given):
            asked.append(x.dtype.numpy())
        elif widest is not None and (widest.is_float or (isinstance(given, int) and widest.is_int)):
            asked.append(widest.numpy())
        else:
            asked.append(type(given))
    ufunc = getattr(np, name)
    try:
        found = ufunc.resolve_dtypes((*asked, *[None] * ufunc.nout))
    except TypeError as error:
        told = ", ".join(str(x.dtype) for x in arrays)
        raise UnknownArrayFunction(
            f"np.{name} takes no elements of {told}", span=calling_span(), hint="cast with astype"
        ) from error
    types = [dtype_of(str(dtype)) for dtype in found]
    return types[: len(arrays)], types[len(arrays)]


def _is_weak(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, (bool, np.generic))


Row = Callable[..., Expr]
"""What makes an expression of the expressions of its operands."""


def _named(name: str) -> Row:
    return lambda *args: make(name, *args)


def _power(x: Expr, y: Expr) -> Expr:
    if y.op == "const":
        if y.value == 2:
            return eq.multiply(x, x)
        if y.value == 0.5 and x.dtype.is_float:
            return make("sqrt", x)
        if y.value == -1 and x.dtype.is_float:
            return eq.reciprocal(x)
        if y.value == 3:
            return eq.multiply(eq.multiply(x, x), x)
    return make("pow", x, y)


def _scaled(name: str, factor: float) -> Row:
    """Return `name` of a multiple, such as exp2 by exp."""
    return lambda x: make(name, eq.multiply(const(factor, x.dtype), x))


def _times(factor: float, name: str) -> Row:
    return lambda x: eq.multiply(const(factor, x.dtype), make(name, x))


def _logaddexp(x: Expr, y: Expr) -> Expr:
    top = make("maximum", x, y)
    return eq.add(
        top,
        make("log", eq.add(make("exp", eq.subtract(x, top)), make("exp", eq.subtract(y, top)))),
    )


UFUNCS: dict[str, Row] = {
    "add": eq.add,
    "subtract": eq.subtract,
    "multiply": eq.multiply,
    "divide": eq.divide,
    "negative": eq.negate,
    "positive": lambda x: x,
    "square": lambda x: eq.multiply(x, x),
    "reciprocal": eq.reciprocal,
    "power": _power,
    "float_power": _power,
    "floor_divide": lambda x, y: (
        make("floor", eq.divide(x, y)) if x.dtype.is_float else eq.integer_part("floordiv", x, y)
    ),
    "remainder": lambda x, y: (
        eq.subtract(x, eq.multiply(y, make("floor", eq.divide(x, y))))
        if x.dtype.is_float
        else eq.integer_part("mod", x, y)
    ),
    "less": lambda x, y: make("lt", x, y),
    "less_equal": lambda x, y: make("le", x, y),
    "greater": lambda x, y: make("lt", y, x),
    "greater_equal": lambda x, y: make("le", y, x),
    "equal": lambda x, y: make("eq", x, y),
    "not_equal": lambda x, y: make("ne", x, y),
    "logical_and": lambda x, y: make("and", eq.cast(x, eq.BOOL), eq.cast(y, eq.BOOL)),
    "logical_or": lambda x, y: make("or", eq.cast(x, eq.BOOL), eq.cast(y, eq.BOOL)),
    "logical_not": lambda x: make("not", eq.cast(x, eq.BOOL)),
    "bitwise_and": lambda x, y: make("and" if x.dtype.is_bool else "bitand", x, y),
    "bitwise_or": lambda x, y: make("or" if x.dtype.is_bool else "bitor", x, y),
    "bitwise_xor": lambda x, y: make("ne" if x.dtype.is_bool else "bitxor", x, y),
    "invert": lambda x: make("not" if x.dtype.is_bool else "bitnot", x),
    "left_shift": _named("shl"),
    "right_shift": _named("shr"),
    "maximum": _named("maximum"),
    "minimum": _named("minimum"),
    "absolute": _named("absolute"),
    "exp": _named("exp"),
    "exp2": _scaled("exp", math.log(2)),
    "expm1": lambda x: eq.subtract(make("exp", x), const(1, x.dtype)),
    "log": _named("log"),
    "log2": _times(1 / math.log(2), "log"),
    "log10": _times(1 / math.log(10), "log"),
    "log1p": lambda x: make("log", eq.add(const(1, x.dtype), x)),
    "logaddexp": _logaddexp,
    "sqrt": _named("sqrt"),
    "sin": _named("sin"),
    "cos": _named("cos"),
    "tanh": _named("tanh"),
    "floor": _named("floor"),
    "ceil": _named("ceil"),
    "trunc": _named("trunc"),
    "rint": _named("rint"),
    "isnan": lambda x: make("ne", x, x) if x.dtype.is_float else const(False, "bool"),
}
"""By the name of the ufunc."""
