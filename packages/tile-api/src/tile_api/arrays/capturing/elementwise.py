"""Functions of elements: NumPy's ufuncs, broadcast and promoted as NumPy does."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.misfits import misfit
from tile_api.arrays.capturing.ufuncs import UFUNCS, Row
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import joined, size_told
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.places import TRACE
from tile_api.arrays.equations.sizes import Size, whole
from tile_api.frontend.source import calling_line, placed
from tile_core.dtypes import DType, dtype_of, normalise_dtype
from tile_core.errors import (
    DataDependentShape,
    FrontendTypeError,
    UnknownArrayFunction,
)

FLOAT32 = dtype_of("float32")
_ZERO = const(0)


def lift(x: Any) -> Array:
    """Return an array; constants become formulas where they are one number, a ramp or a band.

    Raises
    ------
    UnknownArrayFunction
        If it holds no numbers.
    """
    if isinstance(x, Array):
        return x.usable()
    if isinstance(x, Size):
        return Array((), dtype_of("int64"), lambda indices: const(whole(x)))
    values = np.asarray(x)
    try:
        dtype = dtype_of(str(values.dtype))
    except FrontendTypeError as error:
        raise UnknownArrayFunction(
            f"elements of {values.dtype} stand in the function",
            hint="truth values, integers and floats can be captured",
        ) from error
    kind = eq.computed_in(dtype)
    flat, axes = values.reshape(-1), [k for k, n in enumerate(values.shape) if n > 1]
    if flat.size < 2 or _same_bits(flat, flat[0]).all():
        only = flat[0].item() if flat.size else 0
        return Array(values.shape, dtype, lambda indices: const(only, kind))
    if len(axes) == 1 and not dtype.is_bool:
        flat = flat.astype(kind.numpy())
        first, step = flat[:1], flat[1:2] - flat[:1]
        steps = np.arange(len(flat)).astype(flat.dtype)
        if _same_bits(flat, first + step * steps).all():
            return ramp(values.shape, axes[0], first.item(), step.item(), dtype)
    band = _banded(values, dtype)
    return constant(values, dtype) if band is None else band


def _banded(values: np.ndarray[Any, Any], dtype: DType) -> Array | None:
    """Return a matrix that is one number along a band of diagonals, and one beside it.

    Blocks that a mask leaves nothing of are passed over if it is a formula.
    """
    if values.ndim != 2:
        return None
    rows, columns = values.shape
    edges = (values[0], values[-1], values[:, 0], values[:, -1])
    if len(np.unique(np.concatenate(edges))) > 2:  # most are told by these
        return None
    apart = np.arange(columns) - np.arange(rows)[:, None]
    for inside in (values[-1, 0], values[0, -1], values[0, 0]):
        where = _same_bits(values, inside)
        if not where.any():  # no number
            continue
        low, high = int(apart[where].min()), int(apart[where].max())
        others = values[~where]
        is_band = np.array_equal(where, (low <= apart) & (apart <= high))
        if is_band and others.size and _same_bits(others, others[0]).all():
            break
    else:
        return None
    kind = eq.computed_in(dtype)

    def at(indices: Indices) -> Expr:
        row, column = indices
        kept = const(True)
        if low > 1 - rows:
            kept = eq.make("le", eq.add(row, const(low)), column)
        if high < columns - 1:
            ends = eq.make("le", column, eq.add(row, const(high)))
            kept = ends if kept.op == "const" else eq.make("and", kept, ends)
        if dtype.is_bool:
            return kept if inside else eq.make("not", kept)
        return eq.where(kept, const(inside.item(), kind), const(others[0].item(), kind))

    return Array(values.shape, dtype, at)


def _same_bits(x: np.ndarray[Any, Any], one: Any) -> np.ndarray[Any, Any]:
    """Tell which elements are `one`: -0.0 is not 0.0, in types of `ml_dtypes` either."""
    same: np.ndarray[Any, Any] = x == one
    return same & (np.signbit(x) == np.signbit(one)) if x.dtype.kind in "fV" else same


def constant(values: np.ndarray[Any, Any], dtype: DType) -> Array:
    """Return an array that stands in the function: its kernels take it beside the arguments."""
    trace = TRACE.get()
    assert trace is not None  # arrays are lifted while a function is captured
    tensor = trace.constant(values, dtype).tensor
    return Array(values.shape, dtype, lambda indices: eq.load(tensor, indices, dtype))


def element_type(given: Any) -> DType:
    """Return the type that NumPy means by a name, a class or a `dtype`; or one of ours."""
    try:
        return dtype_of(str(np.dtype(given)))
    except TypeError:
        with placed():
            return normalise_dtype(given)


def ramp(shape: Sequence[int], axis: int, first: Any, step: Any, dtype: DType) -> Array:
    """Return ``first + step * index`` along one axis."""

    def at(indices: Indices) -> Expr:
        kind = eq.computed_in(dtype)
        along = eq.cast(indices[axis], kind)
        return eq.add(const(first, kind), eq.multiply(const(step, kind), along))

    return Array(shape, dtype, at)


def broadcast(
    shapes: Sequence[Sequence[int]], what: str, arrays: Sequence[Array] = ()
) -> tuple[int, ...]:
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
                raise misfit(
                    what, shapes, f"do not fit: {size_told(made[k])} and {size_told(size)}",
                    arrays=arrays, hint="sizes are equal, or one of them is 1",
                )  # fmt: skip
    return tuple(made)


def spread(x: Array, indices: Indices) -> Indices:
    """Return the indices of an element of `x` which is broadcast to more dimensions."""
    mine = indices[len(indices) - x.ndim :]
    return tuple(_ZERO if n == 1 else at for n, at in zip(x.shape, mine, strict=True))


def apply(row: Row, ufunc: Any, operands: Sequence[Any]) -> Array:
    """Return a function of elements, applied, in the types of a ufunc, given or by name."""
    arrays = [lift(x) for x in operands]
    ufunc = getattr(np, ufunc) if isinstance(ufunc, str) else ufunc
    shape = broadcast([x.shape for x in arrays], f"np.{ufunc.__name__}", arrays)
    inputs, output = promoted(ufunc, operands, arrays)
    if ufunc is np.power and not output.is_float and _is_weak(operands[1]) and operands[1] < 0:
        raise UnknownArrayFunction(
            "np.power: an integer to a negative power", hint="cast the array to floats with astype"
        )

    def at(indices: Indices) -> Expr:
        read = [
            x.read_as(dtype, spread(x, indices)) for x, dtype in zip(arrays, inputs, strict=True)
        ]
        return row(*read)

    return Array(shape, output, at)


def promoted(
    ufunc: Any, operands: Sequence[Any], arrays: Sequence[Array]
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
            asked.append(int if isinstance(given, int) else float)
    ufunc = getattr(np, ufunc) if isinstance(ufunc, str) else ufunc
    name = ufunc.__name__
    try:
        found = ufunc.resolve_dtypes((*asked, *[None] * ufunc.nout))
    except TypeError as error:
        told = ", ".join(str(x.dtype) for x in arrays)
        raise UnknownArrayFunction(
            f"np.{name} takes no elements of {told}", hint="cast with astype"
        ) from error
    types = [dtype_of(str(dtype)) for dtype in found]
    for k, given in enumerate(operands):
        if _is_weak(given) and types[k].is_int and const(given, types[k]).value != given:
            if types[-1].is_bool:  # a comparison
                types[: len(arrays)] = [eq.INDEX] * len(arrays)
            else:
                raise UnknownArrayFunction(
                    f"np.{name}: the number {given} is no {types[k]}",
                    hint="cast the array with astype",
                )
    _remark_of_width(name, strong, types[len(arrays)])
    return types[: len(arrays)], types[len(arrays)]


def _remark_of_width(name: str, operands: Sequence[DType], result: DType) -> None:
    """Remember where integers beside narrower floats give floats of 64 bits, as in NumPy."""
    trace, floats = TRACE.get(), [d for d in operands if d.is_float]
    whole = [d for d in operands if d.is_int and d.bits >= 32]
    if trace is None or result != "float64" or not floats or not whole or "float64" in floats:
        return
    place = calling_line()
    told = f"line {place[1]}: " if place is not None else ""
    trace.remarks[
        f"{told}np.{name} of {floats[0]} and {whole[0]} is float64, as in NumPy; cast the "
        f'integers to keep {floats[0]}, as np.arange(n, dtype="{floats[0]}") does'
    ] = None


def _is_weak(x: Any) -> bool:
    return isinstance(x, (int, float)) and not isinstance(x, (bool, np.generic))


def where(condition: Any, x: Any = None, y: Any = None) -> Array:
    """`numpy.where` of three arrays."""
    if x is None or y is None:
        raise DataDependentShape(
            "np.where of a condition alone: how many elements it chooses is known only when the "
            "kernel runs",
            hint="np.where(condition, x, y) keeps the shape",
        )
    mask, one, other = lift(condition), lift(x), lift(y)
    parts = (mask, one, other)
    shape = broadcast([part.shape for part in parts], "np.where", parts)
    dtype = common_type((x, y), (one, other))

    def at(indices: Indices) -> Expr:
        return eq.where(
            mask.read_as(eq.BOOL, spread(mask, indices)),
            one.read_as(dtype, spread(one, indices)),
            other.read_as(dtype, spread(other, indices)),
        )

    return Array(shape, dtype, at)


def common_type(given: Sequence[Any], arrays: Sequence[Array]) -> DType:
    """Return the type that holds elements of all arrays; numbers of Python are weak."""
    operand, so_far = given[0], arrays[0]
    for x, array in zip(given[1:], arrays[1:], strict=True):
        _, dtype = promoted("add", (operand, x), (so_far, array))
        operand = so_far = Array((), dtype, array.at)
    return so_far.dtype


def astype(x: Any, dtype: Any) -> Array:
    """`numpy.astype`: a float of fewer than 32 bits is rounded here, and nowhere else."""
    array, kind = lift(x), element_type(dtype)
    return Array(array.shape, kind, lambda indices: eq.cast(array.at(indices), kind))


def clip(
    a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Array:
    """`numpy.clip`."""
    x = lift(a)
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if x.dtype.is_int:  # numbers beyond all elements bound nothing
        limits = np.iinfo(x.dtype.numpy())
        low = None if type(low) is int and low <= limits.min else low
        high = None if type(high) is int and high >= limits.max else high
    if low is not None:
        x = apply(UFUNCS["maximum"], "maximum", (x, low))
    if high is not None:
        x = apply(UFUNCS["minimum"], "minimum", (x, high))
    return x


def round(a: Any, decimals: int = 0) -> Array:
    """`numpy.round`: halves go to the even neighbour."""
    x = lift(a)
    if x.dtype.is_bool and decimals:
        raise UnknownArrayFunction(
            f"np.round of bool to {decimals} decimals",
            hint="NumPy does not round them either; cast the array to floats with astype",
        )
    if x.dtype.is_int:  # rounded as floats of 64 bits; what a narrow type does not hold wraps
        if decimals >= 0:
            return x
        whole = round(astype(x, "float64"), decimals)
        return astype(whole if x.dtype.bits == 64 else astype(whole, "int64"), x.dtype)
    scale = 10.0 ** abs(decimals)
    if not decimals:
        return apply(UFUNCS["rint"], "rint", (x,))
    wide, narrow = ("multiply", "divide") if decimals > 0 else ("divide", "multiply")
    scaled = apply(UFUNCS["rint"], "rint", (apply(UFUNCS[wide], wide, (x, scale)),))
    return apply(UFUNCS[narrow], narrow, (scaled, scale))


def nan_to_num(x: Any, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Array:
    """`numpy.nan_to_num`."""
    array: Any = lift(x)
    if not array.dtype.is_float:
        made: Array = array
        return made
    import ml_dtypes

    largest = float(ml_dtypes.finfo(array.dtype.numpy()).max)
    high = largest if posinf is None else posinf
    low = -largest if neginf is None else neginf
    known = where(array != array, nan, array)
    return where(known == math.inf, high, where(known == -math.inf, low, known))


def isclose(
    a: Any, b: Any, rtol: float = 1e-05, atol: float = 1e-08, equal_nan: bool = False
) -> Array:
    """`numpy.isclose`."""
    x: Any = lift(a)
    y: Any = lift(b)
    y = y if y.dtype.is_float else astype(y, "float64")
    near = (abs(x - y) <= atol + rtol * abs(y)) & np.isfinite(y)
    made: Array = near | (x == y)
    return made | ((x != x) & (y != y)) if equal_nan else made
