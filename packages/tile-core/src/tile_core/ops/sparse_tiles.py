"""Tiles of which every second element in a group is left out, and how they are written out."""

from __future__ import annotations

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.build_expr import as_expr, binary, cast, const, select
from tile_core.ir.expr import BinaryOp, Expr, Load, Var
from tile_core.ir.stmt import Parallel, Store
from tile_launch.errors import Span

NIBBLE = 4
"""Bits of the metadata that tell of one group."""


def group_of(dtype: DType) -> int:
    """Return how many neighbours along K share 4 bits of metadata."""
    return 2 if dtype.bits == 32 else 4


def described_by(meta: DType, dtype: DType) -> int:
    """Return how many elements of a dense row one element of the metadata tells of."""
    return meta.bits // NIBBLE * group_of(dtype)


def with_zeros(
    kept: Region,
    meta: Region,
    dense: Buffer,
    *,
    transposed: bool = False,
    transposed_meta: bool = False,
    span: Span | None = None,
) -> Parallel:
    """Return the loop that puts every element at its place, and zeros at the others.

    Before   kept = [a, b],  meta = [0b1101]  (the places 1 and 3 of a group)
    After    dense = [0, a, 0, b]

    The elements kept, [..., M, K / 2], are in memory that every thread can read; `dense`, [M, K],
    is shared; both have these extents the other way round if `transposed`. `meta`, integers of
    [..., M, K / f], or [..., K / f, M] if `transposed_meta`, has 4 bits for each group, the first
    in the lowest: the place of the first element kept, then that of the second. Of elements of 32
    bits, bit 1 is the place.
    """
    int32 = dtype_of("int32")
    places = Var("i", int32), Var("k", int32)
    row, k = reversed(places) if transposed else places
    group, each = group_of(kept.buffer.dtype), meta.buffer.dtype.bits // NIBBLE
    number, place = k // group, k % group
    word = _element(meta, transposed_meta, row, number // each)
    # of bits of metadata as an integer nobody looks at the upper ones
    wide = cast(word, "int64" if word.dtype.bits > 32 else "int32")
    code = (wide >> number % each * NIBBLE) & 15
    first = code & 3
    zero = const(0, dense.dtype)
    if group == 2:
        value: Expr = _element(kept, transposed, row, number)
        value = select(_is(first >> 1, place), value, zero)
    else:
        second = _element(kept, transposed, row, number * 2 + 1)
        value = select(_is(code >> 2, place), second, zero)
        value = select(_is(first, place), _element(kept, transposed, row, number * 2), value)
    extents = tuple(const(n) for n in dense.static_shape or ())
    return Parallel(places, extents, Store(dense, places, value, span=span), span=span)


def _is(code: Expr, place: Expr) -> Expr:
    return binary(BinaryOp.EQ, cast(code, str(place.dtype)), place)


def _element(region: Region, transposed: bool, row: Expr, column: Expr) -> Load:
    at = (column, row) if transposed else (row, column)
    last = [binary(BinaryOp.ADD, s, x) for s, x in zip(region.starts[-2:], at, strict=True)]
    lead = [as_expr(start) for start in region.starts[:-2]]
    return Load(region.buffer, (*lead, *last), span=region.span)
