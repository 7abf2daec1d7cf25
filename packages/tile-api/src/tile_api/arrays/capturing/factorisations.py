"""Factorisations of `numpy.linalg`, and what they solve: recurrences along a matrix's columns.

A kernel cannot raise on what its data says. Where NumPy raises `LinAlgError`, of singular
matrices and of those that are not positive definite, results hold infinities or NaN.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tile_api.arrays.capturing.creation import arange, eye
from tile_api.arrays.capturing.elementwise import astype, lift
from tile_api.arrays.capturing.joins import stack
from tile_api.arrays.capturing.scan import scan
from tile_api.arrays.capturing.views import broadcast_to
from tile_core.errors import ArrayShapeError, FrontendTypeError, UnknownArrayFunction

WRITTEN_OUT = 2
"""Columns of matrices whose steps are written out."""


class SlogdetResult(NamedTuple):
    """What `numpy.linalg.slogdet` returns."""

    sign: Any
    logabsdet: Any


class QRResult(NamedTuple):
    """What `numpy.linalg.qr` returns."""

    Q: Any
    R: Any


def as_matrices(x: Any, name: str, *, is_square: bool = True) -> Any:
    """Return matrices of `float32` or `float64`, as NumPy computes with."""
    a: Any = lift(x)
    if a.ndim < 2:
        raise ArrayShapeError(f"np.linalg.{name} is of matrices, not of {a.ndim} dimensions")
    if is_square and a.shape[-1] != a.shape[-2]:
        raise ArrayShapeError(
            f"np.linalg.{name} is of square matrices, not of {a.shape[-2]} x {a.shape[-1]}"
        )
    if not a.dtype.is_float:
        return astype(a, "float64")
    if str(a.dtype) not in ("float32", "float64"):
        raise FrontendTypeError(
            f"np.linalg.{name} of {a.dtype}, which NumPy does not factorise",
            hint='a.astype("float32") has a factorisation',
        )
    return a


def _stepped(step: Any, init: Any, count: int, *, is_backward: bool = False) -> tuple[Any, Any]:
    """Return what is carried from column to column, and what all steps give.

    A few steps are written out: they may stand in the steps of another recurrence, as of a filter.
    """
    if count > WRITTEN_OUT:
        rows: Any = arange(count)
        return scan(step, init, rows[::-1] if is_backward else rows)
    found = []
    for k in reversed(range(count)) if is_backward else range(count):
        init, of_step = step(init, k)
        found.append(of_step)
    return init, None if found[0] is None else stack(found)


def _row(a: Any, at: Any) -> Any:
    """Return a row of each matrix, at places that differ from matrix to matrix."""
    return np.take_along_axis(a, at[..., None, None], -2)[..., 0, :]


def _eliminated(a: Any, of: int) -> tuple[Any, Any]:
    """Return matrices with zeros below the diagonal of `of` columns, and whether rows changed.

    Steps choose the largest element of a column on and below the diagonal, as LAPACK's `getrf`;
    columns beside those of the matrix are changed with it. What is 1 of each step, or -1, is the
    sign of its change of rows.
    """
    rows: Any = arange(of)

    def step(a: Any, k: Any) -> tuple[Any, Any]:
        column = np.take(a, k, -1)
        at = np.argmax(np.where(rows >= k, np.abs(column), -1), -1)
        pivots, replaced = _row(a, at), np.take(a, k, -2)
        a = np.where((rows == at[..., None])[..., None], replaced[..., None, :], a)
        a = np.where((rows == k)[:, None], pivots[..., None, :], a)
        by = np.take(a, k, -1) / np.take(pivots, k, -1)[..., None]
        below = a - by[..., None] * pivots[..., None, :]
        return np.where((rows > k)[:, None], below, a), np.where(at == k, 1, -1)

    return _stepped(step, a, of)


def _solved(u: Any, b: Any) -> Any:
    """Return what upper triangular matrices take to `b`, from the last row to the first."""
    n = int(u.shape[-1])
    rows: Any = arange(n)

    def step(x: Any, k: Any) -> tuple[Any, None]:
        row = np.where(rows > k, np.take(u, k, -2), 0)
        rest = np.take(b, k, -2) - np.matmul(row[..., None, :], x)[..., 0, :]
        found = rest / np.take(np.take(u, k, -2), k, -1)[..., None]
        return np.where((rows == k)[:, None], found[..., None, :], x), None

    return _stepped(step, np.zeros_like(b), n, is_backward=True)[0]


def solve(a: Any, b: Any) -> Any:
    """`numpy.linalg.solve`: by elimination with pivots; not finite where `a` is singular."""
    a, right = as_matrices(a, "solve"), lift(b)
    if right.ndim == 1:
        return solve(a, right[:, None])[..., 0]
    right = as_matrices(right, "solve", is_square=False)
    n, columns = int(a.shape[-1]), int(right.shape[-1])
    if right.shape[-2] != n:
        raise ArrayShapeError(
            f"np.linalg.solve: {right.shape[-2]} rows on the right of a matrix of {n}"
        )
    batch = np.broadcast_shapes(a.shape[:-2], right.shape[:-2])
    both = (np.broadcast_to(a, (*batch, n, n)), np.broadcast_to(right, (*batch, n, columns)))
    if not n:
        return both[1] + both[0].sum((-1, -2))[..., None, None]
    changed, _ = _eliminated(np.concatenate(both, -1), n)
    return _solved(changed[..., :n], changed[..., n:])


def inv(a: Any) -> Any:
    """`numpy.linalg.inv`: not finite where `a` is singular."""
    a = as_matrices(a, "inv")
    return solve(a, eye(int(a.shape[-1]), dtype=str(a.dtype)))


def slogdet(a: Any) -> SlogdetResult:
    """`numpy.linalg.slogdet`."""
    a = as_matrices(a, "slogdet")
    n = int(a.shape[-1])
    if not n:
        none = a.sum((-1, -2))
        return SlogdetResult(none + 1, none)
    changed, signs = _eliminated(a, n)
    pivots = np.diagonal(changed, 0, -2, -1)
    sign = np.sign(pivots).prod(-1) * astype(signs.prod(0), a.dtype)
    return SlogdetResult(sign, np.log(np.abs(pivots)).sum(-1))


def det(a: Any) -> Any:
    """`numpy.linalg.det`."""
    a = as_matrices(a, "det")
    n = int(a.shape[-1])
    if not n:
        return a.sum((-1, -2)) + 1
    changed, signs = _eliminated(a, n)
    return np.diagonal(changed, 0, -2, -1).prod(-1) * astype(signs.prod(0), a.dtype)


def cholesky(a: Any, /, *, upper: bool = False) -> Any:
    """`numpy.linalg.cholesky`: reads one triangle; NaN where `a` is not positive definite."""
    a = as_matrices(a, "cholesky")
    if upper:
        return np.swapaxes(cholesky(np.swapaxes(a, -1, -2)), -1, -2)
    n = int(a.shape[-1])
    if not n:
        return a
    rows: Any = arange(n)

    def step(a: Any, k: Any) -> tuple[Any, Any]:
        column = np.take(a, k, -1)
        column = np.where(rows >= k, column / np.sqrt(np.take(column, k, -1))[..., None], 0)
        return a - column[..., :, None] * column[..., None, :], column

    return np.moveaxis(_stepped(step, a, n)[1], 0, -1)


def qr(a: Any, mode: str = "reduced") -> Any:
    """`numpy.linalg.qr`: by Householder reflections, with LAPACK's signs."""
    if mode not in ("reduced", "complete", "r"):
        raise UnknownArrayFunction(
            f"np.linalg.qr: no mode {mode!r} here", hint="'reduced', 'complete' and 'r' there are"
        )
    a = as_matrices(a, "qr", is_square=False)
    m, n = map(int, a.shape[-2:])
    kept = m if mode == "complete" else min(m, n)
    rows: Any = arange(m)
    unit: Any = broadcast_to(eye(m, dtype=str(a.dtype)), (*a.shape[:-2], m, m))
    if not min(m, n):
        q, r = unit[..., :kept], a[..., :kept, :]
        return r if mode == "r" else QRResult(q, r)

    def step(carried: Any, k: Any) -> tuple[Any, None]:
        column = np.where(rows >= k, np.take(carried, k, -1), 0)
        largest = np.abs(column).max(-1, keepdims=True)  # squares of it may be infinite, or 0
        column = column / np.where(largest == 0, 1, largest)
        head = np.take(column, k, -1)
        is_done = (np.where(rows > k, column, 0) == 0).all(-1)  # there is nothing to reflect
        size = np.sqrt((column * column).sum(-1))
        normal = column + np.where(rows == k, np.where(head < 0, -size, size)[..., None], 0)
        square = (normal * normal).sum(-1)
        by = np.where(is_done, 0, 2 / np.where(is_done, 1, square))
        found = np.matmul(normal[..., None, :], carried)
        return carried - by[..., None, None] * normal[..., :, None] * found, None

    both, _ = _stepped(step, np.concatenate([a, unit], -1), min(m, n))
    r = np.triu(both[..., :kept, :n])
    if mode == "r":
        return r
    return QRResult(np.swapaxes(both[..., :kept, n:], -1, -2), r)
