"""Builders that serial forms share: loop nests, element indices, accumulators."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import as_expr, cast, const
from tile_core.ir.expr import Expr, Extent, Load, Var
from tile_core.ir.stmt import For, Seq, Stmt, Store

FLOAT32 = dtype_of("float32")


def index_dtype(extents: Sequence[Extent]) -> DType:
    """Return the dtype of loop indices that run to `extents`: int64 if one of them is."""
    wide = any(isinstance(e, Expr) and e.dtype.bits == 64 for e in extents)
    return dtype_of("int64" if wide else "int32")


def nest(
    extents: Sequence[Extent], body: Callable[[tuple[Var, ...]], Stmt], names: str = "ijklmnop"
) -> Stmt:
    """Return loops from 0 to each of `extents`, outermost first, around ``body(indices)``."""
    dtype = index_dtype(extents)
    indices = tuple(Var(names[k % len(names)], dtype) for k in range(len(extents)))
    stmt = body(indices)
    for var, extent in zip(reversed(indices), reversed(extents), strict=True):
        stmt = count(var, extent, stmt)
    return stmt


def count(var: Var, extent: Extent, body: Stmt) -> For:
    """Return ``for var in range(extent): body``."""
    stop = cast(as_expr(extent, var.dtype), var.dtype)
    return For(var, const(0, var.dtype), stop, const(1, var.dtype), body)


def element(
    region: Region, axes: Sequence[int | None], indices: Sequence[Expr]
) -> tuple[Expr, ...]:
    """Return the buffer indices of one element of `region`.

    ``axes[d]`` is the position in `indices` that moves along dimension `d`, or None where
    the region stays at its start.
    """
    result: list[Expr] = []
    for start, axis in zip(region.starts, axes, strict=True):
        base = as_expr(start)
        result.append(base if axis is None else base + indices[axis])
    return tuple(result)


def load(region: Region, axes: Sequence[int | None], indices: Sequence[Expr]) -> Load:
    """Return one element of `region`; see `element`."""
    return Load(region.buffer, element(region, axes, indices))


def store(
    region: Region, axes: Sequence[int | None], indices: Sequence[Expr], value: Expr
) -> Store:
    """Return the store of `value`, converted, to one element of `region`; see `element`."""
    buffer = region.buffer
    return Store(buffer, element(region, axes, indices), cast(value, buffer.dtype))


def matrix_axes(region: Region) -> tuple[int | None, ...]:
    """Return the axes of a matrix operand: leading dimensions stay, the last two move."""
    return (*(None for _ in region.extents[:-2]), 0, 1)


def accumulator(name: str, dtype: DType) -> Buffer:
    """Return a scalar variable in which values of `dtype` are combined.

    Floats of 16 bits and fewer are combined in float32 and rounded once, at the end.
    """
    wide = FLOAT32 if dtype.is_float and dtype.bits <= 16 else dtype
    return Buffer(name, (1,), wide, Scope.VAR)


def read(cell: Buffer) -> Load:
    """Return the value of a scalar variable."""
    return Load(cell, (const(0),))


def write(cell: Buffer, value: Expr) -> Store:
    """Return the assignment of `value`, converted, to a scalar variable."""
    return Store(cell, (const(0),), cast(value, cell.dtype))


def seq(*body: Stmt) -> Seq:
    """Return the statements in order."""
    return Seq(tuple(body))
