"""torch's functions of elements: NumPy's expressions, with the types that torch gives results."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import FLOAT32, broadcast, lift, spread
from tile_api.arrays.capturing.ufuncs import UFUNCS, Row
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.expressions import BOOL, INDEX, Expr, Indices, const
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import UnknownArrayFunction


def _category(dtype: DType) -> int:
    return 2 if dtype.is_float else 0 if dtype.is_bool else 1


def _wider(x: DType, y: DType) -> DType:
    """Return the type that holds elements of both."""
    if _category(x) != _category(y):
        return max(x, y, key=_category)
    if x == y or x.bits != y.bits:
        small, large = sorted((x, y), key=lambda dtype: dtype.bits)
        is_signed = small.startswith("int") and large.startswith("uint")
        return dtype_of(f"int{2 * large.bits}") if is_signed else large
    return FLOAT32 if x.is_float else dtype_of(f"int{2 * x.bits}")


def type_of_number(x: bool | int | float) -> DType:
    """Return the type that torch gives a number of Python."""
    return BOOL if isinstance(x, bool) else INDEX if isinstance(x, int) else FLOAT32


def promoted(*operands: Any) -> DType:
    """Return the type in which torch computes with operands.

    An array without dimensions counts only where its kind of number is above that of arrays that
    have some; a number of Python, where its kind is above that of all arrays.
    """
    arrays = [x for x in operands if isinstance(x, Array)]
    numbers = [type_of_number(x) for x in operands if not isinstance(x, Array)]
    found: DType | None = None
    for group in ([x.dtype for x in arrays if x.ndim], [x.dtype for x in arrays if not x.ndim],
                  numbers):  # fmt: skip
        kind: DType | None = None
        for dtype in group:
            kind = dtype if kind is None else _wider(kind, dtype)
        if kind is not None and (found is None or _category(kind) > _category(found)):
            found = kind
    assert found is not None
    return found


def elements(
    row: Row, *operands: Any, is_float: bool = False, result: DType | None = None
) -> Array:
    """Return a function of elements of arrays and numbers, in torch's types.

    Parameters
    ----------
    is_float
        Whether integers are computed in float32.
    result
        The type of the result, if it is another one than that of the operands.
    """
    kind = promoted(*operands)
    if is_float and not kind.is_float:
        kind = FLOAT32
    arrays = [lift(x) for x in operands]
    shape = broadcast([x.shape for x in arrays], "torch")

    def at(indices: Indices) -> Expr:
        return row(*(x.read_as(kind, spread(x, indices)) for x in arrays))

    return Array(shape, result or kind, at)


def cast(x: Any, dtype: DType) -> Array:
    """Return an array in another type; a float of fewer than 32 bits is rounded here."""
    array = lift(x)
    if array.dtype == dtype:
        return array
    return Array(array.shape, dtype, lambda indices: eq.cast(array.at(indices), dtype))


def _function(name: str, *, is_float: bool = False, is_truth: bool = False) -> Callable[..., Array]:
    row, result = UFUNCS[name], BOOL if is_truth else None

    def run(*operands: Any) -> Array:
        return elements(row, *operands, is_float=is_float, result=result)

    return run


def add(input: Any, other: Any, *, alpha: Any = 1) -> Array:
    """`torch.add`."""
    scaled = other if alpha == 1 else elements(UFUNCS["multiply"], other, alpha)
    return elements(UFUNCS["add"], input, scaled)


def sub(input: Any, other: Any, *, alpha: Any = 1) -> Array:
    """`torch.sub`."""
    scaled = other if alpha == 1 else elements(UFUNCS["multiply"], other, alpha)
    return elements(UFUNCS["subtract"], input, scaled)


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Array:
    """`torch.div`."""
    if rounding_mode == "floor":
        return elements(UFUNCS["floor_divide"], input, other)
    if rounding_mode == "trunc":
        if not promoted(input, other).is_float:
            raise UnknownArrayFunction(
                "torch.div of integers, rounded to zero", hint='rounding_mode="floor"'
            )
        return elements(UFUNCS["trunc"], div(input, other))
    return elements(UFUNCS["divide"], input, other, is_float=True)


def floats_only(name: str, x: Any) -> None:
    """Refuse what torch refuses: integers where a function takes floats alone."""
    if not x.dtype.is_float:
        raise UnknownArrayFunction(f"torch.{name} of {x.dtype}", hint="it takes floats: x.float()")


def where(condition: Any, input: Any, other: Any) -> Array:
    """`torch.where` of three."""
    kind = promoted(input, other)
    mask, one, two = (lift(x) for x in (condition, input, other))
    shape = broadcast([mask.shape, one.shape, two.shape], "torch.where")

    def at(indices: Indices) -> Expr:
        chosen = mask.read_as(BOOL, spread(mask, indices))
        return eq.where(chosen, *(x.read_as(kind, spread(x, indices)) for x in (one, two)))

    return Array(shape, kind, at)


def clamp(input: Any, min: Any = None, max: Any = None) -> Array:
    """`torch.clamp`."""
    made: Array = input
    if min is not None:
        made = elements(UFUNCS["maximum"], made, min)
    return made if max is None else elements(UFUNCS["minimum"], made, max)


def sigmoid(input: Any) -> Array:
    """`torch.sigmoid`."""

    def row(x: Expr) -> Expr:
        one = const(1, x.dtype)
        return eq.divide(one, eq.add(one, eq.make("exp", eq.negate(x))))

    return elements(row, input, is_float=True)


def silu(input: Any) -> Array:
    """`torch.nn.functional.silu`."""

    def row(x: Expr) -> Expr:
        return eq.divide(x, eq.add(const(1, x.dtype), eq.make("exp", eq.negate(x))))

    return elements(row, input, is_float=True)


def gelu(input: Any, approximate: str = "none") -> Array:
    """`torch.nn.functional.gelu`."""

    def row(x: Expr) -> Expr:
        half, one = const(0.5, x.dtype), const(1, x.dtype)
        if approximate == "none":
            inner = eq.make("erf", eq.multiply(const(math.sqrt(0.5), x.dtype), x))
        else:
            cube = eq.multiply(const(0.044715, x.dtype), eq.multiply(eq.multiply(x, x), x))
            root = const(math.sqrt(2 / math.pi), x.dtype)
            inner = eq.make("tanh", eq.multiply(root, eq.add(x, cube)))
        return eq.multiply(half, eq.multiply(x, eq.add(one, inner)))

    return elements(row, input, is_float=True)


def softplus(input: Any, beta: float = 1, threshold: float = 20) -> Array:
    """`torch.nn.functional.softplus`."""

    def row(x: Expr) -> Expr:
        scaled = eq.multiply(const(beta, x.dtype), x)
        soft = eq.multiply(const(1 / beta, x.dtype), eq.make("log1p", eq.make("exp", scaled)))
        return eq.where(eq.make("lt", const(threshold, x.dtype), scaled), x, soft)

    return elements(row, input, is_float=True)


def _rsqrt(input: Any) -> Array:
    return elements(lambda x: eq.reciprocal(eq.make("sqrt", x)), input, is_float=True)


_KEEPING = {
    "mul": "multiply", "multiply": "multiply", "neg": "negative", "negative": "negative",
    "abs": "absolute", "sign": "sign", "sgn": "sign", "square": "square", "floor": "floor",
    "ceil": "ceil", "trunc": "trunc", "round": "rint", "maximum": "maximum", "minimum": "minimum",
    "fmax": "fmax", "fmin": "fmin", "floor_divide": "floor_divide", "remainder": "remainder",
    "fmod": "fmod", "pow": "power", "bitwise_and": "bitwise_and", "bitwise_or": "bitwise_or",
    "bitwise_xor": "bitwise_xor", "bitwise_not": "invert", "bitwise_left_shift": "left_shift",
    "bitwise_right_shift": "right_shift",
}  # fmt: skip
_FLOATING = {
    "exp": "exp", "exp2": "exp2", "expm1": "expm1", "log": "log", "log2": "log2",
    "log10": "log10", "log1p": "log1p", "sqrt": "sqrt", "reciprocal": "reciprocal", "erf": "erf",
    "sin": "sin", "cos": "cos", "tan": "tan", "asin": "arcsin", "acos": "arccos", "atan": "arctan",
    "sinh": "sinh", "cosh": "cosh", "tanh": "tanh", "asinh": "arcsinh", "acosh": "arccosh",
    "atanh": "arctanh", "atan2": "arctan2", "copysign": "copysign", "hypot": "hypot",
    "logaddexp": "logaddexp",
}  # fmt: skip
_TRUTHS = {
    "eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal", "gt": "greater",
    "ge": "greater_equal", "isnan": "isnan", "isinf": "isinf", "isfinite": "isfinite",
    "logical_and": "logical_and", "logical_or": "logical_or", "logical_xor": "logical_xor",
    "logical_not": "logical_not", "signbit": "signbit",
}  # fmt: skip

ELEMENTS: dict[str, Callable[..., Any]] = {
    **{name: _function(ufunc) for name, ufunc in _KEEPING.items()},
    **{name: _function(ufunc, is_float=True) for name, ufunc in _FLOATING.items()},
    **{name: _function(ufunc, is_truth=True) for name, ufunc in _TRUTHS.items()},
    "add": add, "sub": sub, "subtract": sub, "div": div, "divide": div, "true_divide": div,
    "rsub": lambda input, other, alpha=1: sub(other, input, alpha=alpha),
    "where": where, "clamp": clamp, "clip": clamp,
    "clamp_min": lambda input, min: clamp(input, min),
    "clamp_max": lambda input, max: clamp(input, None, max),
    "relu": lambda input: clamp(input, 0),
    "hardtanh": lambda input, min_val=-1.0, max_val=1.0: clamp(input, min_val, max_val),
    "sigmoid": sigmoid, "silu": silu, "gelu": gelu, "softplus": softplus, "rsqrt": _rsqrt,
    "masked_fill": lambda input, mask, value: cast(where(mask, value, input), input.dtype),
}  # fmt: skip
"""By the name that torch gives a function, or an operator of ``aten``."""
