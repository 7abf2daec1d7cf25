"""What `numpy.linalg` has: norms, products under its names, and factorisations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

import numpy as np

from tile_api.arrays.capturing import (
    decompositions,
    factorisations,
    folds,
    joins,
    products,
    singular_values,
    views,
)
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import astype, lift
from tile_api.arrays.capturing.folds import Axes, axes_of
from tile_core.errors import ArrayShapeError, UnknownArrayFunction


def cross(x1: Any, x2: Any, *, axis: int = -1) -> Array:
    """`numpy.linalg.cross`: of vectors of three dimensions alone."""
    for x in map(lift, (x1, x2)):
        size = int(x.shape[views.axis_of(axis, x.ndim)])
        if size != 3:
            raise ArrayShapeError(f"np.linalg.cross: vectors of {size} dimensions, not of 3")
    return decompositions.cross(x1, x2, axis=axis)


def norm(x: Any, ord: Any = None, axis: Axes = None, keepdims: bool = False) -> Array:
    """`numpy.linalg.norm`, but for those of matrices that need singular values."""
    a = lift(x)
    over = axes_of(axis, a.ndim)
    if ord is None and axis is None:
        return vector_norm(a, keepdims=keepdims)
    if len(over) == 1:
        return vector_norm(a, axis=over[0], keepdims=keepdims, ord=2 if ord is None else ord)
    if len(over) != 2:
        raise ArrayShapeError(f"np.linalg.norm is of vectors or matrices, not of {len(over)} axes")
    return _matrix_norm(a, over, ord, keepdims)


def vector_norm(x: Any, *, axis: Axes = None, keepdims: bool = False, ord: Any = 2) -> Array:
    """`numpy.linalg.vector_norm`."""
    a: Any = lift(x)
    a = a if a.dtype.is_float else astype(a, "float64")
    if ord == 2:
        return folds.root(folds.sum(a * a, axis, keepdims=keepdims))
    if ord == 0:
        return astype(folds.count_nonzero(a, axis, keepdims=keepdims), a.dtype)
    size = np.abs(a)
    if ord == np.inf:
        return _largest(size, axis, keepdims)
    if ord == -np.inf:
        return folds.min(size, axis, keepdims=keepdims)
    if not isinstance(ord, (int, float)):
        raise UnknownArrayFunction(f"np.linalg.norm: vectors have no norm {ord!r}")
    made = folds.sum(size if ord == 1 else size**ord, axis, keepdims=keepdims)
    return made if ord == 1 else folds.root(made, ord)


def _largest(x: Array, axis: Axes, keepdims: bool) -> Array:
    """Return the largest of what is not negative, 0 of none."""
    return folds.max(x, axis, keepdims=keepdims, initial=0 if 0 in x.shape else None)


def matrix_norm(x: Any, *, keepdims: bool = False, ord: Any = "fro") -> Array:
    """`numpy.linalg.matrix_norm`: of the last two dimensions."""
    a = lift(x)
    return _matrix_norm(a, axes_of((-2, -1), a.ndim), ord, keepdims)


def _matrix_norm(a: Array, over: list[int], ord: Any, keepdims: bool) -> Array:
    if ord in (None, "fro"):
        return vector_norm(a, axis=over, keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        s = singular_values.svdvals(views.moveaxis(a, over, (-2, -1)))
        made = folds.sum(s, -1) if ord == "nuc" else s[..., 0 if ord == 2 else -1]
        return views.expand_dims(made, over) if keepdims else made
    if ord not in (1, -1, np.inf, -np.inf):
        raise UnknownArrayFunction(
            f"np.linalg.norm: matrices have no norm {ord!r}",
            hint="there are 'fro', 'nuc', 1, -1, 2, -2, np.inf and -np.inf",
        )
    inner, outer = over if abs(ord) == 1 else over[::-1]
    sums = vector_norm(a, axis=inner, keepdims=True, ord=1)
    found = _largest(sums, outer, True) if ord > 0 else folds.min(sums, outer, keepdims=True)
    return found if keepdims else views.squeeze(found, over)


LINALG: Mapping[str, Callable[..., Any]] = MappingProxyType(
    {
        "norm": norm,
        "vector_norm": vector_norm,
        "matrix_norm": matrix_norm,
        "cross": cross,
        "solve": factorisations.solve,
        "inv": factorisations.inv,
        "det": factorisations.det,
        "slogdet": factorisations.slogdet,
        "cholesky": factorisations.cholesky,
        "qr": factorisations.qr,
        "eigh": singular_values.eigh,
        "eigvalsh": singular_values.eigvalsh,
        "svd": singular_values.svd,
        "svdvals": singular_values.svdvals,
        "pinv": singular_values.pinv,
        "lstsq": singular_values.lstsq,
        "matrix_rank": singular_values.matrix_rank,
        "cond": singular_values.cond,
        "matmul": products.matmul,
        "matrix_power": decompositions.matrix_power,
        "multi_dot": decompositions.multi_dot,
        "outer": products.outer,
        "vecdot": products.vecdot,
        "tensordot": lambda x1, x2, *, axes=2: products.tensordot(x1, x2, axes),
        "matrix_transpose": lambda x: views.swapaxes(x, -1, -2),
        "diagonal": lambda x, *, offset=0: joins.diagonal(x, offset, -2, -1),
        "trace": lambda x, *, offset=0, dtype=None: products.trace(x, offset, -2, -1, dtype),
    }
)
"""Functions of `numpy.linalg` by name; of those that `numpy` has, too, some differ from it."""
