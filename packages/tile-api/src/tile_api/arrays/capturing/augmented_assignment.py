"""``y += 1``: a new array under the names of the old one; and what shares memory with what."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import astype
from tile_api.arrays.capturing.item_assignment import refuse_argument, replace
from tile_api.arrays.equations.dims import told
from tile_api.frontend.source import calling_span
from tile_core.errors import ArrayShapeError, UnknownArrayFunction

VIEWS = frozenset(
    {"transpose", "swapaxes", "moveaxis", "reshape", "expand_dims", "squeeze", "broadcast_to",
     "flip", "rot90", "diagonal", "split", "array_split", "unstack", "ravel", "permute_dims",
     "matrix_transpose", "atleast_1d", "atleast_2d", "atleast_3d", "hsplit", "vsplit", "flipud",
     "fliplr", "asarray", "diag", "x[...]", "view", "_unsafe_view", "permute", "t", "unsqueeze",
     "expand", "flatten", "unflatten", "narrow", "select", "slice", "split_with_sizes", "chunk",
     "unbind", "alias", "as_strided", "detach", "movedim", "view_as", "contiguous"}
)  # fmt: skip
"""Functions of NumPy and torch whose results share the memory of their arguments."""
SIGNS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "floor_divide": "//",
    "remainder": "%", "power": "**", "matmul": "@", "bitwise_and": "&", "bitwise_or": "|",
    "bitwise_xor": "^", "left_shift": "<<", "right_shift": ">>",
}  # fmt: skip


def viewing(name: str, of: Any, made: Any) -> Any:
    """Return what a function made, which remembers of what it is a view."""
    if name in VIEWS and isinstance(of, Array):
        for x in made if isinstance(made, (list, tuple)) else [made]:
            if isinstance(x, Array) and x is not of:
                x.base = of.usable()
    return made


def changed(call: Callable[[Any, Sequence[Any]], Array], ufunc: Any, x: Array, other: Any) -> Array:
    """Return what stands under the name of `x` after ``x += other``.

    What was computed from `x` before stays as it was, and other names of it and its views change
    with it, as in NumPy. An argument is refused.

    Parameters
    ----------
    call
        Captures the ufunc.
    """
    sign, span = SIGNS[ufunc.__name__], calling_span()
    old = x.usable()
    refuse_argument(old, f"{sign}= writes into the argument", f"make a new array: y = x {sign} ...")
    made = call(ufunc, (old, other))
    if tuple(made.shape) != tuple(x.shape):
        raise ArrayShapeError(
            f"{sign}= makes shape {told(made.shape)} of {told(x.shape)}", span=span,
            hint=f"make a new array: y = x {sign} ...",
        )  # fmt: skip
    if not np.can_cast(made.dtype.numpy(), x.dtype.numpy(), "same_kind"):
        raise UnknownArrayFunction(
            f"{sign}= makes {made.dtype} of {x.dtype}", span=span, hint="cast with astype before"
        )
    made = astype(made, x.dtype) if made.dtype != x.dtype else made
    if x.ndim:
        replace(old, made, span)
        return x
    old.is_changed, old.changed_at = True, span  # NumPy has a number there, or an array
    return made
