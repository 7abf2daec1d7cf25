"""Gathers: vectors whose lanes lie anywhere in memory.

``tile_gather_i32x16(ptr, <16 x i64> offsets, <16 x i1> mask)`` reads the elements at `offsets` (in
elements) where `mask` is set and zero elsewhere.
"""

from __future__ import annotations

import re

from tile_cpu.llvm.builder import Function, Type
from tile_cpu.machine import CpuMachine

_SYMBOL = re.compile(r"tile_gather_i(8|16|32|64)_o(32|64)x(\d+)")


def define(symbol: str, machine: CpuMachine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if it is no gather."""
    match = _SYMBOL.fullmatch(symbol)
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
