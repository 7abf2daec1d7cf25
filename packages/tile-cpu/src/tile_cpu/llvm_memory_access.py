"""Memory accesses TIR has no words for, as expressions: scattered and indivisible.

Each calls an LLVM function by name; `tile_cpu.toolchain` sees the names in the kernel and links
the definitions. Nothing needs to be collected.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_cpu.tir.build import dtype_of_expr, extern, splat
from tile_cpu.tir.nodes import (
    BufferLoad,
    Call,
    IntImm,
    PrimExpr,
    TensorLoad,
    TirBuffer,
    tirx,
)

ELEMENT_CODES = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float32": "f32",
    "float64": "f64",
    **{f"int{n}": f"i{n}" for n in (8, 16, 32, 64)},
    **{f"uint{n}": f"u{n}" for n in (8, 16, 32, 64)},
}
"""What element types are called in the names of functions."""
_SCALARS = {
    **{f"{sign}int{n}": f"i{n}" for n in (8, 16, 32, 64) for sign in ("", "u")},
    **{f"float{n}": f"f{n}" for n in (16, 32, 64)},
}
"""Types of LLVM that are the same whether TVM calls them signed or not."""
ATOMIC_OPERATIONS = frozenset(
    ["add", "max", "min", "and", "or", "xor", "exchange", "load", "store"]
)

ORDERS = {
    "relaxed": "monotonic",
    "consume": "acquire",
    "acquire": "acquire",
    "release": "release",
    "acq_rel": "acq_rel",
    "seq_cst": "seq_cst",
}
"""Memory orders of C++, and LLVM's for each."""


def address(buffer: TirBuffer, indices: Sequence[Any]) -> PrimExpr:
    """Return the address of one element."""
    return tirx.address_of(BufferLoad(buffer, list(indices)))


def reinterpret(value: PrimExpr, dtype: str, lanes: int = 1) -> PrimExpr:
    """Return the bits of `value` as `lanes` elements of `dtype`.

    TVM's generator of LLVM IR takes a literal zero that is reinterpreted for a null pointer and
    ends where the type is none. TVM folds sums to literals after this: calls and what is in
    memory are the only scalar integers that cannot become one.
    """
    wanted = dtype if lanes == 1 else f"{dtype}x{lanes}"
    given = dtype_of_expr(value)
    if given == wanted:
        return value
    codes = (_SCALARS.get(given), _SCALARS.get(wanted))
    if None in codes or given.startswith("float") or isinstance(value, TensorLoad | Call):
        return tirx.reinterpret(wanted, value)
    return extern(wanted, "tile_bits_{}_{}".format(*codes), value)


def stored_value(value: PrimExpr) -> PrimExpr:
    """Return a scalar such that a store of it, under a condition, touches its element alone.

    Of a masked store of truncated integers LLVM may make a store that is too wide.
    """
    dtype = dtype_of_expr(value)
    bits = int(dtype.lstrip("uint"))
    return extern(dtype, f"tile_stored_i{bits}", value)


def gather(
    buffer: TirBuffer, offsets: PrimExpr, lanes: int, mask: PrimExpr | None = None
) -> PrimExpr:
    """Load the elements of a flat `buffer` at `offsets`; zero where `mask` is not set.

    Parameters
    ----------
    offsets
        A vector of int32 or int64, in elements.
    mask
        A bool vector; None reads every lane. Lanes not set are not touched in memory.
    """
    bits = _storage_bits(buffer)
    name = f"tile_gather_i{bits}_{_offset_code(offsets)}x{lanes}"
    start = address(buffer, [IntImm("int32", 0)])
    raw = extern(f"int{bits}x{lanes}", name, start, offsets, _mask(mask, lanes))
    return reinterpret(raw, str(buffer.dtype), lanes)


def atomic(
    operation: str,
    buffer: TirBuffer,
    indices: Sequence[Any],
    value: PrimExpr | None = None,
    order: str = "relaxed",
) -> PrimExpr:
    """Update one element indivisibly and return what it held before.

    Parameters
    ----------
    operation
        ``add``, ``max``, ``min`` (floats: a NaN loses), ``and``, ``or``, ``xor`` (integers),
        ``exchange``, ``store``, or ``load``, which takes no `value`.
    order
        ``relaxed``, ``consume``, ``acquire``, ``release``, ``acq_rel`` or ``seq_cst``.

    Raises
    ------
    InternalError
        If the operation, order or element type has no atomic.
    """
    dtype = str(buffer.dtype)
    code = ELEMENT_CODES.get(dtype)
    bitwise = operation in ("and", "or", "xor") and "float" in dtype
    if code is None or operation not in ATOMIC_OPERATIONS or order not in ORDERS or bitwise:
        raise InternalError(f"no atomic {operation!r} ({order}) of {dtype}")
    carrier = "uint16" if dtype == "bfloat16" else dtype
    given = tirx.const(0, carrier) if value is None else reinterpret(value, carrier, 1)
    name = f"tile_atomic_{operation}_{code}_{order}"
    return reinterpret(extern(carrier, name, address(buffer, indices), given), dtype, 1)


def _storage_bits(buffer: TirBuffer) -> int:
    return dtype_of(str(buffer.dtype)).bits


def _offset_code(offsets: PrimExpr) -> str:
    return "o64" if dtype_of_expr(offsets).startswith("int64") else "o32"


def _mask(mask: PrimExpr | None, lanes: int) -> PrimExpr:
    return splat(IntImm("bool", 1), lanes) if mask is None else mask
