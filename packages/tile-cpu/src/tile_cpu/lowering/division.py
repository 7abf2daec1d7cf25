"""Division and remainder of integers, computed by LLVM functions that TVM cannot look into.

TVM's own floor division is wrong where the dividend falls as an index grows: it rewrites
``(15 - i) // 2`` to ``7 + i // -2``. Divisors that are powers of two become shifts and
masks; the rest are calls that are inlined.
"""

from __future__ import annotations

from tile_core.errors import InternalError
from tile_core.ir.expr import BinaryOp
from tile_core.tir.nodes import IntImm, PrimExpr, tirx
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import lanes_of, number, scalar_name, with_lanes

DIVISIONS = frozenset({BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD})
_FLOORS = frozenset({BinaryOp.FLOORDIV, BinaryOp.FLOORMOD})
_QUOTIENTS = frozenset({BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV})


def divide(ctx: Context, op: BinaryOp, a: PrimExpr, b: PrimExpr) -> PrimExpr:
    """Return the quotient or remainder of two integers of one type; `b` is not zero."""
    kind, lanes = scalar_name(a), lanes_of(a)
    divisor = _constant(b)
    signed = not kind.startswith("uint")
    if isinstance(a, IntImm) and divisor is not None:
        return number(_exact(op, int(a.value), divisor), kind)
    is_power = divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0
    if divisor is not None and is_power and (op in _FLOORS or not signed):
        if op in _QUOTIENTS:
            return tirx.shift_right(a, number(divisor.bit_length() - 1, kind, lanes))
        return tirx.bitwise_and(a, number(divisor - 1, kind, lanes))
    name = f"cpu_{op.name.lower()}_{kind}x{lanes}"
    ctx.helpers[name] = _definition(name, op, kind, lanes, signed=signed)
    return tirx.call_pure_extern(with_lanes(kind, lanes), name, a, b)


def _constant(value: PrimExpr) -> int | None:
    if lanes_of(value) > 1:
        value = getattr(value, "value", value)
    return int(value.value) if isinstance(value, IntImm) else None


def _exact(op: BinaryOp, a: int, b: int) -> int:
    match op:
        case BinaryOp.FLOORDIV:
            return a // b
        case BinaryOp.FLOORMOD:
            return a % b
        case BinaryOp.TRUNCDIV:
            return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case BinaryOp.TRUNCMOD:
            return abs(a) % abs(b) * (-1 if a < 0 else 1)
    raise InternalError(f"{op} is not a division")


def _definition(name: str, op: BinaryOp, kind: str, lanes: int, *, signed: bool) -> str:
    element = f"i{kind.lstrip('uint')}"
    llvm = element if lanes == 1 else f"<{lanes} x {element}>"
    flag = "i1" if lanes == 1 else f"<{lanes} x i1>"
    s = "s" if signed else "u"
    head = f"define {llvm} @{name}({llvm} %a, {llvm} %b) alwaysinline {{\n"
    if op not in _FLOORS or not signed:
        step = f"{s}div" if op in _QUOTIENTS else f"{s}rem"
        return f"{head}  %r = {step} {llvm} %a, %b\n  ret {llvm} %r\n}}\n"
    zero, one = ("0", "1") if lanes == 1 else ("zeroinitializer", _splat(element, lanes, 1))
    result = (
        f"  %one = select {flag} %low, {llvm} {one}, {llvm} {zero}\n"
        f"  %q = sdiv {llvm} %a, %b\n  %r = sub {llvm} %q, %one\n"
        if op is BinaryOp.FLOORDIV
        else f"  %add = select {flag} %low, {llvm} %b, {llvm} {zero}\n  %r = add {llvm} %m, %add\n"
    )
    return (
        f"{head}  %m = srem {llvm} %a, %b\n"
        f"  %odd = icmp ne {llvm} %m, {zero}\n"
        f"  %x = xor {llvm} %m, %b\n"
        f"  %apart = icmp slt {llvm} %x, {zero}\n"
        f"  %low = and {flag} %odd, %apart\n"
        f"{result}  ret {llvm} %r\n}}\n"
    )


def _splat(element: str, lanes: int, value: int) -> str:
    return "<" + ", ".join([f"{element} {value}"] * lanes) + ">"
