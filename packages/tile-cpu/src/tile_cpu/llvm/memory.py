"""Gathers and scatters: vectors whose lanes lie anywhere in memory.

``tile_gather_i32x16(ptr, <16 x i64> offsets, <16 x i1> mask)`` reads the elements at `offsets` (in
elements) where `mask` is set and zero elsewhere; ``tile_scatter_i32x16(ptr, offsets, values,
mask)`` writes them.
"""

from __future__ import annotations

import re

from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.machine import Machine

_SYMBOL = re.compile(r"tile_(gather|scatter)_i(8|16|32|64)_o(32|64)x(\d+)")


def define(symbol: str, machine: Machine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if it is no gather or scatter."""
    match = _SYMBOL.fullmatch(symbol)
    if match is None:
        return None
    bits, lanes = int(match[2]), int(match[4])
    fn, kind = Function(symbol, machine), Type(f"i{bits}", lanes)
    base, offsets = fn.parameter(Type("ptr")), fn.parameter(kind.of(f"i{match[3]}"))
    addresses = _addresses(fn, base, offsets, kind)
    if match[1] == "gather":
        mask = fn.parameter(kind.of("i1"))
        name = f"llvm.masked.gather.{kind.suffix}.v{lanes}p0"
        zero = fn.constant(0, kind)
        return fn.finish(fn.call(name, kind, _aligned(addresses, bits), mask, zero))
    values, mask = fn.parameter(kind), fn.parameter(kind.of("i1"))
    name = f"llvm.masked.scatter.{kind.suffix}.v{lanes}p0"
    listed = f"{kind} {values.text}, {_aligned(addresses, bits)}, {mask.type} {mask.text}"
    fn.run(f"call void @{name}({listed})")
    return fn.finish(fn.constant(0, Type("i32")))


def _addresses(fn: Function, base: Value, offsets: Value, kind: Type) -> Value:
    where = f"{kind.scalar}, ptr {base.text}, {offsets.type} {offsets.text}"
    return fn.emit(f"getelementptr {where}", kind.of("ptr"))


def _aligned(addresses: Value, bits: int) -> str:
    return f"{addresses.type} align {bits // 8} {addresses.text}"
