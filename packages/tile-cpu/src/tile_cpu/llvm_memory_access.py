"""What memory holds, read as TIR has no words for: scattered, as other types, element by element.

Each of these calls an LLVM function by name; `tile_cpu.toolchain` sees the names in the kernel and
links the definitions. Nothing needs to be collected.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from tile_core.dtypes import dtype_of
from tile_cpu.cpu_machine import CpuMachine
from tile_cpu.llvm.builder import Function, Type
from tile_cpu.tir.build import dtype_of_expr, extern, splat, with_lanes
from tile_cpu.tir.nodes import BufferLoad, Call, IntImm, PrimExpr, TensorLoad, TirBuffer, tirx

_GATHER = re.compile(r"tile_gather_i(8|16|32|64)_o(32|64)x(\d+)")
_SCALARS = {
    **{f"{sign}int{n}": f"i{n}" for n in (8, 16, 32, 64) for sign in ("", "u")},
    **{f"float{n}": f"f{n}" for n in (16, 32, 64)},
}
"""Types of LLVM that are the same whether TVM calls them signed or not."""


def address(buffer: TirBuffer, indices: Sequence[Any]) -> PrimExpr:
    """Return the address of one element."""
    return tirx.address_of(BufferLoad(buffer, list(indices)))


def reinterpret(value: PrimExpr, dtype: str, lanes: int = 1) -> PrimExpr:
    """Return the bits of `value` as `lanes` elements of `dtype`.

    TVM's generator of LLVM IR takes a literal zero that is reinterpreted for a null pointer and
    ends where the type is none. TVM folds sums to literals after this: calls and what is in
    memory are the only scalar integers that cannot become one.
    """
    wanted = with_lanes(dtype, lanes)
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
    """Load the elements of a flat `buffer` at `offsets`, int32 or int64; zero where not `mask`.

    Lanes that are not set are not touched in memory; without a mask every lane is read.
    """
    bits = dtype_of(str(buffer.dtype)).bits
    width = 64 if dtype_of_expr(offsets).startswith("int64") else 32
    start = address(buffer, [IntImm("int32", 0)])
    lit = splat(IntImm("bool", 1), lanes) if mask is None else mask
    name = f"tile_gather_i{bits}_o{width}x{lanes}"
    raw = extern(f"int{bits}x{lanes}", name, start, offsets, lit)
    return reinterpret(raw, str(buffer.dtype), lanes)


def define_gather(symbol: str, machine: CpuMachine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if it is no gather.

    ``tile_gather_i32_o64x16(ptr, <16 x i64> offsets, <16 x i1> mask)`` reads the elements at
    `offsets` (in elements) where `mask` is set and zero elsewhere.
    """
    match = _GATHER.fullmatch(symbol)
    if match is None:
        return None
    bits, lanes = int(match[1]), int(match[3])
    fn, kind = Function(symbol, machine), Type(f"i{bits}", lanes)
    base, offsets = fn.parameter(Type("ptr")), fn.parameter(kind.of(f"i{match[2]}"))
    where = f"{kind.scalar}, ptr {base.text}, {offsets.type} {offsets.text}"
    addresses = fn.emit(f"getelementptr {where}", kind.of("ptr"))
    mask = fn.parameter(kind.of("i1"))
    name = f"llvm.masked.gather.{kind.suffix}.v{lanes}p0"
    aligned = f"{addresses.type} align {bits // 8} {addresses.text}"
    return fn.finish(fn.call(name, kind, aligned, mask, fn.constant(0, kind)))
