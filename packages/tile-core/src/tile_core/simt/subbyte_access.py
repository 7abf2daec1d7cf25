"""Elements narrower than a byte: how they are stored, read, written and computed with.

Four-bit elements of tensors share bytes, low nibble first. In tiles and registers each narrow
element has a byte of its own, its bits lowest. Computations use a wider type, the *carrier*,
that holds every value exactly; each result is brought back to the values of its own type.
"""

from __future__ import annotations

from tile_core.dtypes import DType, dtype_of
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, cast, const, integer_bounds, maximum, minimum
from tile_core.ir.device import device
from tile_core.ir.expr import AddressOf, BinaryOp, Bitcast, Cast, Const, Expr, Load
from tile_core.ir.stmt import Evaluate, Store

BYTE, INT, FLOAT = (dtype_of(n) for n in ("uint8", "int32", "float32"))


def is_packed(buffer: Buffer) -> bool:
    """Whether two elements share a byte, the first in its low bits.

    So do 4-bit elements of tensors, and those that are seen in the bytes of a tile.
    """
    if buffer.dtype.bits != 4:
        return False
    return buffer.scope is Scope.GLOBAL or buffer.storage.dtype.bits >= 8


def storage_dtype(dtype: DType, scope: Scope) -> DType:
    """Return the element type of the memory that holds elements of `dtype`.

    Tensors of 4-bit elements are bytes of two elements; tiles give each element a byte of
    its own, and so do tensors of 6-bit elements.
    """
    return BYTE if is_narrow(dtype) else dtype


def is_narrow(dtype: DType) -> bool:
    """Whether elements have fewer bits than a byte."""
    return dtype.bits < 8 and not dtype.is_bool


def carrier(dtype: DType) -> DType:
    """Return the type that values of `dtype` are computed with in; usually itself."""
    if not is_narrow(dtype):
        return dtype
    return (FLOAT if dtype.is_float else INT).with_lanes(dtype.lanes)


def carried(value: Expr, dtype: DType) -> Expr:
    """Return a value of `dtype` in its carrier."""
    return cast(value, carrier(dtype))


def named(value: Expr, dtype: DType) -> Expr:
    """Return a value in its carrier as that of a scalar of type `dtype` that is given a name."""
    return Cast(dtype, value) if is_narrow(dtype) else value


def settled(value: Expr, dtype: DType, *, saturate: bool = True) -> Expr:
    """Return `value`, of any type, converted to the narrow `dtype`, in its carrier.

    Integers wrap; floats that become integers saturate; narrow floats round once.
    """
    if dtype.is_float:
        return Cast(FLOAT, Cast(dtype, value, saturate))
    if value.dtype.is_float:
        low, high = integer_bounds(dtype)
        return minimum(maximum(cast(value, INT), low), high)
    return _signed(cast(value, INT) & 15, dtype)


def converted(value: Expr, dtype: DType) -> Expr:
    """Return `value`, in its carrier, converted to `dtype`, in the carrier of that."""
    return settled(value, dtype) if is_narrow(dtype) else cast(value, dtype)


def unpacked(bits: Expr, dtype: DType) -> Expr:
    """Return the value, in its carrier, of an element whose stored bits are `bits`."""
    if not is_narrow(dtype):
        return bits
    if dtype.is_float:
        return Cast(FLOAT, Bitcast(dtype, cast(bits, BYTE)))
    return _signed(cast(bits, INT), dtype)


def _signed(low: Expr, dtype: DType) -> Expr:
    """Return the four bits `low` as a number of `dtype`."""
    return low if dtype.kind.value == "uint" else (low ^ 8) - 8


def packed(value: Expr, dtype: DType) -> Expr:
    """Return the stored bits, as a byte, of a value in its carrier."""
    if not is_narrow(dtype):
        return value
    if isinstance(value, Const) and value.value == 0 and not str(value.value).startswith("-"):
        return const(0, BYTE)
    if dtype.is_float:
        return Bitcast(BYTE, Cast(dtype, value))
    return cast(value & 15, BYTE)


def nibble(flat: Buffer, offset: Expr) -> Expr:
    """Return the bits of element `offset` of a tensor of packed elements, as a byte."""
    return cast((_byte(flat, offset) >> _shift(offset)) & 15, BYTE)


def put_nibble(flat: Buffer, offset: Expr, bits: Expr) -> Store:
    """Return the store of one element of a tensor of packed elements.

    The other element of the byte is read and written back: both must be of one thread.
    """
    kept = _byte(flat, offset) & (const(240) >> _shift(offset))
    both = kept | (cast(bits, INT) << _shift(offset))
    return Store(flat, (binary(BinaryOp.FLOORDIV, offset, 2),), cast(both, BYTE))


def put_nibble_apart(flat: Buffer, offset: Expr, bits: Expr) -> Evaluate:
    """Return the store of one element of a tensor of packed elements, and of nothing else.

    Another thread may store the other element of the byte at any time.
    """
    byte = AddressOf(flat, (binary(BinaryOp.FLOORDIV, offset, 2),), "rw")
    return Evaluate(device("store_nibble", byte, _shift(offset), cast(bits, BYTE)))


def _byte(flat: Buffer, offset: Expr) -> Expr:
    return cast(Load(flat, (binary(BinaryOp.FLOORDIV, offset, 2),)), INT)


def _shift(offset: Expr) -> Expr:
    """Return how far the bits of an element are from the low end of its byte."""
    return cast(binary(BinaryOp.FLOORMOD, offset, 2), INT) * 4
