"""Other views of the same memory: reshaped, retyped, at an address."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeAlias

from tile_api.frontend.builder import current
from tile_api.frontend.types import as_dtype, as_extent, as_shape
from tile_api.frontend.values import BufferValue, as_buffer, as_value
from tile_api.language import arithmetic
from tile_api.language.operands import address, choice, element, here
from tile_api.language.tensor import Tensor
from tile_core.dtypes import DType, dtype_of
from tile_core.errors import FrontendTypeError, FrontendValueError, Note, ViewMismatch
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.expr import AddressOf, Binary, BinaryOp, Bitcast, Const, Extent

__all__ = [
    "access_ptr", "address_of", "index_to_coordinates", "make_tensor", "make_tensor_from_addr",
    "match_buffer", "reshape", "tvm_access_ptr", "view",
]  # fmt: skip


def reshape(src: Any, shape: Any) -> BufferValue:
    """Return a view of `src` with another shape: the same elements in row-major order.

    Parameters
    ----------
    shape
        Its extents multiply to the number of elements; one may be -1, meaning the rest.

    Raises
    ------
    ViewMismatch
        If the numbers of elements differ, or cannot be shown to be equal.
    """
    base = as_buffer(src, "the operand of T.reshape")
    return _view("T.reshape", base, _filled(base, shape), base.dtype)


def view(src: Any, shape: Any = None, dtype: Any = None, strides: Any = None) -> BufferValue:
    """Return a view of the bits of `src` with another shape, element type, or both.

    Parameters
    ----------
    shape
        By default that of `src`, the last extent scaled to the new element type.
    dtype
        By default that of `src`.
    strides
        If given, those of row-major order: views are contiguous.

    Raises
    ------
    ViewMismatch
        If the views do not cover the same bits, or `src` is not contiguous.
    """
    base = as_buffer(src, "the operand of T.view")
    element_type = base.dtype if dtype is None else as_dtype(dtype, "the dtype given to T.view")
    extents = _rescaled(base, element_type) if shape is None else as_shape(shape, "the view")
    result = _view("T.view", base, extents, element_type)
    if strides is not None:
        _check_contiguous_strides(result, as_shape(strides, "the strides"))
    return result


def _view(name: str, base: Buffer, shape: tuple[Extent, ...], dtype: DType) -> BufferValue:
    if base.strides is not None:
        raise _mismatch(name, base, shape, dtype, "its elements are not contiguous")
    if not _same_bits(base, shape, dtype):
        raise _mismatch(name, base, shape, dtype, "the sizes in bits differ")
    builder = current()
    node = Buffer(
        builder.take_hint(f"{base.name}_view"),
        shape,
        dtype,
        base.scope,
        origin=base,
        span=builder.span,
    )
    return BufferValue(node)


def _mismatch(
    name: str, base: Buffer, shape: tuple[Extent, ...], dtype: DType, why: str
) -> ViewMismatch:
    return ViewMismatch(
        f"{name} cannot show {base.name!r}, {_text(base.dtype, base.shape)}, as "
        f"{_text(dtype, shape)}: {why}",
        notes=(Note(f"{base.name} is declared here", base.span),),
        hint="extents times bits per element must stay the same",
    )


def _text(dtype: DType, shape: tuple[Extent, ...]) -> str:
    known = (static_value(e) for e in shape)
    return f"{dtype}[{', '.join('?' if e is None else str(e) for e in known)}]"


def _same_bits(base: Buffer, shape: tuple[Extent, ...], dtype: DType) -> bool:
    """Whether both products of extents are provably equal: they are the same sum of products."""
    bits, other_bits = base.dtype.bits * base.dtype.lanes, dtype.bits * dtype.lanes
    return _product([bits, *base.shape]) == _product([other_bits, *shape])


_Terms: TypeAlias = Mapping[tuple[int, ...], int]
"""A sum of products of symbols: the factor of each product, whose symbols are told by identity."""


def _product(extents: Iterable[Extent]) -> _Terms:
    made: _Terms = {(): 1}
    for extent in extents:
        made = _times(made, _terms(extent))
    return made


def _times(one: _Terms, other: _Terms) -> _Terms:
    made = Counter[tuple[int, ...]]()
    for (symbols, number), (others, factor) in itertools.product(one.items(), other.items()):
        made[tuple(sorted((*symbols, *others)))] += number * factor
    return {symbols: number for symbols, number in made.items() if number}


def _terms(extent: Extent) -> _Terms:
    known = static_value(extent)
    if known is not None:
        return {(): known} if known else {}
    if isinstance(extent, Binary) and extent.op is BinaryOp.MUL:
        return _times(_terms(extent.a), _terms(extent.b))
    if isinstance(extent, Binary) and extent.op in (BinaryOp.ADD, BinaryOp.SUB):
        made = Counter(_terms(extent.a))
        sign = 1 if extent.op is BinaryOp.ADD else -1
        for symbols, number in _terms(extent.b).items():
            made[symbols] += sign * number
        return {symbols: number for symbols, number in made.items() if number}
    return {(id(extent),): 1}


def _filled(base: Buffer, shape: Any) -> tuple[Extent, ...]:
    """Return the extents, an entry -1 replaced by what is left."""
    items = list(shape) if isinstance(shape, Sequence) else [shape]
    rest = [k for k, e in enumerate(items) if isinstance(e, int) and e == -1]
    if not rest:
        return as_shape(shape, "the new shape")
    known = [as_extent(e, "an extent") for k, e in enumerate(items) if k not in rest]
    total, part = base.static_shape, [static_value(e) for e in known]
    if len(rest) > 1 or total is None or None in part:
        told = "-1 may stand for one extent of a shape that is otherwise known at compile time"
        raise FrontendValueError(told, hint="give all other extents as Python ints")
    left = math.prod(total) // max(1, math.prod(e for e in part if e is not None))
    return tuple(left if k in rest else as_extent(e, "an extent") for k, e in enumerate(items))


def _rescaled(base: Buffer, dtype: DType) -> tuple[Extent, ...]:
    """Return the shape of `base` with the last extent in elements of `dtype`."""
    old, new = base.dtype.bits * base.dtype.lanes, dtype.bits * dtype.lanes
    if old == new or not base.shape:
        return base.shape
    last = base.shape[-1]
    known = static_value(last)
    if known is not None and known * old % new == 0:
        return (*base.shape[:-1], known * old // new)
    if known is None and old % new == 0:
        return (*base.shape[:-1], last * (old // new))
    raise _mismatch("T.view", base, base.shape, dtype, "the last extent is not a whole number")


def _check_contiguous_strides(result: BufferValue, strides: tuple[Extent, ...]) -> None:
    wanted = result.strides
    same = len(wanted) == len(strides) and all(
        a is b or (static_value(a) is not None and static_value(a) == static_value(b))
        for a, b in zip(wanted, strides, strict=True)
    )
    if not same:
        raise FrontendValueError(
            "the strides given to T.view are not those of row-major order",
            hint="leave them out; T.make_tensor takes an address and any strides",
        )


def make_tensor(ptr: Any, shape: Any, dtype: Any = "float32", strides: Any = None) -> BufferValue:
    """Return the global tensor of `shape` that lies at the address `ptr`.

    Parameters
    ----------
    ptr
        A `T.ptr` parameter, ``buffer.data``, an element of a table of addresses, or an int64.
    strides
        In elements; row-major by default.

    Raises
    ------
    FrontendTypeError
        If `ptr` is not an address.
    """
    expr = ptr.data if isinstance(ptr, BufferValue) else as_value(ptr)
    if expr.dtype in ("int64", "uint64"):
        expr = Bitcast(dtype_of("handle"), expr, span=here())
    made: BufferValue = Tensor(shape, dtype, expr, strides=strides)
    return made


def make_tensor_from_addr(
    addr: Any,
    shape: Any,
    dtype: Any = "float32",
    strides: Any = None,
    storage_scope: str = "global",
) -> BufferValue:
    """Return the tensor at an address given as an integer; as `T.make_tensor`.

    Raises
    ------
    FrontendValueError
        If `storage_scope` is another than ``"global"``.
    """
    choice(storage_scope, ("global",), "memory of a tensor")
    return make_tensor(addr, shape, dtype, strides)


def match_buffer(
    param: Any,
    shape: Any = None,
    dtype: Any = "float32",
    data: Any = None,
    strides: Any = None,
    elem_offset: Any = None,
    scope: str = "global",
    align: int = -1,
    offset_factor: int = 0,
    buffer_type: str = "default",
    axis_separators: Any = None,
) -> BufferValue:
    """Return the tensor that a pointer parameter points to.

    Parameters
    ----------
    shape, strides
        In elements; row-major by default.
    data, elem_offset, scope, align, offset_factor, buffer_type, axis_separators
        Accepted for compatibility and dropped.
    """
    return make_tensor(param, shape, dtype, strides or None)


_MASKS = {1: "r", 2: "w", 3: "rw"}


def access_ptr(
    base: Any,
    access_type: Any = "r",
    *extents: Any,
    offset: Any = 0,
    extent: Any = None,
    ignore_last_ndim: int = 0,
) -> AddressOf:
    """Return an address to hand to an extern function.

    Parameters
    ----------
    base
        A buffer, a region or an element: where the address starts.
    access_type
        ``"r"``, ``"w"`` or ``"rw"``: what is done through it; barriers depend on it.
    extents, extent, ignore_last_ndim
        How much is touched; accepted, not used.
    offset
        Elements to add, in row-major order.

    Raises
    ------
    FrontendValueError
        Another access.
    """
    mode = choice(_MASKS.get(access_type, access_type), ("r", "w", "rw"), "access")
    buffer, indices = element(base, "the base of T.access_ptr")
    if not (isinstance(offset, int) and offset == 0):
        if all(isinstance(i, Const) and i.value == 0 for i in indices):
            coordinates = index_to_coordinates(offset, buffer.shape)
            indices = tuple(build_expr.as_expr(c) for c in coordinates)
        else:
            indices = (*indices[:-1], indices[-1] + as_value(offset))
    return AddressOf(buffer, indices, mode, span=here())


def address_of(obj: Any) -> AddressOf:
    """Return the address of an element ``A[i, j]``, or of a buffer's first element."""
    return address(obj, "the operand of T.address_of")


def tvm_access_ptr(ptype: Any, data: Any, offset: Any, extent: Any, rw_mask: Any) -> AddressOf:
    """Return ``data + offset`` as an address: `T.access_ptr` in TVM's spelling."""
    buffer = data.buffer if isinstance(data, (AddressOf, BufferValue)) else data
    if not isinstance(buffer, Buffer):
        raise FrontendTypeError(
            "T.tvm_access_ptr needs the `data` of a buffer", hint="use T.access_ptr"
        )
    return access_ptr(buffer, rw_mask, offset=offset)


def index_to_coordinates(index: Any, shape: Sequence[Any]) -> list[Any]:
    """Return the coordinates of element number `index` of a row-major box of `shape`.

    >>> index_to_coordinates(7, (2, 4))
    [1, 3]
    """
    coordinates: list[Any] = []
    rest = index
    for extent in reversed(list(shape)[1:]):
        coordinates.append(arithmetic.floormod(rest, extent))
        rest = arithmetic.floordiv(rest, extent)
    return [rest, *reversed(coordinates)]
