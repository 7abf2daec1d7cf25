"""Sums of products: matmul, einsum and their like are one form."""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping, Sequence
from typing import Any

from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.elementwise import apply, astype, common_type, lift
from tile_api.arrays.capturing.folds import sum
from tile_api.arrays.capturing.joins import diagonal
from tile_api.arrays.capturing.misfits import misfit
from tile_api.arrays.capturing.ufuncs import UFUNCS
from tile_api.arrays.capturing.views import axis_of, expand_dims, reshape, transpose
from tile_api.arrays.equations import expressions as eq
from tile_api.arrays.equations.dims import joined, size_told, variable_of
from tile_api.arrays.equations.expressions import Expr, Indices, const
from tile_api.arrays.equations.sizes import whole
from tile_core.dtypes import dtype_of
from tile_core.errors import ArrayShapeError, UnknownArrayFunction


def contracted(
    arrays: Sequence[Array], subscripts: Sequence[str], output: str, sizes: Mapping[str, int],
    given: Sequence[Any],
) -> Array:  # fmt: skip
    """Return the sum of products of elements over every letter that the output lacks.

    Parameters
    ----------
    subscripts
        A letter for each dimension of each array; equal letters are one index.
    sizes
        By letter; a dimension of size 1 is read at 0.
    given
        The operands as they were passed: numbers are weak.
    """
    dtype = common_type(given, arrays)
    if dtype.is_narrow_float:  # as NumPy does with them
        dtype = dtype_of("float32")
    if dtype.is_bool:  # any of all: counted
        numbers = [astype(x, "int32") for x in arrays]
        counted = contracted(numbers, subscripts, output, sizes, numbers)
        return astype(counted, "bool")
    summed = [c for c in dict.fromkeys("".join(subscripts)) if c not in output]

    def at(indices: Indices) -> Expr:
        if any(sizes[c] == 0 for c in summed):
            return const(0, eq.computed_in(dtype))
        where = dict(zip(output, indices, strict=True))
        names: list[str] = []
        for c in summed:
            taken = frozenset(names).union(*(i.free for i in indices))
            names.append(variable_of(sizes[c], taken))
            where[c] = const(0) if sizes[c] == 1 else eq.index(names[-1], whole(sizes[c]))
        read = [
            x.read_as(
                dtype,
                tuple(
                    const(0) if n == 1 else where[c] for c, n in zip(letters, x.shape, strict=True)
                ),
            )
            for x, letters in zip(arrays, subscripts, strict=True)
        ]
        for c, name in reversed([*zip(summed, names, strict=True)]):
            if sizes[c] != 1:
                read = _summed(read, name, whole(sizes[c]))
        return functools.reduce(eq.multiply, read)

    return Array([sizes[c] for c in output], dtype, at)


def _summed(factors: Sequence[Expr], variable: str, extent: int) -> list[Expr]:
    """Return the factors of a sum of products: those that the variable does not change stay out.

    What is left is a product of two matrices, or of few: `ij,jk,kl->il` multiplies twice.
    """
    inside = [x for x in factors if variable in x.free] or [*factors]
    made = eq.reduce("sum", variable, extent, functools.reduce(eq.multiply, inside))
    return [made, *(x for x in factors if x not in inside)]


def _sizes(arrays: Sequence[Array], subscripts: Sequence[str], what: str) -> dict[str, int]:
    sizes: dict[str, int] = {}
    for x, letters in zip(arrays, subscripts, strict=True):
        for c, n in zip(letters, x.shape, strict=True):
            known = sizes.get(c, 1)
            if known != 1 and n not in (1, known):
                raise misfit(
                    what, [y.shape for y in arrays],
                    f"do not fit: {size_told(known)} and {size_told(n)}", arrays=arrays,
                )  # fmt: skip
            sizes[c] = n if known == 1 else known if n == 1 else joined(known, n)
    return sizes


def matmul(x1: Any, x2: Any) -> Array:
    """`numpy.matmul`."""
    x, y = lift(x1), lift(x2)
    if not x.ndim or not y.ndim:
        raise ArrayShapeError("np.matmul: an operand without dimensions", hint="multiply with *")
    left = x if x.ndim > 1 else expand_dims(x, 0)
    right = y if y.ndim > 1 else expand_dims(y, 1)
    if left.shape[-1] != right.shape[-2]:
        raise misfit(
            "np.matmul", [x.shape, y.shape],
            f"do not fit: {whole(left.shape[-1])} columns, {whole(right.shape[-2])} rows",
            arrays=(x, y), hint="np.swapaxes(y, -1, -2) exchanges rows and columns",
        )  # fmt: skip
    batch = _LETTERS[: max(left.ndim, right.ndim) - 2]
    one = batch[len(batch) - left.ndim + 2 :] + "ik"
    other = batch[len(batch) - right.ndim + 2 :] + "kj"
    sizes = _sizes((left, right), (one, other), "np.matmul")
    made = contracted((left, right), (one, other), batch + "ij", sizes, (x1, x2))
    shape = list(made.shape)
    if x.ndim == 1:
        del shape[-2]
    if y.ndim == 1:
        del shape[-1]
    return made if len(shape) == made.ndim else reshape(made, shape)


_LETTERS = "abcdefghlmnopqrstuvwxyz"


def einsum(subscripts: str, *operands: Any, optimize: Any = False) -> Array:
    """`numpy.einsum` with letters; ``...`` stands for dimensions that are broadcast.

    `optimize` means nothing: it is for kernels to choose an order.
    """
    if not isinstance(subscripts, str):
        raise UnknownArrayFunction("np.einsum without letters")
    arrays = [lift(x) for x in operands]
    text = subscripts.replace(" ", "")
    if re.sub(r"->|\.\.\.|,|[A-Za-z]", "", text):
        raise UnknownArrayFunction(
            f"np.einsum of {subscripts!r}",
            hint="letters, commas, ... and one ->, as in 'ij,jk->ik'",
        )
    inputs, arrow, output = text.partition("->")
    parts = inputs.split(",")
    if len(parts) != len(arrays):
        raise ArrayShapeError(f"np.einsum: {len(parts)} groups of letters, {len(arrays)} arrays")
    free = [c for c in "ABCDEFGHIJKLMNOPQRSTUVWXYZ" if c not in text]
    most = 0
    for k, (part, x) in enumerate(zip(parts, arrays, strict=True)):
        rest = x.ndim - len(part.replace("...", ""))
        if rest < 0 or (rest and "..." not in part):
            raise ArrayShapeError(f"np.einsum: {part!r} for an array of {x.ndim} dimensions")
        most = rest if rest > most else most
        parts[k] = part.replace("...", "".join(free[:rest][::-1]))
    batch = "".join(free[:most][::-1])
    if not arrow:
        letters = "".join(c for p in parts for c in p if c not in batch)
        output = batch + "".join(c for c in sorted(set(letters)) if letters.count(c) == 1)
    output = output.replace("...", batch)
    strange = set(output) - set("".join(parts))
    if strange or len(set(output)) != len(output):
        raise ArrayShapeError(f"np.einsum: the result {output!r} of {inputs!r}")
    return contracted(arrays, parts, output, _sizes(arrays, parts, "np.einsum"), operands)


def vecdot(x1: Any, x2: Any, *, axis: int = -1) -> Array:
    """`numpy.vecdot` of real arrays."""
    x, y = lift(x1), lift(x2)
    one = transpose(x, _last(axis, x.ndim))
    other = transpose(y, _last(axis, y.ndim))
    return einsum("...i,...i->...", one, other)


def _last(axis: int, rank: int) -> list[int]:
    along = axis_of(axis, rank)
    return [*(k for k in range(rank) if k != along), along]


def dot(a: Any, b: Any) -> Array:
    """`numpy.dot`."""
    x, y = lift(a), lift(b)
    if not x.ndim or not y.ndim:
        return apply(UFUNCS["multiply"], "multiply", (x, y))
    if x.ndim > 2 or y.ndim > 2:
        return tensordot(x, y, (-1, -2 if y.ndim > 1 else -1))
    return matmul(x, y)


def inner(a: Any, b: Any) -> Array:
    """`numpy.inner`."""
    x, y = lift(a), lift(b)
    if not x.ndim or not y.ndim:
        return apply(UFUNCS["multiply"], "multiply", (x, y))
    return tensordot(x, y, (-1, -1))


def outer(a: Any, b: Any) -> Array:
    """`numpy.outer`."""
    rows, columns = reshape(a, (-1, 1)), reshape(b, (1, -1))
    return apply(UFUNCS["multiply"], "multiply", (rows, columns))


def kron(a: Any, b: Any) -> Array:
    """`numpy.kron`."""
    x, y = lift(a), lift(b)
    rank = max(x.ndim, y.ndim)
    mine, theirs = ([*[1] * (rank - z.ndim), *z.shape] for z in (x, y))
    rows = reshape(x, [k for n in mine for k in (n, 1)])
    columns = reshape(y, [k for n in theirs for k in (1, n)])
    made = apply(UFUNCS["multiply"], "multiply", (rows, columns))
    return reshape(made, [n * m for n, m in zip(mine, theirs, strict=True)])


def vdot(a: Any, b: Any) -> Array:
    """`numpy.vdot` of real arrays."""
    return matmul(reshape(a, -1), reshape(b, -1))


def matvec(x1: Any, x2: Any) -> Array:
    """`numpy.matvec`."""
    return einsum("...ij,...j->...i", x1, x2)


def vecmat(x1: Any, x2: Any) -> Array:
    """`numpy.vecmat`."""
    return einsum("...i,...ij->...j", x1, x2)


def trace(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None) -> Array:
    """`numpy.trace`."""
    return sum(diagonal(a, offset, axis1, axis2), -1, dtype)


def tensordot(a: Any, b: Any, axes: int | Sequence[Any] = 2) -> Array:
    """`numpy.tensordot`."""
    x, y = lift(a), lift(b)
    if isinstance(axes, int):
        mine, theirs = list(range(x.ndim - axes, x.ndim)), list(range(axes))
    else:
        mine, theirs = ([k] if isinstance(k, int) else list(k) for k in axes)
    if len(mine) != len(theirs) or len(mine) > min(x.ndim, y.ndim):
        raise ArrayShapeError(
            f"np.tensordot: {len(mine)} axes of one array, {len(theirs)} of the other, which have "
            f"{x.ndim} and {y.ndim}"
        )
    mine = [axis_of(k, x.ndim) for k in mine]
    theirs = [axis_of(k, y.ndim) for k in theirs]
    one = list(_LETTERS[: x.ndim])
    other = list(_LETTERS[x.ndim : x.ndim + y.ndim])
    for p, q in zip(mine, theirs, strict=True):
        other[q] = one[p]
    output = [c for k, c in enumerate(one) if k not in mine]
    output += [c for k, c in enumerate(other) if k not in theirs]
    return einsum(f"{''.join(one)},{''.join(other)}->{''.join(output)}", x, y)
