"""Where the elements of a tile buffer lie in flat memory, and which layouts it follows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import AddressOf, BinaryOp, Extent
from tile_core.ir.operations import BINARY
from tile_core.ir.stmt import Kernel
from tile_core.layout import Layout, evaluate
from tile_core.passes.infer_layouts import Layouts
from tile_core.records import dataclass
from tile_cpu.lowering.types import number
from tile_cpu.tir.nodes import PrimExpr, TirBuffer, tirx
from tile_cpu.vectors import floor_div, floor_mod

INT32_LIMIT = 2**31 - 1


@dataclass(frozen=True, slots=True)
class FlatBuffer:
    """A tile buffer as a flat TIR buffer and the distances between its elements.

    Scratch that is not stored by rows has a `layout`; `strides` are those of rows then, without
    meaning in memory.
    """

    flat: TirBuffer  # one-dimensional, of the memory type
    dtype: DType  # in tile IR
    strides: tuple[Any, ...]  # in elements along each dimension; ints where static
    index: str = "int32"  # TIR type of offsets: int64 where one may not fit 32 bits
    packing: int = 1  # elements per stored unit: 2 for four-bit elements in packed storage
    layout: Layout | None = None

    def offset(self, indices: Sequence[PrimExpr]) -> PrimExpr:
        """Return the flat position of an element; `indices` have the type `index`."""
        if self.layout is not None:
            return address(self.layout, indices, self.index)
        total: Any = None
        for index, stride in zip(indices, self.strides, strict=True):
            term = index if isinstance(stride, int) and stride == 1 else index * stride
            total = term if total is None else total + term
        return number(0, self.index) if total is None else total


def laid_out(place: FlatBuffer, layout: Layout) -> FlatBuffer:
    """Return `place` with its elements where `layout` puts them."""
    strides = row_strides(layout)
    return replace(place, layout=layout) if strides is None else replace(place, strides=strides)


def row_strides(layout: Layout) -> tuple[int, ...] | None:
    """Return the distances along the dimensions if rows are runs of consecutive elements."""
    found = layout.affine()
    if found is None or found[0] != 0 or not layout.is_injective():
        return None
    strides = found[1]
    if strides and layout.shape[-1] == 1:
        strides = (*strides[:-1], 1)  # where there is one column, its distance is free
    return strides if strides and strides[-1] == 1 else None


def address(layout: Layout, indices: Sequence[PrimExpr], kind: str) -> PrimExpr:
    """Return the flat offset of the element at `indices`, none of them negative.

    Divisions by powers of two become shifts: TVM's floor divisions take long to lower.
    """

    def divide(op: BinaryOp, by_shift: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda a, b: (BINARY[op] if isinstance(a, int) else by_shift)(a, b)

    def extreme(op: Callable[[Any, Any], Any]) -> Callable[[Any, Any], Any]:
        return lambda a, b: op(_value(a, kind), _value(b, kind))

    operators = BINARY | {
        BinaryOp.FLOORDIV: divide(BinaryOp.FLOORDIV, floor_div),
        BinaryOp.FLOORMOD: divide(BinaryOp.FLOORMOD, floor_mod),
        BinaryOp.MIN: extreme(tirx.Min),
        BinaryOp.MAX: extreme(tirx.Max),
    }
    return _value(evaluate(layout.linear_index_expr(), indices, operators), kind)


def _value(x: Any, kind: str) -> Any:
    return number(x, kind) if isinstance(x, int) else x


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
    known = ((extent, static_value(extent)) for extent in shape)
    return tuple(emit(extent) if fixed is None else fixed for extent, fixed in known)


def admits_in(kernel: Kernel) -> Callable[[Buffer, Layout], bool]:
    """Return the test whether an annotated tile of `kernel` is stored as annotated.

    Rows must stay rows, of consecutive elements: any distance apart, so padding is followed.
    What the swizzles and fragments of GPUs are for, banks of memory and registers of
    threads, does not exist here, and they would tear vectors apart. Tiles that are also seen
    through views, or whose address is handed out, stay as they are.
    """
    fixed: set[Buffer] = set()
    for access in accesses(kernel.body):
        is_address = isinstance(access.node, AddressOf) and access.mode is not Mode.ATOMIC
        if is_address or access.buffer.origin is not None:
            fixed.add(access.buffer.storage)

    def admits(buffer: Buffer, layout: Layout) -> bool:
        is_plain = buffer.origin is None and buffer not in fixed and buffer.dtype.packing == 1
        is_tile = is_plain and not buffer.scope.is_thread_private
        return is_tile and row_strides(layout) is not None

    return admits


def special_layouts(layouts: Layouts) -> dict[Buffer, Layout]:
    """Return what is not stored row by row without gaps."""
    return {
        buffer: layout
        for buffer, layout in layouts.known.items()
        if isinstance(layout, Layout)
        and (layout.cosize != layout.size or not _counts_elements(layout))
    }


def _counts_elements(layout: Layout) -> bool:
    strides, step = row_strides(layout), 1
    if strides is None:
        return layout.size == 1
    for extent, stride in zip(reversed(layout.shape), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True
