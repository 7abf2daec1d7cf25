"""NumPy's functions by name: what is captured when one is called with a captured array."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing import (
    accumulations,
    augmented_assignment,
    creation,
    decompositions,
    elementwise,
    floating_and_rational,
    folds,
    histograms,
    indexing,
    interpolation,
    item_assignment,
    joins,
    linear_algebra,
    products,
    putting,
    scattering,
    sorting,
    statistics,
    views,
    zero_dimensional,
)
from tile_api.arrays.capturing.array import Array, present
from tile_api.arrays.capturing.elementwise import apply, lift
from tile_api.arrays.capturing.torch_dispatch import call_torch as call_torch
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.equations.sizes import CONDITIONS, Size
from tile_core.errors import (
    DataDependentShape,
    ImmutableArray,
    TileError,
    UnknownArrayFunction,
)
from tile_core.spelling import nearest

FUNCTIONS: dict[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (
        views.transpose, views.swapaxes, views.moveaxis, views.reshape, views.expand_dims,
        views.squeeze, views.sliding_window_view, views.broadcast_to, views.repeat, views.tile,
        views.flip, views.roll, views.resize, joins.concatenate, joins.stack, joins.split,
        joins.array_split, joins.unstack, joins.vstack, joins.hstack, joins.dstack,
        joins.column_stack, joins.append, joins.rot90, joins.diagonal, joins.diag, joins.diff,
        joins.pad, indexing.take, indexing.take_along_axis, indexing.ix_, indexing.select,
        indexing.choose, item_assignment.copyto, putting.put, putting.put_along_axis,
        putting.putmask, putting.place, putting.fill_diagonal,
        folds.sum, folds.prod, folds.max, folds.min, folds.mean, folds.var,
        folds.std, folds.any, folds.all, folds.argmax, folds.argmin, folds.ptp, folds.nanargmax,
        folds.nanargmin, folds.count_nonzero, folds.average, products.matmul, products.einsum,
        products.vecdot,
        products.dot, products.inner, products.outer, products.vdot, products.matvec,
        products.vecmat, products.tensordot, products.trace, elementwise.where, elementwise.clip,
        elementwise.astype, elementwise.round, elementwise.nan_to_num, elementwise.isclose,
        creation.zeros_like, creation.ones_like, creation.full_like, creation.tril, creation.triu,
        creation.meshgrid, accumulations.cumsum, accumulations.cumprod,
        accumulations.cumulative_sum, accumulations.cumulative_prod,
        sorting.sort, sorting.argsort, sorting.partition, sorting.argpartition,
        statistics.median, statistics.quantile, statistics.percentile, statistics.cov,
        statistics.corrcoef, statistics.convolve, statistics.correlate,
        interpolation.searchsorted, interpolation.digitize, interpolation.interp,
        interpolation.trapezoid, interpolation.gradient, interpolation.polyval,
        interpolation.polyfit,
        interpolation.piecewise, histograms.histogram, histograms.histogram2d,
        histograms.bincount,
        joins.block, products.kron, statistics.nanmedian,
        decompositions.sinc, decompositions.unwrap, decompositions.cross, decompositions.vander,
        decompositions.isin, decompositions.ediff1d, decompositions.delete, decompositions.insert,
        decompositions.broadcast_arrays, decompositions.array_equal, decompositions.rollaxis,
        decompositions.unravel_index,
    )
}  # fmt: skip
FUNCTIONS |= folds.NAN_FOLDS | accumulations.NAN_ACCUMULATIONS
FUNCTIONS |= {
    "amax": folds.max,
    "amin": folds.min,
    "around": elementwise.round,
    "permute_dims": views.transpose,
    "matrix_transpose": lambda x: views.swapaxes(x, -1, -2),
    "concat": joins.concatenate,
    "empty_like": creation.zeros_like,
    "ravel": lambda a: views.reshape(a, -1),
    "atleast_1d": lambda x: joins.at_least(x, 1),
    "atleast_2d": lambda x: joins.at_least(x, 2),
    "atleast_3d": lambda x: joins.at_least(x, 3),
    "hsplit": lambda ary, parts: joins.split(ary, parts, lift(ary).ndim > 1),
    "vsplit": lambda ary, parts: joins.split(ary, parts, 0),
    "flipud": lambda m: views.flip(m, 0),
    "fliplr": lambda m: views.flip(m, 1),
    "allclose": lambda a, b, rtol=1e-05, atol=1e-08, equal_nan=False: folds.all(
        elementwise.isclose(a, b, rtol, atol, equal_nan)
    ),
    "trapz": interpolation.trapezoid,
    "fix": lambda x: apply(UFUNCS["trunc"], "trunc", (x,)),
    "copy": lambda a: elementwise.astype(a, lift(a).dtype),
    "shape": lambda a: lift(a).shape,
    "ndim": lambda a: lift(a).ndim,
    "size": lambda a: lift(a).size,
}
_REDUCED = {
    "add": folds.sum,
    "multiply": folds.prod,
    "maximum": folds.max,
    "minimum": folds.min,
    "logical_and": folds.all,
    "logical_or": folds.any,
    "logaddexp": folds.logaddexp_reduce,
}
_UFUNC_PROGRAMS = {
    f.__name__: f
    for f in (
        products.matmul, products.vecdot, products.matvec, products.vecmat,
        floating_and_rational.divmod, floating_and_rational.modf, floating_and_rational.frexp,
        floating_and_rational.ldexp, floating_and_rational.gcd, floating_and_rational.lcm,
    )
}  # fmt: skip
"""Ufuncs that are no functions of an element of each operand, or give several results."""
_ALIASES = {"conjugate": "positive"}
_METHODS = frozenset(
    {"sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin",
     "argsort", "argpartition",
     "swapaxes", "squeeze", "repeat", "take", "astype", "clip", "dot", "round", "trace",
     "diagonal", "copy", "cumsum", "cumprod", "choose", "put"}
)  # fmt: skip
_SIZED_BY_DATA = frozenset(
    {"nonzero", "flatnonzero", "argwhere", "unique", "unique_values", "unique_counts",
     "unique_inverse", "unique_all", "compress", "extract", "trim_zeros", "union1d",
     "intersect1d", "setdiff1d", "setxor1d"}
)  # fmt: skip
"""Functions whose results are as large as elements say."""
_WRITING = frozenset(
    {"itemset", "setflags"}
)  # fmt: skip
_MODULES = ("numpy", "numpy.linalg", "numpy.lib.stride_tricks")
_OTHERWISE: Mapping[str, str] = {
    "expit": "tile.nn.silu(x) is x * expit(x); 1 / (1 + np.exp(-x)) is expit(x)",
    "sigmoid": "1 / (1 + np.exp(-x))",
    "relu": "np.maximum(x, 0)",
    "unsqueeze": "np.expand_dims(x, axis)",
    "permute": "np.transpose(x, axes)",
    "view": "x.reshape(...), or x.astype(...)",
    "real": "arrays are real",
    "apply_along_axis": "functions of NumPy take an axis",
    "eig": "np.linalg.eigh(x), if the matrix is symmetric",
    "eigvals": "np.linalg.eigvalsh(x), if the matrix is symmetric",
    **dict.fromkeys(
        ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "rfft2", "irfft2", "fftn", "ifftn"),
        "it gives complex numbers; arrays are real: turns = 2 * np.pi * np.outer(k, n) / size, "
        "and np.cos(turns) @ x and -np.sin(turns) @ x are its parts",
    ),
    "dim": "x.ndim",
    "at": "np.add, subtract, multiply, maximum and minimum have `at`",
    "device": "leave it out: what a function makes is computed where its kernels run",
    "to": "x.astype(dtype)",
    "float": 'x.astype("float32")',
    **{
        name: f"tile.nn.{name}(x)"
        for name in ("softmax", "log_softmax", "logsumexp", "silu", "gelu", "layer_norm")
    },
}
"""What to write for functions and methods that others have."""
_EMPTY: Mapping[str, Any] = {"order": "C", "casting": "same_kind", "subok": True}
"""Keywords that mean nothing here if they are what NumPy has anyway."""


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Return what a ufunc, or its `reduce` or `outer`, gives."""
    name = _ALIASES.get(ufunc.__name__, ufunc.__name__)
    out = _out_of(keywords.pop("out", None), name)
    if out is not None:
        return _stored(out, call_ufunc(ufunc, method, inputs, keywords), name)
    if method == "reduce" and name in _REDUCED:
        keywords = {k: v for k, v in keywords.items() if v is not None or k == "axis"}
        keywords.setdefault("axis", 0)
        return _called(_REDUCED[name], f"{name}.reduce", inputs, keywords)
    if method == "accumulate" and name in accumulations.ACCUMULATED:
        return _called(accumulations.ACCUMULATED[name], f"{name}.accumulate", inputs, keywords)
    if method == "outer" and ufunc.nin == len(inputs) == 2 and ufunc.signature is None:
        x, y = map(lift, inputs)
        wide = views.reshape(x, [*x.shape, *[1] * y.ndim])
        return call_ufunc(ufunc, "__call__", (wide, y), keywords)
    if method == "at" and name in scattering.ACCUMULATED and len(inputs) == 3:
        return _applied(scattering.at, f"np.{name}.at", (name, *inputs), keywords)
    if method != "__call__":
        raise _unknown(f"{name}.{method}")
    if name in _UFUNC_PROGRAMS:
        return _called(_UFUNC_PROGRAMS[name], name, inputs, keywords)
    if name not in UFUNCS:
        raise _unknown(name)
    rest = {k for k, v in keywords.items() if k not in _EMPTY or v != _EMPTY[k]}
    if rest:
        raise _keyword(name, sorted(rest)[0], ())
    return apply(UFUNCS[name], ufunc, inputs)


def call_function(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return what any other function of NumPy gives."""
    name = function.__name__
    if name in _SIZED_BY_DATA:
        raise _sized_by_data(f"np.{name}")
    if name in _WRITING:
        raise _written(f"np.{name}")
    module = getattr(function, "__module__", "numpy")
    known = (linear_algebra.LINALG if module == "numpy.linalg" else FUNCTIONS).get(name)
    if known is None or module not in _MODULES:
        raise _unknown(f"{module}.{name}".removeprefix("numpy."))
    if module == "numpy.linalg":
        name = f"linalg.{name}"
    return _called(known, name, args, keywords)


def size_of(x: Array) -> Any:
    """Return how many elements there are."""
    return math.prod(x.shape)


def has_method(name: str) -> bool:
    """Tell whether arrays of NumPy have a method, and arrays here, too."""
    return name in _METHODS or name in ("reshape", "transpose", "ravel", "flatten")


def method(array: Array, name: str) -> Callable[..., Any]:
    """Return a method of arrays."""
    if name == "reshape":
        return lambda *shape, **keywords: _called(
            views.reshape, name, (array, *(shape if len(shape) < 2 else [shape])), keywords
        )
    if name == "transpose":
        return lambda *axes: _called(
            views.transpose, name,
            (array, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None),
            {},
        )  # fmt: skip
    if name in ("ravel", "flatten"):
        return lambda **keywords: _called(FUNCTIONS["ravel"], name, (array,), keywords)
    if name in _SIZED_BY_DATA:
        raise _sized_by_data(name)
    if name in _METHODS:
        return lambda *args, **keywords: _called(FUNCTIONS[name], name, (array, *args), keywords)
    if name.startswith("__"):
        raise AttributeError(name)
    if name == "fill":
        return lambda value: assign(array, ..., value)
    if name == "sort":
        return lambda *args, **keywords: assign(
            array, ..., _called(FUNCTIONS["sort"], name, (array, *args), keywords)
        )
    if name in _WRITING or name in ("partition", "resize"):
        raise _written(name)
    near = nearest(name, [*_METHODS, "reshape", "transpose", "ravel"], 0.8)
    raise UnknownArrayFunction(
        f"arrays have no {name!r} here",
        hint=_OTHERWISE.get(name)
        or (f"there is {near!r}" if near else "write it with functions of NumPy"),
    )


def _called(known: Callable[..., Any], name: str, args: Sequence[Any], keywords: Any) -> Any:
    """Call what stands for a function of NumPy; no keyword is ignored."""
    args, keywords, out = present(tuple(args)), present(dict(keywords)), None
    accepted = inspect.signature(known).parameters
    kept = {}
    for key, value in keywords.items():
        if key in accepted:
            kept[key] = value
        elif key == "out" and value is not None:
            out = _out_of(value, name)
        elif key not in ("out", *_EMPTY) or value not in (None, _EMPTY.get(key)):
            raise _keyword(name, key, accepted)
    try:
        bound = inspect.signature(known).bind(*args, **kept)
    except TypeError as error:
        raise UnknownArrayFunction(f"np.{name}: {error}") from error
    zero_dimensional.along_all(name, bound)
    made = _applied(known, f"np.{name}", bound.args, bound.kwargs)
    if out is not None:
        return _stored(out, made, name)
    return augmented_assignment.viewing(name, args[0] if args else None, made)


def _out_of(given: Any, name: str) -> Array | None:
    """Return the array that a function is to write into: one that the function has made."""
    out = given if isinstance(given, tuple) else (given,)
    if all(x is None for x in out):
        return None
    if len(out) == 1 and isinstance(out[0], Array) and item_assignment.is_made(out[0]):
        return out[0]
    raise ImmutableArray(
        f"np.{name} is to write into `out`: arrays are values here",
        hint=f"use what it returns: y = np.{name}(...); or give what the function has made",
    )


def _stored(out: Array, made: Any, name: str) -> Array:
    """Return the array that is written into, as it is then."""
    kind = lift(made).dtype
    if not np.can_cast(kind.numpy(), out.dtype.numpy(), "same_kind"):
        raise UnknownArrayFunction(
            f"np.{name} gives {kind}, and `out` has elements of {out.dtype}",
            hint=f'let `out` be of "{kind}"',
        )
    _applied(item_assignment.copyto, f"np.{name}(..., out=...)", (out, made), {})
    return out


def _applied(
    known: Callable[..., Any], what: str, args: Sequence[Any], keywords: Mapping[str, Any]
) -> Any:
    """Return what a function makes of arguments; those that make no sense are refused."""
    try:
        return known(*args, **keywords)
    except (TypeError, ValueError, LookupError, ArithmeticError, AttributeError) as error:
        if isinstance(error, TileError):
            raise
        raise UnknownArrayFunction(
            f"{what}: {error}", hint="NumPy's page of it says which it takes"
        ) from error


def taken(x: Array, key: Any) -> Array:
    """Return ``x[key]``."""
    made: Array = _applied(indexing.taken, "x[...]", (x.usable(), key), {})
    keys = key if isinstance(key, tuple) else (key,)
    is_number = not made.ndim and not any(k is Ellipsis for k in keys)
    if not is_number and not any(isinstance(k, (list, np.ndarray, Array)) for k in keys):
        augmented_assignment.viewing("x[...]", x, made)  # arrays of indices copy
        made.key = (key,)
    return made


def assign(x: Array, key: Any, value: Any) -> None:
    """Let `x` be what it is after ``x[key] = value``."""
    _applied(item_assignment.assign, "x[...] =", (x, key, value), {})


def changed(ufunc: Any, x: Array, other: Any) -> Array:
    """Return what takes the place of `x` after ``x += other``."""
    return augmented_assignment.changed(
        lambda f, args: call_ufunc(f, "__call__", args, {}), ufunc, x, other
    )


def _written(what: str) -> ImmutableArray:
    return ImmutableArray(
        f"{what} writes into an array: arrays are values here",
        hint="np.where or np.concatenate make a new array",
    )


def _sized_by_data(what: str) -> DataDependentShape:
    return DataDependentShape(
        f"how many elements {what} gives is known only when the kernel runs",
        hint="np.where keeps the shape",
    )


def _unknown(name: str) -> UnknownArrayFunction:
    last = name.rsplit(".", 1)[-1]
    # what NumPy has is no misspelling of another one
    near = None if hasattr(np, last) else nearest(last, [*FUNCTIONS, *UFUNCS], 0.8)
    hint = f"np.{near} can" if near else _OTHERWISE.get(last)
    return UnknownArrayFunction(
        f"np.{name} cannot be captured"
        if hasattr(np, name.split(".")[0])
        else f"{name} cannot be captured",
        hint=hint or "write it with functions that can, or call it outside",
    )


def _keyword(name: str, keyword: str, accepted: Any) -> UnknownArrayFunction:
    near = nearest(keyword, accepted)
    return UnknownArrayFunction(
        f"np.{name} has no keyword {keyword!r} here",
        hint=f"there is {near!r}" if near else "leave it out",
    )


class _OfSizes:
    """A ufunc that takes sizes that are symbols, too."""

    def __init__(self, ufunc: Any) -> None:
        self._ufunc = ufunc

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __call__(self, *args: Any, **keywords: Any) -> Any:
        return self._ufunc(*(lift(x) if isinstance(x, Size) else x for x in args), **keywords)


class Namespace:
    """NumPy, with functions that make arrays captured."""

    def __getattr__(self, name: str) -> Any:
        """Return what is captured under a name, else NumPy's own."""
        created, known = creation.CREATED.get(name), FUNCTIONS.get(name)
        if created is None and known is None:
            is_asked = CONDITIONS.get() is not None and name in UFUNCS
            return _OfSizes(getattr(np, name)) if is_asked else getattr(np, name)

        def call(*args: Any, **keywords: Any) -> Any:
            if created is not None:
                return _called(created, name, args, keywords)
            assert known is not None
            if creation.holds_arrays([*args, *keywords.values()]):
                if args and name in _METHODS:  # of one array: numbers in a list are one
                    args = (creation.array(args[0]), *args[1:])
                return _called(known, name, args, keywords)
            return getattr(np, name)(*args, **keywords)

        return call


NAMESPACE = Namespace()
"""What `np` means inside of a captured function."""
