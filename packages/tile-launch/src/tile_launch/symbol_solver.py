"""Variables in shapes and strides: their values out of the tensors that a call passes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from tile_launch import views
from tile_launch.dtypes import packing_of
from tile_launch.errors import ArgumentLayoutError, ArgumentShapeError, ArgumentTypeError
from tile_launch.expressions import Expression, value_of, variables_of, words_of
from tile_launch.manifest import Parameter, Scalar, Tensor
from tile_launch.views import View, view_of


def symbol_text(parameters: Sequence[Parameter], names: Sequence[str], symbol: str) -> str | None:
    """Return Python text that computes a variable from one extent or stride of an argument.

    None if it takes several equations; `solutions` solves those.
    """
    for name, param in zip(names, parameters, strict=True):
        if not isinstance(param, Tensor):
            continue
        packing, last = packing_of(param.dtype), len(param.shape) - 1
        scale = f" * {packing}" if packing > 1 else ""
        for axis, extent in enumerate(param.shape):
            got = f"{name}.shape[{axis}]{scale if axis == last else ''}"
            if (text := _solved(extent, symbol, got)) is not None:
                return text
        for axis, stride in enumerate(param.strides or ()):
            got = f"strides({name})[{axis}]{scale if axis != last else ''}"
            if (text := _solved(stride, symbol, got)) is not None:
                return text
    return None


def _solved(extent: Expression, symbol: str, got: str) -> str | None:
    """Return text for the value of `symbol` if ``extent == got`` determines it."""
    match extent:
        case str() if extent == symbol:
            return got
        case ("int", value):
            return _solved(value, symbol, got)
        case ("+" | "-" | "*" as name, a, int() as number):
            inverse = {"+": f"({got} - {number})", "-": f"({got} + {number})"}
            return _solved(a, symbol, inverse.get(name, f"({got} // {number or 1})"))
        case ("+" | "*" as name, int() as number, b):
            inverse = {"+": f"({got} - {number})", "*": f"({got} // {number or 1})"}
            return _solved(b, symbol, inverse[name])
    return None


def solutions(
    parameters: Sequence[Parameter], symbols: Sequence[str], args: Sequence[Any]
) -> list[int]:
    """Return the value of each variable, also of those that take several equations."""
    shapes: list[tuple[Expression, int]] = []
    strides: list[tuple[Expression, int]] = []
    values: dict[str, Any] = {}
    for param, arg in zip(parameters, args, strict=True):
        if isinstance(param, Scalar):
            values[param.name] = arg
        elif arg is not None:
            shapes += zip(param.shape, logical_shape(param, tuple(arg.shape)), strict=True)
            if param.strides is not None:
                found = logical_strides(param, views.strides_of(arg))
                strides += zip(param.strides, found, strict=True)
    solve((*shapes, *strides), values)
    return [values.get(symbol, 0) for symbol in symbols]


def logical_shape(param: Tensor, shape: tuple[int, ...]) -> tuple[int, ...]:
    """Return extents in elements of the parameter; bytes that hold two of them count twice."""
    packing = packing_of(param.dtype)
    return (*shape[:-1], shape[-1] * packing) if packing > 1 and shape else shape


def logical_strides(param: Tensor, strides: tuple[int, ...]) -> tuple[int, ...]:
    """Return strides in elements of the parameter; bytes that hold two of them count twice."""
    packing = packing_of(param.dtype)
    if packing == 1 or not strides:
        return strides
    return (*(stride * packing for stride in strides[:-1]), strides[-1])


def solve(
    equations: Iterable[tuple[Any, int]],
    values: dict[Any, Any],
    variable: type = str,
    variables_of: Callable[[Any], Iterable[Any]] = variables_of,
    value_of: Callable[[Any, Mapping[Any, Any]], Any] = value_of,
) -> None:
    """Add to `values` every variable that equations ``extent == number`` determine.

    A variable has the value of the first equation that it stands in alone, else the solution of the
    first linear one, such as ``2 * m + n == 7``, in which it is the only unknown. What has a value
    keeps it. The class of variables, which of them stand in an extent, and its value are given for
    extents that are no `tile_launch.expressions.Expression`.
    """
    pairs = [*equations]
    for extent, number in pairs:
        if isinstance(extent, variable):
            values.setdefault(extent, number)
    before = -1
    while len(values) != before:
        before = len(values)
        for extent, number in pairs:
            unknown = [v for v in variables_of(extent) if v not in values]
            if len(unknown) == 1:
                _solve_one(extent, number, values, unknown[0], value_of)


def _solve_one(
    extent: Any,
    number: int,
    values: dict[Any, Any],
    unknown: Any,
    value_of: Callable[[Any, Mapping[Any, Any]], Any],
) -> None:
    try:
        at0, at1 = (value_of(extent, values | {unknown: x}) for x in (0, 1))
        candidate = (number - at0) // (at1 - at0)
        if value_of(extent, values | {unknown: candidate}) == number:
            values[unknown] = candidate
    except ArithmeticError:
        return


def known_value(extent: Expression, values: Mapping[str, Any]) -> int | None:
    """Return an extent as a number, or None if a variable in it is unknown.

    Values that are symbols of a library that traces give a symbol.
    """
    if isinstance(extent, int):
        return extent
    if any(name not in values for name in variables_of(extent)):
        return None
    try:
        found: int = value_of(extent, values)
        return found
    except ArithmeticError:
        return None


Bound: TypeAlias = "tuple[Tensor, View]"


def plain_view(name: str, arg: Any) -> View:
    """Return what a tensor argument called `name` is."""
    view = view_of(arg)
    if view is None:
        raise ArgumentTypeError(
            f"{name}: expected a tensor, got {type(arg).__name__}",
            hint="pass a NumPy array, a torch tensor or another DLPack producer",
        )
    if view.problem:
        raise ArgumentLayoutError(
            f"{name}: the tensor is not plain memory: {view.problem}",
            hint="pass a plain dense tensor, or an array of plain numbers",
        )
    return view


def check_rank(name: str, param: Tensor, view: View) -> None:
    """Raise unless the tensor has as many dimensions as the parameter."""
    if len(view.shape) != len(param.shape):
        raise ArgumentShapeError(
            f"{name}.ndim: expected {len(param.shape)} {spelt(param.shape)}, got "
            f"{len(view.shape)} {spelt(view.shape)}",
            hint=f"reshape it to {len(param.shape)} dimension{'s' * (len(param.shape) != 1)}",
            subject=("parameter", param.name),
        )


def spelt(shape: Iterable[Expression]) -> str:
    """Return a shape as text, variables by name."""
    return f"[{', '.join(map(words_of, shape))}]"


def shape_of(bound: Bound) -> tuple[int, ...]:
    """Return the extents of a tensor in elements of its parameter: packed bytes count twice."""
    param, view = bound
    return view.shape if view.dtype == param.dtype else logical_shape(param, view.shape)


def strides_of(bound: Bound) -> tuple[int, ...]:
    """Return the strides of a tensor in elements of its parameter: packed bytes count twice."""
    param, view = bound
    return view.strides if view.dtype == param.dtype else logical_strides(param, view.strides)


def bind(tensors: list[Bound], values: dict[str, Any]) -> None:
    """Add to `values` every variable that shapes, then strides, determine."""
    shapes = [pair for b in tensors for pair in zip(b[0].shape, shape_of(b), strict=True)]
    strides = [
        pair
        for b in tensors
        if b[0].strides is not None
        for pair in zip(b[0].strides, strides_of(b), strict=True)
    ]
    solve((*shapes, *strides), values)
