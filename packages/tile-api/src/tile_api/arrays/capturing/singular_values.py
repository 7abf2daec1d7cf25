"""Eigenvalues of symmetric matrices and singular values, by rotations as Jacobi's: recurrences.

A step rotates all columns, in pairs; each is paired with every other one in a sweep. What rotations
leave beside the diagonal, or of the angles between columns, shrinks the faster the smaller it is.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tile_api.arrays.capturing.creation import arange, eye
from tile_api.arrays.capturing.elementwise import astype, lift
from tile_api.arrays.capturing.factorisations import as_matrices, qr
from tile_api.arrays.capturing.scan import scan
from tile_api.arrays.capturing.views import broadcast_to
from tile_core.errors import ArrayShapeError, UnknownArrayFunction


class EighResult(NamedTuple):
    """What `numpy.linalg.eigh` returns."""

    eigenvalues: Any
    eigenvectors: Any


class SVDResult(NamedTuple):
    """What `numpy.linalg.svd` returns."""

    U: Any
    S: Any
    Vh: Any


def _sweeps(n: int, dtype: Any) -> int:
    return (5 if str(dtype) == "float32" else 7) + math.ceil(math.log2(n))


def _rotated(step: Any, init: Any, n: int, dtype: Any) -> Any:
    """Return what is carried after all sweeps; a step takes the partner of each column."""
    if n < 2:
        return init
    around = n - 1 + n % 2
    rows: Any = arange(n)

    def turned(carried: Any, k: Any) -> tuple[Any, None]:
        alone = k * ((around + 1) // 2) % around  # it would be its own partner
        partner = (k - rows) % around
        if n % 2 == 0:
            partner = np.where(rows == alone, n - 1, np.where(rows == n - 1, alone, partner))
        return step(carried, partner), None

    steps: Any = arange(around * _sweeps(n, dtype))
    return scan(turned, init, steps % around)[0]


def _rotation(own: Any, others: Any, both: Any, partner: Any) -> tuple[Any, Any]:
    """Return cosine and sine of each column, by what the matrix of a pair has.

    The smaller one of two angles: one of more than 45 degrees would exchange them.
    """
    rows: Any = arange(int(own.shape[-1]))
    apart = others - own
    is_first = (apart > 0) | ((apart == 0) & (rows < partner))
    # Rounded otherwise than in the other column, it would turn the two by different angles.
    both = np.where(rows < partner, both, np.take(both, partner, -1))
    is_done = (partner == rows) | (both == 0)
    size = np.abs(apart) + np.hypot(apart, 2 * both)
    found = 2 * both / np.where(is_done, 1, size)
    tangent = np.where(is_done, 0, np.where(is_first, found, -found))
    cosine = 1 / np.sqrt(1 + tangent * tangent)
    return cosine, cosine * tangent


def _columns(x: Any, partner: Any, cosine: Any, sine: Any) -> Any:
    """Return a matrix with columns turned."""
    return x * cosine[..., None, :] - np.take(x, partner, -1) * sine[..., None, :]


def _unit(a: Any) -> Any:
    n = int(a.shape[-1])
    return broadcast_to(eye(n, dtype=str(a.dtype)), (*a.shape[:-2], n, n))


def _symmetric(a: Any) -> Any:
    """Return the symmetric matrix of a lower triangle."""
    return np.tril(a) + np.swapaxes(np.tril(a, -1), -1, -2)


def eigh(a: Any, UPLO: str = "L") -> EighResult:
    """`numpy.linalg.eigh`: reads one triangle; each vector may have the other sign."""
    a = as_matrices(a, "eigh")
    if UPLO not in ("L", "U", "l", "u"):
        raise UnknownArrayFunction(f"np.linalg.eigh: UPLO is {UPLO!r}", hint="'L' or 'U'")
    a = _symmetric(np.swapaxes(a, -1, -2) if UPLO in ("U", "u") else a)

    def step(carried: Any, partner: Any) -> Any:
        a, v = carried
        own, across = np.diagonal(a, 0, -2, -1), np.take(a, partner, -1)
        both = np.diagonal(across, 0, -2, -1)
        by = _rotation(own, np.take(own, partner, -1), both, partner)
        half = np.swapaxes(_columns(a, partner, *by), -1, -2)
        return np.swapaxes(_columns(half, partner, *by), -1, -2), _columns(v, partner, *by)

    if not a.shape[-1]:
        return EighResult(a.sum(-1), a)
    found, v = _rotated(step, (a, _unit(a)), int(a.shape[-1]), a.dtype)
    values = np.diagonal(found, 0, -2, -1)
    order = np.argsort(values, -1)
    vectors = np.take_along_axis(v, order[..., None, :], -1)
    return EighResult(np.take_along_axis(values, order, -1), vectors)


def eigvalsh(a: Any, UPLO: str = "L") -> Any:
    """`numpy.linalg.eigvalsh`."""
    return eigh(a, UPLO).eigenvalues


def _orthogonal(a: Any) -> tuple[Any, Any, Any]:
    """Return the columns of `a v`, which are orthogonal, their lengths and `v`; longest first."""
    largest = np.abs(a).max((-2, -1), keepdims=True)  # squares of it may be infinite, or 0
    scale = np.where(largest == 0, 1, largest)

    def step(carried: Any, partner: Any) -> Any:
        u, v = carried
        own, others = (u * u).sum(-2), np.take(u, partner, -1)
        both = (u * others).sum(-2)
        by = _rotation(own, np.take(own, partner, -1), both, partner)
        return _columns(u, partner, *by), _columns(v, partner, *by)

    u, v = _rotated(step, (a / scale, _unit(a)), int(a.shape[-1]), a.dtype)
    lengths = np.sqrt((u * u).sum(-2))
    order = np.argsort(-lengths, -1)
    u, v = (np.take_along_axis(x, order[..., None, :], -1) for x in (u, v))
    return u * scale, np.take_along_axis(lengths, order, -1) * scale[..., 0], v


def svdvals(x: Any, /) -> Any:
    """`numpy.linalg.svdvals`."""
    a = as_matrices(x, "svdvals", is_square=False)
    if 0 in a.shape[-2:]:
        return a.sum(-1 if not a.shape[-1] else -2)[..., :0]
    tall = a if a.shape[-2] >= a.shape[-1] else np.swapaxes(a, -1, -2)
    return _orthogonal(tall)[1]


def svd(
    a: Any, full_matrices: bool = True, compute_uv: bool = True, hermitian: bool = False
) -> Any:
    """`numpy.linalg.svd`: vectors of a pair may both have the other sign."""
    a = as_matrices(a, "svd", is_square=False)
    a = _symmetric(a) if hermitian else a
    if not compute_uv:
        return svdvals(a)
    m, n = map(int, a.shape[-2:])
    if m < n:
        v, s, uh = svd(np.swapaxes(a, -1, -2), full_matrices)
        return SVDResult(np.swapaxes(uh, -1, -2), s, np.swapaxes(v, -1, -2))
    if not n:
        unit = np.swapaxes(_unit(np.swapaxes(a, -1, -2)), -1, -2)
        return SVDResult(unit if full_matrices else a, svdvals(a), _unit(a))
    found, s, v = _orthogonal(a)
    # Columns of length 0 have no direction: these are those of an orthogonal matrix.
    q, r = qr(found, "complete" if full_matrices else "reduced")
    is_turned = (np.diagonal(r, 0, -2, -1) < 0)[..., None, :]
    if full_matrices and m > n:
        kept = [(0, 0)] * (a.ndim - 1)
        is_turned = np.pad(is_turned, [*kept, (0, m - n)])
    return SVDResult(np.where(is_turned, -q, q), s, np.swapaxes(v, -1, -2))


def _cut(s: Any, rcond: Any, size: int) -> Any:
    """Return where singular values count."""
    by = np.finfo(str(s.dtype)).eps * size if rcond is None else rcond
    return s > np.asarray(by)[..., None] * s.max(-1, keepdims=True)


def _inverse(a: Any, rcond: Any, size: int) -> tuple[Any, Any, Any]:
    """Return the pseudo-inverse, with the singular values, and which of them count."""
    is_wide = a.shape[-2] < a.shape[-1]
    u, s, v = _orthogonal(np.swapaxes(a, -1, -2) if is_wide else a)
    counts = _cut(s, rcond, size)
    by = np.where(counts, 1 / np.where(counts, s, 1), 0)
    found = np.matmul(v * by[..., None, :], np.swapaxes(u * by[..., None, :], -1, -2))
    return np.swapaxes(found, -1, -2) if is_wide else found, s, counts


def pinv(a: Any, rcond: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """`numpy.linalg.pinv`."""
    a = as_matrices(a, "pinv", is_square=False)
    if 0 in a.shape[-2:]:
        return np.swapaxes(a, -1, -2)
    a = _symmetric(a) if hermitian else a
    default = 1e-15 if rtol is None else rtol
    return _inverse(a, default if rcond is None else rcond, 1)[0]


def lstsq(a: Any, b: Any, rcond: Any = None) -> tuple[Any, Any, Any, Any]:
    """`numpy.linalg.lstsq`; there are residuals as if no column depended on others."""
    a, right = as_matrices(a, "lstsq", is_square=False), lift(b)
    if a.ndim != 2 or right.ndim not in (1, 2):
        raise ArrayShapeError(
            "np.linalg.lstsq is of one matrix, and of vectors in one or two dimensions"
        )
    m, n = map(int, a.shape)
    if right.shape[0] != m:
        raise ArrayShapeError(f"np.linalg.lstsq: {right.shape[0]} rows for a matrix of {m}")
    if not m or not n:
        raise ArrayShapeError("np.linalg.lstsq of a matrix without elements")
    by = np.finfo(str(a.dtype)).eps if rcond == -1 else rcond
    inverse, s, counts = _inverse(a, by, max(m, n))
    x = np.matmul(inverse, right)
    rest = right - np.matmul(a, x)
    columns = (rest * rest).sum(0)
    squares = columns[None] if right.ndim == 1 else columns
    return x, squares if m > n else squares[:0], astype(counts.sum(), "int32"), s


def matrix_rank(A: Any, tol: Any = None, hermitian: bool = False, *, rtol: Any = None) -> Any:
    """`numpy.linalg.matrix_rank`."""
    a: Any = lift(A)
    if a.ndim < 2:
        return astype((a != 0).any(), "int64")
    s = svdvals(_symmetric(a) if hermitian else a)
    if not s.shape[-1]:
        return astype(s.sum(-1), "int64")
    counts = _cut(s, rtol, max(a.shape[-2:])) if tol is None else s > np.asarray(tol)[..., None]
    return counts.sum(-1)


def cond(x: Any, p: Any = None) -> Any:
    """`numpy.linalg.cond`: by singular values, or norms of the matrix and its inverse."""
    if p in (None, 2, -2):
        s = svdvals(x)
        return s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    a = as_matrices(x, "cond")
    return np.linalg.norm(a, p, (-2, -1)) * np.linalg.norm(np.linalg.inv(a), p, (-2, -1))
