"""Intrinsics, those of warps too, whose threads run in step; extern functions."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tile_core.dtypes import DType, dtype_of
from tile_core.errors import Deadlock
from tile_core.interp import access, math_functions
from tile_core.interp.execution_state import Lanes
from tile_core.interp.philox import Generator
from tile_core.interp.values import Array, carrier, decode, from_bytes, settle, to_bytes
from tile_core.ir.expr import AddressOf, Call, Expr, StringConst
from tile_core.ops.printing import specifier

Evaluate = Callable[[Expr, Lanes], Array]


def pure(expr: Call, args: list[Array]) -> Array:
    """Return the value of an intrinsic that depends on its arguments only."""
    name, dtype = expr.function, expr.dtype
    source = expr.args[0].dtype
    if name in math_functions.FLOAT64:
        values = math_functions.FLOAT64[name](*(a.astype(np.float64) for a in args))
        return settle(values, dtype)
    if name == "fma":
        return math_functions.fma(args[0], args[1], args[2], dtype)
    if name.startswith("ieee_"):
        return math_functions.rounded(name, args, dtype)
    if name in _TESTS:
        return _TESTS[name](args[0])
    if name in _BITS:
        return _BITS[name](args[0], source).astype(np.int32)
    if name == "abs":
        return settle(np.abs(args[0]), dtype)
    if name == "ldexp":
        return settle(np.ldexp(args[0].astype(np.float64), args[1]), dtype)
    stored = dtype.numpy()
    neighbours = np.nextafter(args[0].astype(stored), args[1].astype(stored))
    return decode(neighbours, dtype)


_TESTS: dict[str, Callable[[Array], Array]] = {
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
}


def _bits_of(values: Array, dtype: DType) -> Array:
    """Return the bits of each value, lowest first, in a new last axis."""
    wide = values.astype(np.int64).astype(np.uint64)
    bits: Array = (wide[..., None] >> np.arange(dtype.bits, dtype=np.uint64)) & np.uint64(1)
    return bits


def _popcount(values: Array, dtype: DType) -> Array:
    result: Array = _bits_of(values, dtype).sum(axis=-1)
    return result


def _clz(values: Array, dtype: DType) -> Array:
    bits = _bits_of(values, dtype)[..., ::-1]
    return np.where(bits.any(axis=-1), bits.argmax(axis=-1), dtype.bits)


def _ffs(values: Array, dtype: DType) -> Array:
    bits = _bits_of(values, dtype)
    return np.where(bits.any(axis=-1), bits.argmax(axis=-1) + 1, 0)


_BITS = {"popcount": _popcount, "clz": _clz, "ffs": _ffs}


_REDUCE: dict[str, Callable[[Array], Array]] = {
    "warp_reduce_sum": lambda x: np.add.reduce(x.astype(np.float64)) if x.dtype.kind == "f" else (
        np.add.reduce(x)
    ),
    "warp_reduce_max": np.fmax.reduce,
    "warp_reduce_min": np.fmin.reduce,
    "warp_reduce_bitand": np.bitwise_and.reduce,
    "warp_reduce_bitor": np.bitwise_or.reduce,
}  # fmt: skip


def collective(expr: Call, args: list[Array], lanes: Lanes) -> Array:
    """Return what a warp-wide intrinsic gives each lane.

    Raises `Deadlock` if some threads of the warp do not take part; ``activemask`` alone does not
    wait.
    """
    name = expr.function
    if name == "activemask":
        return np.array([_bits(lanes.active)], np.uint32)
    if lanes.mask is not None and not lanes.mask.all():
        missing = int((~lanes.mask).sum())
        raise Deadlock(
            f"T.{name} waits for all {lanes.count} threads of the warp, and {missing} of them do "
            "not get here",
            span=expr.span or lanes.span,
            hint="move it out of the `if`, so that every thread of the warp runs it",
        )
    values = np.broadcast_to(args[0], (lanes.count,)) if args else np.zeros(lanes.count)
    if name.startswith("shfl_"):
        return _shuffle(name, values, args[1], args[2], lanes)
    if name.startswith("warp_reduce_"):
        return np.broadcast_to(settle(np.asarray([_REDUCE[name](values)]), expr.dtype), (1,))
    if name.startswith("match_"):
        return _match(name, values)
    true = values != 0
    if name == "ballot_sync":
        return np.array([_bits(true)], np.uint32)
    return np.array([int(true.any() if name == "any_sync" else true.all())], np.int32)


def _bits(flags: Array) -> int:
    return sum(1 << k for k in np.flatnonzero(flags).tolist())


def _shuffle(name: str, values: Array, by: Array, width: Array, lanes: Lanes) -> Array:
    """Lanes exchange within groups of `width`; a source outside the group is the lane itself."""
    lane = np.arange(lanes.count)
    step = np.broadcast_to(by, (lanes.count,)).astype(np.int64)
    group = np.broadcast_to(width, (lanes.count,)).astype(np.int64)
    first = lane // group * group
    match name:
        case "shfl_xor":
            source = lane ^ step
            stays = source >= first + group
        case "shfl_down":
            source = lane + step
            stays = source >= first + group
        case "shfl_up":
            source = lane - step
            stays = source < first
        case _:
            source = first + step % group
            stays = np.zeros(lanes.count, np.bool_)
    stays |= source >= lanes.count
    result: Array = values[np.where(stays, lane, source)]
    return result


def _match(name: str, values: Array) -> Array:
    same = values[:, None] == values[None, :]
    masks = np.array([_bits(row) for row in same], np.uint32)
    if name == "match_any_sync":
        return masks
    return masks[:1] if same.all() else np.zeros(1, np.uint32)


def dp4a(expr: Call, lanes: Lanes, evaluate: Evaluate) -> Array:
    """Return ``c + a · b`` for four 8-bit integers each; operands may be addresses."""

    def four(arg: Expr) -> Array:
        if isinstance(arg, AddressOf):
            return _neighbours(arg, 4, lanes, evaluate)
        value = evaluate(arg, lanes)
        if value.ndim > 1:
            return value
        return from_bytes(to_bytes(value, arg.dtype), dtype_of("int8x4"))

    a, b = (four(arg).astype(np.int32) for arg in expr.args[:2])
    c = expr.args[2]
    total = _neighbours(c, 1, lanes, evaluate)[:, 0] if isinstance(c, AddressOf) else (
        evaluate(c, lanes)
    )  # fmt: skip
    result: Array = (total.astype(np.int64) + (a * b).sum(axis=1)).astype(np.int32)
    return result


def _neighbours(address: AddressOf, count: int, lanes: Lanes, evaluate: Evaluate) -> Array:
    """Load `count` elements along the last dimension, from the one addressed."""
    indices = [evaluate(i, lanes) for i in address.indices]
    indices[-1] = indices[-1][:, None] + np.arange(count, dtype=indices[-1].dtype)
    return access.load(lanes, address.buffer, indices, address)


def random(expr: Call, args: list[Array], lanes: Lanes) -> Array:
    """Initialise or advance the random generator of each lane."""
    generator = Generator(lanes)
    if expr.function == "rng_init":
        return generator.start(*args)
    return generator.draw(expr.function)


def printf(expr: Call, lanes: Lanes, evaluate: Evaluate) -> Array:
    """Print once per active lane."""
    first, *rest = expr.args
    text = first.value if isinstance(first, StringConst) else ""
    columns: list[Any] = []
    for arg in rest:
        if isinstance(arg, StringConst):
            columns.append(arg.value)
        else:
            columns.append(np.broadcast_to(evaluate(arg, lanes), (lanes.count,)))
    for lane in np.flatnonzero(lanes.active):
        values = tuple(c if isinstance(c, str) else c[lane].item() for c in columns)
        sys.stdout.write(_format(text, values))
    return np.zeros(1, np.int32)


def printed(value: Any, dtype: DType) -> str:
    """Return the text that C's `printf` gives a value."""
    return _format(specifier(dtype), (value,))


def _format(text: str, values: tuple[Any, ...]) -> str:
    plain = text.replace("%ll", "%").replace("%l", "%").replace("%u", "%d").replace("%h", "%")
    return plain.replace("%p", "0x%x") % values


def extern(expr: Call, function: Callable[..., Any], lanes: Lanes, evaluate: Evaluate) -> Array:
    """Call a Python stand-in for a C function, once per active lane."""
    columns: list[Any] = []
    for arg in expr.args:
        if isinstance(arg, AddressOf):
            place = lanes.place(arg.buffer)
            offsets, _ = place.locate([evaluate(i, lanes) for i in arg.indices])
            offsets = np.broadcast_to(offsets, (lanes.count,))
            columns.append((place.storage.typed(arg.buffer.dtype.numpy()), offsets, place, arg))
        elif isinstance(arg, StringConst):
            columns.append(arg.value)
        else:
            columns.append(np.broadcast_to(evaluate(arg, lanes), (lanes.count,)))
    results = np.zeros(lanes.count, carrier(expr.dtype))
    lanes.machine.stores += 1
    for lane in np.flatnonzero(lanes.active):
        args = [_argument(column, int(lane)) for column in columns]
        result = function(*args)
        if not expr.dtype.is_handle and result is not None:
            results[lane] = result
    for column in columns:
        if isinstance(column, tuple) and "w" in column[3].access:
            column[2].storage.mark(np.unique(column[1]), column[3].buffer.dtype)
    return settle(results, expr.dtype)


def _argument(column: Any, lane: int) -> Any:
    if isinstance(column, tuple):
        return column[0][column[1][lane] :]
    return column if isinstance(column, str) else column[lane].item()
