"""Indivisible updates of one element.

``tile_atomic_<op>_<type>_<order>(ptr, value)`` returns the previous value. `op` is add, max, min,
and, or, xor, exchange, load (the value is ignored) or store; `type` is f16, bf16 (bits), f32, f64,
or i/u with 8 to 64 bits.
"""

from __future__ import annotations

import re

from tile_cpu.llvm.builder import Function, Type, Value
from tile_cpu.llvm_memory_access import ORDERS
from tile_cpu.machine import CpuMachine
from tile_cpu.math.narrow import bfloat_bits, bfloat_value
from tile_cpu.math.rounding import maximum, minimum

_SYMBOL = re.compile(
    r"tile_atomic_(add|max|min|and|or|xor|exchange|load|store)_(bf16|[fiu]\d+)_(\w+)"
)
_SCALARS = {"f16": "half", "f32": "float", "f64": "double", "bf16": "i16"}
# A load cannot release and a store cannot acquire: the nearest order that is allowed.
_LOAD_ORDER = {"release": "monotonic", "acq_rel": "acquire"}
_STORE_ORDER = {"acquire": "monotonic", "acq_rel": "release"}


def define(symbol: str, machine: CpuMachine) -> Function | None:
    """Return the LLVM function called `symbol`, or None if it is no atomic."""
    match = _SYMBOL.fullmatch(symbol)
    if match is None or match[3] not in ORDERS:
        return None
    op, code, order = match[1], match[2], ORDERS[match[3]]
    fn = Function(symbol, machine)
    kind = Type(_SCALARS.get(code, f"i{code[1:]}"))
    address, value = fn.parameter(Type("ptr")), fn.parameter(kind)
    if op == "load":
        return fn.finish(_load(fn, address, kind, _LOAD_ORDER.get(order, order)))
    if op == "store":
        bits = value.bitcast(kind.as_int)
        order = _STORE_ORDER.get(order, order)
        fn.run(f"store atomic {_typed(bits)}, {_typed(address)} {order}, align {_align(kind)}")
        return fn.finish(value)
    if op in ("add", "max", "min") and code in _SCALARS:
        return fn.finish(_loop(fn, op, code, address, value, order))
    operation = {"exchange": "xchg"}.get(op, op)
    if code[0] == "u" and op in ("max", "min"):
        operation = f"u{op}"
    bits = value.bitcast(kind.as_int)
    old = fn.emit(
        f"atomicrmw {operation} {_typed(address)}, {_typed(bits)} {order}, align {_align(kind)}",
        kind.as_int,
    )
    return fn.finish(old.bitcast(kind))


def _typed(value: Value) -> str:
    return f"{value.type} {value.text}"


def _align(kind: Type) -> int:
    return kind.bits // 8


def _load(fn: Function, address: Value, kind: Type, order: str) -> Value:
    whole = kind.as_int
    text = f"load atomic {whole}, {_typed(address)} {order}, align {_align(kind)}"
    return fn.emit(text, whole).bitcast(kind)


def _loop(fn: Function, op: str, code: str, address: Value, value: Value, order: str) -> Value:
    """Compare and exchange until nobody else came in between."""
    whole = value.type.as_int
    first = _load(fn, address, whole, "monotonic")
    fn.run("br label %again")
    fn.label("again")
    at = len(fn.lines)
    old = Value("%old", whole, fn)
    new = _combine(op, code, old, value).bitcast(whole)
    exchange = f"cmpxchg {_typed(address)}, {_typed(old)}, {_typed(new)} {order} monotonic"
    pair = fn.emit(f"{exchange}, align {_align(whole)}", Type(f"{{ {whole}, i1 }}"))
    seen = fn.emit(f"extractvalue {_typed(pair)}, 0", whole)
    done = fn.emit(f"extractvalue {_typed(pair)}, 1", Type("i1"))
    incoming = f"[{first.text}, %entry], [{seen.text}, %again]"
    fn.lines.insert(at, f"  %old = phi {whole} {incoming}")
    fn.run(f"br i1 {done.text}, label %done, label %again")
    fn.label("done")
    return old.bitcast(value.type)


def _combine(op: str, code: str, old: Value, value: Value) -> Value:
    def number(bits: Value) -> Value:
        if code == "bf16":
            return bfloat_value(bits)
        typed = bits.bitcast(value.type)
        return typed.to("float") if code == "f16" else typed

    a, b = number(old), number(value)
    result = a + b if op == "add" else (maximum if op == "max" else minimum)(old.fn, a, b)
    if code == "bf16":
        return bfloat_bits(result)
    return result.to("half") if code == "f16" else result
