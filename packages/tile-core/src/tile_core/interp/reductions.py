"""Reductions, scans and reducers on arrays."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.dtypes import DType
from tile_core.interp import access, atomics, regions
from tile_core.interp.execution_state import Lanes
from tile_core.interp.expressions import evaluate
from tile_core.interp.values import Array, constant, convert, decode, encode, settle
from tile_core.ir.buffer import whole
from tile_core.ir.expr import Binary, BinaryOp, Load
from tile_core.ir.stmt import Store
from tile_core.ir.structural_equality import same_value
from tile_core.ops.reduce import Reduce, ReduceKind
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.ops.scan import Scan

_UFUNC: dict[ReduceKind, Any] = {
    ReduceKind.SUM: np.add,
    ReduceKind.ABSSUM: np.add,
    ReduceKind.MAX: np.fmax,
    ReduceKind.ABSMAX: np.fmax,
    ReduceKind.MIN: np.fmin,
    ReduceKind.BITAND: np.bitwise_and,
    ReduceKind.BITOR: np.bitwise_or,
    ReduceKind.BITXOR: np.bitwise_xor,
}
_NAN = {ReduceKind.MAX: np.maximum, ReduceKind.ABSMAX: np.maximum, ReduceKind.MIN: np.minimum}


def _wide(values: Array, dtype: DType) -> Array:
    """Return values in the type their combination is computed in: float64 or themselves."""
    if dtype.is_float:
        return values.astype(np.float64)
    return values.astype(np.int64) if dtype.is_bool else values


def _narrow(values: Array, dtype: DType) -> Array:
    return values != 0 if dtype.is_bool else settle(values, dtype)


def _ufunc(op: Reduce | ReducerUpdate, dtype: DType) -> Any:
    found = _UFUNC[op.kind]
    return _NAN.get(op.kind, found) if op.nan_propagate and dtype.is_float else found


def reduce(op: Reduce, lanes: Lanes) -> None:
    """Combine along one dimension: elements in the dtype of `dst`, floats in float64.

    The result is rounded once; the old contents take part if they are not cleared.
    """
    dtype = op.dst.buffer.dtype
    values = convert(regions.read(op.src, lanes, op), op.src.buffer.dtype, dtype)
    if op.kind.takes_magnitudes:
        values = settle(np.abs(values), dtype)
    ufunc = _ufunc(op, dtype)
    start = _wide(constant(op.kind.identity(dtype), dtype), dtype)[0]
    total = ufunc.reduce(_wide(values, dtype), axis=op.dim, initial=start)
    where = regions.box(op.dst, lanes, op)
    total = total.reshape(where.offsets.shape)
    if not op.clear:
        regions.require_known(where)
        old = decode(regions.read_stored(where), dtype)
        total = ufunc(total, _wide(old, dtype))
    regions.write_stored(where, encode(_narrow(total, dtype), dtype))


def scan(op: Scan, lanes: Lanes) -> None:
    """Inclusive running combination along one dimension; floats in float64, each rounded."""
    dtype = op.dst.buffer.dtype
    values = convert(regions.read(op.src, lanes, op), op.src.buffer.dtype, dtype)
    values = np.flip(values, op.dim) if op.reverse else values
    ufunc = _UFUNC[op.kind]
    if op.nan_propagate and dtype.is_float:
        ufunc = _NAN.get(op.kind, ufunc)
    total = ufunc.accumulate(_wide(values, dtype), axis=op.dim)
    total = np.flip(total, op.dim) if op.reverse else total
    where = regions.box(op.dst, lanes, op)
    stored = encode(_narrow(total, dtype), dtype).reshape(where.offsets.shape)
    regions.write_stored(where, stored)


def begin(op: ReducerInit, lanes: Lanes) -> None:
    """Open an epoch: every element is the start value or the identity."""
    dtype = op.reducer.dtype
    value = constant(op.kind.identity(dtype), dtype)
    if op.init is not None:
        value = convert(evaluate(op.init, lanes), op.init.dtype, dtype)
    where = regions.box(whole(op.reducer), lanes, op)
    stored = np.broadcast_to(encode(value, dtype), where.offsets.shape)
    regions.write_stored(where, stored)


def update(op: ReducerUpdate, lanes: Lanes) -> None:
    """Combine one value per active lane into the reducer; lanes may meet in one element."""
    dtype = op.reducer.dtype
    indices = [evaluate(i, lanes) for i in op.indices]
    values = convert(evaluate(op.value, lanes), op.value.dtype, dtype)
    if op.kind.takes_magnitudes:
        values = settle(np.abs(values), dtype)
    at = access.Site.of(lanes, op.reducer, op)
    offsets, inside = at.place.locate(indices)
    access.check_bounds(at, offsets, inside, indices)
    flat = np.broadcast_to(offsets, (lanes.count,))[lanes.active]
    operands = np.broadcast_to(values, (lanes.count,))[lanes.active]
    known = at.storage.is_written(flat, dtype)
    if known is not None and not known.all():
        access.uninitialised(at, flat[~known])
    _accumulate(at.storage, flat, dtype, operands, _ufunc(op, dtype))
    lanes.machine.stores += 1


def _accumulate(
    storage: Any, offsets: Array, dtype: DType, values: Array, ufunc: Callable[..., Array]
) -> None:
    """Combine `values` into the elements at `offsets`, all at once, rounding once."""
    if dtype.is_bool:
        atomics.update(storage, offsets, dtype, values, ufunc)
        return
    places, which = np.unique(offsets, return_inverse=True)
    total = _wide(decode(storage.get(places, dtype), dtype), dtype).copy()
    ufunc.at(total, which, _wide(values, dtype))  # type: ignore[attr-defined]
    storage.put(places, dtype, encode(settle(total, dtype), dtype))


def finalize(op: ReducerFinalize, lanes: Lanes) -> None:
    """Close the epoch: the accumulated values go to the destination."""
    source = whole(op.reducer)
    dtype = op.dst.buffer.dtype
    values = convert(regions.read(source, lanes, op), op.reducer.dtype, dtype)
    where = regions.box(op.dst, lanes, op)
    stored = encode(values, dtype).reshape(where.offsets.shape)
    regions.write_stored(where, stored)


_UPDATES = {
    BinaryOp.ADD: ReduceKind.SUM,
    BinaryOp.MAX: ReduceKind.MAX,
    BinaryOp.MIN: ReduceKind.MIN,
    BinaryOp.BITAND: ReduceKind.BITAND,
    BinaryOp.BITOR: ReduceKind.BITOR,
    BinaryOp.BITXOR: ReduceKind.BITXOR,
}


def as_update(stmt: Store) -> ReducerUpdate | None:
    """Return ``acc[i] = acc[i] op x`` on a reducer as the update it means, else None."""
    value = stmt.value
    if not isinstance(value, Binary) or value.op not in _UPDATES:
        return None
    for old, new in ((value.a, value.b), (value.b, value.a)):
        at = old.indices if isinstance(old, Load) and old.buffer is stmt.buffer else None
        if at is not None and same_value(at, stmt.indices):
            kind = _UPDATES[value.op]
            return ReducerUpdate(stmt.buffer, kind, stmt.indices, new, span=stmt.span)
    return None
