"""Zero-dimensional arrays: NumPy and torch take dimension 0 or -1 of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from tile_api.arrays.capturing import views
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import lift

_OF_ALL = frozenset({
    "argmax", "argmin", "argpartition", "argsort", "cumprod", "cumsum", "nanargmax", "nanargmin",
    "nancumprod", "nancumsum", "repeat", "squeeze", "take",
})  # fmt: skip
_OF_ONE = frozenset({
    "_log_softmax", "_softmax", "all", "amax", "amin", "any", "argmax", "argmin", "argsort",
    "cummax", "cummin", "cumprod", "cumsum", "flip", "gather", "index_select", "kthvalue",
    "linalg_vector_norm", "log_softmax", "logcumsumexp", "logsumexp", "max", "mean", "median",
    "min", "prod", "softmax", "sort", "squeeze", "std", "sum", "topk", "var", "var_mean",
})  # fmt: skip


def along_all(name: str, bound: inspect.BoundArguments) -> None:
    """Let a function of NumPy that takes dimension 0 of none go along all."""
    if name in _OF_ALL and _is_asked(bound, "axis"):
        bound.arguments["axis"] = None


def takes_one(name: str, bound: inspect.BoundArguments) -> bool:
    """Tell whether a function of torch is to take a tensor without dimensions as of one element."""
    return name in _OF_ONE and (_is_asked(bound, "dim") or _is_asked(bound, "dims"))


def _is_asked(bound: inspect.BoundArguments, key: str) -> bool:
    bound.apply_defaults()
    first, asked = next(iter(bound.arguments.values()), None), bound.arguments.get(key)
    along = list(asked) if isinstance(asked, (list, tuple)) else [asked]
    return isinstance(first, Array) and not first.ndim and along in ([0], [-1])


def of_one(known: Callable[..., Any], bound: inspect.BoundArguments) -> Any:
    """Return what a function of torch gives of tensors of one element, without dimensions."""
    for key, x in bound.arguments.items():
        if getattr(x, "ndim", None) == 0:
            bound.arguments[key] = views.reshape(lift(x), [1])
    made = known(*bound.args, **bound.kwargs)
    if isinstance(made, Array):
        return views.reshape(made, [])
    parts = [views.reshape(x, []) for x in made]
    return type(made)(*parts) if hasattr(made, "_fields") else tuple(parts)
