"""Division and remainder of integers, computed by LLVM functions that TVM cannot look into.

TVM's own floor division is wrong where the dividend falls as an index grows: it rewrites
``(15 - i) // 2`` to ``7 + i // -2``. Divisors that are powers of two become shifts and
masks; the rest are calls that are inlined.

No division ends the process. By zero, the quotient is 0 and the remainder the dividend; the lowest
number over -1 is itself again, without a remainder, as for every quotient that wraps.
"""

from __future__ import annotations

from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_core.ir.expr import BinaryOp
from tile_cpu.lowering.casts import wrapped_constant
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.types import lanes_of, number, scalar_name
from tile_cpu.tir.build import with_lanes
from tile_cpu.tir.nodes import IntImm, PrimExpr, tirx

DIVISIONS = frozenset({BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD})
_FLOORS = frozenset({BinaryOp.FLOORDIV, BinaryOp.FLOORMOD})
_QUOTIENTS = frozenset({BinaryOp.FLOORDIV, BinaryOp.TRUNCDIV})


def divide(
    ctx: Context, op: BinaryOp, a: PrimExpr, b: PrimExpr, *, is_safe: bool = True
) -> PrimExpr:
    """Return the quotient or remainder of two integers of one type.

    It `is_safe` if `b` is neither zero nor -1: the machine's instruction always has a result.
    """
    kind, lanes = scalar_name(a), lanes_of(a)
    divisor = _constant(b)
    signed = not kind.startswith("uint")
    if isinstance(a, IntImm) and divisor:
        return number(_exact(op, int(a.value), divisor, kind), kind)
    is_power = divisor is not None and divisor > 0 and divisor & (divisor - 1) == 0
    if divisor is not None and is_power and (op in _FLOORS or not signed):
        if op in _QUOTIENTS:
            return tirx.shift_right(a, number(divisor.bit_length() - 1, kind, lanes))
        return tirx.bitwise_and(a, number(divisor - 1, kind, lanes))
    name = f"cpu_{op.name.lower()}_{kind}x{lanes}{'' if is_safe else '_any'}"
    ctx.helpers[name] = _definition(name, op, kind, lanes, signed=signed, is_safe=is_safe)
    return tirx.call_pure_extern(with_lanes(kind, lanes), name, a, b)


def _constant(value: PrimExpr) -> int | None:
    if lanes_of(value) > 1:
        value = getattr(value, "value", value)
    return int(value.value) if isinstance(value, IntImm) else None


def _exact(op: BinaryOp, a: int, b: int, kind: str) -> int:
    match op:
        case BinaryOp.FLOORDIV:
            result = a // b
        case BinaryOp.FLOORMOD:
            result = a % b
        case BinaryOp.TRUNCDIV:
            result = abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)
        case BinaryOp.TRUNCMOD:
            result = abs(a) % abs(b) * (-1 if a < 0 else 1)
        case _:
            raise InternalError(f"{op} is not a division")
    return wrapped_constant(result, dtype_of(kind))


def _definition(
    name: str, op: BinaryOp, kind: str, lanes: int, *, signed: bool, is_safe: bool
) -> str:
    element = f"i{kind.lstrip('uint')}"
    llvm = element if lanes == 1 else f"<{lanes} x {element}>"
    flag = "i1" if lanes == 1 else f"<{lanes} x i1>"
    s = "s" if signed else "u"
    zero, one = ("0", "1") if lanes == 1 else ("zeroinitializer", _splat(element, lanes, 1))
    lines = [f"define {llvm} @{name}({llvm} %a, {llvm} %b) alwaysinline {{"]
    d = "%b" if is_safe else "%d"
    if not is_safe:
        lines += _harmless(llvm, flag, element, lanes, one, signed=signed)
    if op not in _FLOORS or not signed:
        step = f"{s}div" if op in _QUOTIENTS else f"{s}rem"
        lines.append(f"  %r = {step} {llvm} %a, {d}")
    else:
        lines += [
            f"  %m = srem {llvm} %a, {d}",
            f"  %odd = icmp ne {llvm} %m, {zero}",
            f"  %x = xor {llvm} %m, {d}",
            f"  %apart = icmp slt {llvm} %x, {zero}",
            f"  %low = and {flag} %odd, %apart",
        ]
        if op is BinaryOp.FLOORDIV:
            lines += [
                f"  %one = select {flag} %low, {llvm} {one}, {llvm} {zero}",
                f"  %q = sdiv {llvm} %a, {d}",
                f"  %r = sub {llvm} %q, %one",
            ]
        else:
            lines += [
                f"  %add = select {flag} %low, {llvm} {d}, {llvm} {zero}",
                f"  %r = add {llvm} %m, %add",
            ]
    if is_safe:
        lines.append(f"  ret {llvm} %r")
    else:
        by_zero = zero if op in _QUOTIENTS else "%a"
        lines.append(f"  %result = select {flag} %none, {llvm} {by_zero}, {llvm} %r")
        lines.append(f"  ret {llvm} %result")
    return "\n".join(lines) + "\n}\n"


def _harmless(
    llvm: str, flag: str, element: str, lanes: int, one: str, *, signed: bool
) -> list[str]:
    """Return what makes of `%b` a divisor `%d` that does not trap, and of `%none` if it is zero."""

    def same(value: int) -> str:
        return str(value) if lanes == 1 else _splat(element, lanes, value)

    lines = [f"  %none = icmp eq {llvm} %b, {same(0)}"]
    if not signed:
        return [*lines, f"  %d = select {flag} %none, {llvm} {one}, {llvm} %b"]
    return [
        *lines,
        f"  %minus = icmp eq {llvm} %b, {same(-1)}",
        f"  %lowest = icmp eq {llvm} %a, {same(-(1 << (int(element[1:]) - 1)))}",
        f"  %wraps = and {flag} %minus, %lowest",
        f"  %traps = or {flag} %none, %wraps",
        f"  %d = select {flag} %traps, {llvm} {one}, {llvm} %b",
    ]


def _splat(element: str, lanes: int, value: int) -> str:
    return "<" + ", ".join([f"{element} {value}"] * lanes) + ">"
