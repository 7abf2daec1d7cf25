"""NumPy's functions by name: what is captured when one is called with a captured array."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from tile_api.arrays import creation, equations, folds, indexing, products, views
from tile_api.arrays.array import Array
from tile_api.arrays.elementwise import UFUNCS, apply, broadcast, lift, promoted, spread
from tile_api.arrays.equations import Expr
from tile_api.arrays.indexing import taken
from tile_api.frontend.source import calling_span
from tile_core.dtypes import dtype_of
from tile_core.errors import ImmutableArray, UnknownArrayFunction


def where(condition: Any, x: Any, y: Any) -> Array:
    """`numpy.where` of three arrays."""
    mask, one, other = lift(condition), lift(x), lift(y)
    shape = broadcast([mask.shape, one.shape, other.shape], "np.where")
    _, dtype = (
        promoted("add", (x, y), (one, other))
        if not (one.dtype.is_bool and other.dtype.is_bool)
        else ([], one.dtype)
    )

    def at(indices: Any) -> Expr:
        return equations.where(
            mask.read_as(equations.BOOL, spread(mask, indices)),
            one.read_as(dtype, spread(one, indices)),
            other.read_as(dtype, spread(other, indices)),
        )

    return Array(shape, dtype, at)


def clip(a: Any, a_min: Any = None, a_max: Any = None) -> Array:
    """`numpy.clip`."""
    x = lift(a)
    if a_min is not None:
        x = apply(UFUNCS["maximum"], "maximum", (x, a_min))
    if a_max is not None:
        x = apply(UFUNCS["minimum"], "minimum", (x, a_max))
    return x


def astype(x: Any, dtype: Any) -> Array:
    """`numpy.astype`: a float of fewer than 32 bits is rounded here, and nowhere else."""
    array = lift(x)
    kind = dtype_of(str(np.dtype(dtype) if not isinstance(dtype, str) else dtype))
    return Array(array.shape, kind, lambda indices: equations.cast(array.at(indices), kind))


FUNCTIONS: dict[str, Callable[..., Array]] = {
    f.__name__: f
    for f in (
        views.transpose, views.swapaxes, views.moveaxis, views.reshape, views.expand_dims,
        views.squeeze, views.broadcast_to, views.repeat, views.tile, views.flip, views.roll,
        views.concatenate, views.stack, indexing.take, indexing.take_along_axis, folds.sum,
        folds.prod, folds.max, folds.min, folds.mean, folds.var, folds.std, folds.any, folds.all,
        folds.argmax, folds.argmin, products.matmul, products.einsum, products.vecdot,
        products.dot, products.tensordot, where, clip, astype, creation.zeros_like,
        creation.ones_like, creation.full_like, creation.tril, creation.triu,
    )
}  # fmt: skip
FUNCTIONS |= {
    "amax": folds.max,
    "amin": folds.min,
    "permute_dims": views.transpose,
    "matrix_transpose": lambda x: views.swapaxes(x, -1, -2),
    "concat": views.concatenate,
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
_ALIASES = {"true_divide": "divide", "abs": "absolute", "conjugate": "positive"}
_METHODS = frozenset(
    {"sum", "prod", "max", "min", "mean", "var", "std", "any", "all", "argmax", "argmin",
     "swapaxes", "squeeze", "repeat", "take", "astype", "clip", "dot"}
)  # fmt: skip
_EMPTY: Mapping[str, Any] = {"order": "C", "casting": "same_kind", "subok": True}
"""Keywords that mean nothing here if they are what NumPy has anyway."""


def call_ufunc(ufunc: Any, method: str, inputs: Sequence[Any], keywords: dict[str, Any]) -> Any:
    """Return what a ufunc, or its `reduce` or `outer`, gives."""
    name = _ALIASES.get(ufunc.__name__, ufunc.__name__)
    if any(x is not None for x in keywords.pop("out", None) or ()):
        raise ImmutableArray(
            f"np.{name} is to write into `out`: arrays are values here",
            span=calling_span(),
            hint="use what it returns",
        )
    if method == "reduce" and name in _REDUCED:
        keywords = {k: v for k, v in keywords.items() if v is not None or k == "axis"}
        keywords.setdefault("axis", 0)
        return _called(_REDUCED[name], f"{name}.reduce", inputs, keywords)
    if method == "outer" and name in UFUNCS and len(inputs) == 2:
        x, y = map(lift, inputs)
        wide = views.reshape(x, [*x.shape, *[1] * y.ndim])
        return call_ufunc(ufunc, "__call__", (wide, y), keywords)
    if method != "__call__":
        raise _unknown(f"{name}.{method}")
    if name == "matmul":
        return _called(products.matmul, name, inputs, keywords)
    if name == "vecdot":
        return _called(products.vecdot, name, inputs, keywords)
    if name not in UFUNCS:
        raise _unknown(name)
    rest = {k for k, v in keywords.items() if k not in _EMPTY or v != _EMPTY[k]}
    if rest:
        raise _keyword(name, sorted(rest)[0], ())
    return apply(UFUNCS[name], name, inputs)


def call_function(function: Any, args: Sequence[Any], keywords: Mapping[str, Any]) -> Any:
    """Return what any other function of NumPy gives."""
    name = function.__name__
    known = FUNCTIONS.get(name)
    if known is None or getattr(function, "__module__", "numpy") != "numpy":
        raise _unknown(
            f"{function.__module__.removeprefix('numpy.')}.{name}".removeprefix("numpy.")
        )
    return _called(known, name, args, keywords)


def method(array: Array, name: str) -> Callable[..., Any]:
    """Return a method of arrays."""
    if name == "reshape":
        return lambda *shape: views.reshape(array, shape[0] if len(shape) == 1 else shape)
    if name == "transpose":
        return lambda *axes: views.transpose(
            array, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes or None
        )
    if name in ("ravel", "flatten"):
        return lambda: views.reshape(array, -1)
    if name in _METHODS:
        return lambda *args, **keywords: _called(FUNCTIONS[name], name, (array, *args), keywords)
    if name.startswith("__"):
        raise AttributeError(name)
    near = difflib.get_close_matches(name, [*_METHODS, "reshape", "transpose", "ravel"], 1)
    raise UnknownArrayFunction(
        f"arrays have no {name!r} here",
        span=calling_span(),
        hint=f"there is {near[0]!r}"
        if near
        else "see the list of NumPy's functions that are known",
    )


def _called(known: Callable[..., Any], name: str, args: Sequence[Any], keywords: Any) -> Any:
    """Call what stands for a function of NumPy; no keyword is ignored."""
    accepted = inspect.signature(known).parameters
    kept = {}
    for key, value in keywords.items():
        if key in accepted:
            kept[key] = value
        elif key == "out" and value is not None:
            raise ImmutableArray(
                f"np.{name} is to write into `out`: arrays are values here",
                span=calling_span(),
                hint="use what it returns",
            )
        elif key not in ("out", *_EMPTY) or value not in (None, _EMPTY.get(key)):
            raise _keyword(name, key, accepted)
    try:
        inspect.signature(known).bind(*args, **kept)
    except TypeError as error:
        raise UnknownArrayFunction(f"np.{name}: {error}", span=calling_span()) from error
    return known(*args, **kept)


def _unknown(name: str) -> UnknownArrayFunction:
    last = name.rsplit(".", 1)[-1]
    near = difflib.get_close_matches(last, [*FUNCTIONS, *UFUNCS], 1)
    return UnknownArrayFunction(
        f"np.{name} cannot be captured",
        span=calling_span(),
        hint=f"np.{near[0]} can"
        if near
        else "write it with functions that can, or call it outside",
    )


def _keyword(name: str, keyword: str, accepted: Any) -> UnknownArrayFunction:
    near = difflib.get_close_matches(keyword, accepted, 1)
    return UnknownArrayFunction(
        f"np.{name} has no keyword {keyword!r} here",
        span=calling_span(),
        hint=f"there is {near[0]!r}" if near else "leave it out",
    )


__all__ = ["FUNCTIONS", "call_function", "call_ufunc", "method", "taken"]
