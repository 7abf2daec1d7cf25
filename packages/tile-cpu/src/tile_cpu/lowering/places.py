"""Where the elements of a tile buffer lie in flat memory."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import Extent
from tile_core.tir.nodes import PrimExpr, TirBuffer
from tile_cpu.lowering.types import number

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Place:
    """A tile buffer as a flat TIR buffer and the distances between its elements.

    Parameters
    ----------
    flat
        One-dimensional TIR buffer of the memory type.
    dtype
        The element type in tile IR.
    strides
        Distance in elements along each dimension; ints where static.
    index
        TIR type of offsets: int64 where an offset may not fit 32 bits.
    packing
        Elements per stored unit: 2 for four-bit elements in packed storage.
    base, base_shape
        For a view of storage that is not contiguous: the place and extents of the storage.
    """

    flat: TirBuffer
    dtype: DType
    strides: tuple[Any, ...]
    index: str = "int32"
    packing: int = 1
    base: Place | None = None
    base_shape: tuple[Any, ...] = ()

    def offset(self, indices: Sequence[PrimExpr]) -> PrimExpr:
        """Return the flat position of an element among those of this place.

        `indices` have the type `index`. With a `base` the position counts row by row and is
        not yet an offset in memory.
        """
        total: Any = None
        for index, stride in zip(indices, self.strides, strict=True):
            term = index if isinstance(stride, int) and stride == 1 else index * stride
            total = term if total is None else total + term
        return number(0, self.index) if total is None else total


def row_major(shape: Sequence[Any]) -> tuple[Any, ...]:
    """Return the strides of a contiguous box, last dimension fastest."""
    strides: list[Any] = []
    step: Any = 1
    for extent in reversed(shape):
        strides.append(step)
        step = step * extent
    return tuple(reversed(strides))


def index_type(buffer: Buffer) -> str:
    """Return the TIR type in which offsets into `buffer` are computed exactly."""
    if buffer.static_shape is None:
        return "int64"
    strides = buffer.strides
    if strides is None:
        size = math.prod(buffer.static_shape)
        return "int32" if size <= INT32_LIMIT else "int64"
    steps = [static_value(s) for s in strides]
    if any(s is None for s in steps):
        return "int64"
    far = sum((e - 1) * abs(s or 0) for e, s in zip(buffer.static_shape, steps, strict=True))
    return "int32" if far < INT32_LIMIT else "int64"


def extents(shape: Sequence[Extent], emit: Any) -> tuple[Any, ...]:
    """Return `shape` with run-time extents emitted by ``emit(expr)``, ints as they are."""
    result: list[Any] = []
    for extent in shape:
        fixed = static_value(extent)
        result.append(emit(extent) if fixed is None else fixed)
    return tuple(result)
