"""Build scalar expressions: promote element types, fold constants, refuse nonsense."""

from __future__ import annotations

import math
import sys
from functools import cache
from typing import Any

from tile_core.dtypes import DType, dtype_of, promote
from tile_core.errors import DtypeMismatch, FrontendTypeError, FrontendValueError
from tile_core.ir.expr import (
    Binary,
    BinaryOp,
    Broadcast,
    Call,
    Cast,
    Const,
    Expr,
    Select,
    Unary,
    UnaryOp,
)
from tile_core.ir.intrinsics import INTRINSICS
from tile_core.ir.operations import BINARY, DIVISIONS
from tile_core.ir.short_integers import MODULAR, is_short, loses_bits, may_leave

INT32, FLOAT32, BOOL = dtype_of("int32"), dtype_of("float32"), dtype_of("bool")


def const(value: int | float, dtype: DType | None = None) -> Const:
    """Return `value` as a constant; without `dtype` int32 (or int64), float32 or bool."""
    if dtype is None:
        dtype = _natural(value)
    if dtype.is_bool:
        value = bool(value)
    elif dtype.is_int:
        value = int(value)
    elif dtype.is_float:
        value = float(value)
    return Const(value, dtype)


def _natural(value: int | float) -> DType:
    """Return the element type of a plain number that stands alone; refuse one that none holds."""
    if isinstance(value, bool):
        return BOOL
    if not isinstance(value, int):
        return FLOAT32
    for dtype in (INT32, dtype_of("int64"), dtype_of("uint64")):
        if representable(value, dtype):
            return dtype
    raise unrepresentable(value, dtype_of("int64"))


_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}


def representable(value: int | float, dtype: DType) -> bool:
    """Whether `dtype` can hold a plain number, but for rounding (and saturation, if narrow)."""
    if dtype.is_int:
        low, high = integer_bounds(dtype)
        return math.isfinite(value) and low <= value <= high
    if dtype.is_float and math.isfinite(value):
        return abs(value) <= _LARGEST.get(dtype.base, sys.float_info.max)
    return True


def unrepresentable(value: int | float, dtype: DType) -> FrontendValueError:
    """Return the error for a plain number that `dtype` cannot hold."""
    if dtype.is_int:
        low, high = integer_bounds(dtype)
        return FrontendValueError(
            f"{value} does not fit {dtype}, which holds {low} to {high}",
            hint="use a wider type, or a number that fits",
        )
    largest = _LARGEST.get(dtype.base, sys.float_info.max)
    return FrontendValueError(
        f"{value} does not fit {dtype}, whose largest finite value is {largest}",
        hint=f"use a wider type, or T.infinity('{dtype.base}') if infinity is meant",
    )


def as_expr(value: Any, like: DType | None = None) -> Expr:
    """Return `value` as an expression; a plain number takes the dtype `like` if it fits.

    A float next to an integer type stays a float32, so that ``i * 0.5`` means what it says.

    Raises
    ------
    FrontendTypeError
        If `value` is neither a number nor an expression.
    """
    if isinstance(value, Expr):
        return value
    if hasattr(value, "__tile_expr__"):
        converted: Expr = value.__tile_expr__()
        return converted
    if getattr(value, "shape", None) == () and hasattr(value, "item"):
        value = value.item()  # a NumPy scalar
    if isinstance(value, bool):
        return const(value)
    if isinstance(value, int) or (hasattr(value, "__index__") and not hasattr(value, "shape")):
        value = int(value)
        if like is not None and like.is_float:
            return _float(value, like.scalar)
        fits = like is not None and like.is_int and representable(value, like)
        return const(value, like.scalar if fits and like is not None else None)
    if isinstance(value, float) or (hasattr(value, "__float__") and not hasattr(value, "shape")):
        is_float = like is not None and like.is_float
        return _float(float(value), like.scalar if is_float and like is not None else FLOAT32)
    buffer = getattr(value, "buffer", None)
    told = f"{type(value).__name__} {value!r}" if buffer is None else f"a part of '{buffer.name}'"
    raise FrontendTypeError(
        f"{told} is not a scalar value",
        hint="use a number, an element such as A[i, j], or an expression of these",
    )


def _float(value: int | float, dtype: DType) -> Const:
    if not representable(value, dtype):
        raise unrepresentable(value, dtype)
    return const(value, dtype)


def binary(op: BinaryOp, left: Any, right: Any) -> Expr:
    """Return ``left op right`` with promoted dtypes; constants are folded.

    Raises
    ------
    DtypeMismatch
        True division of integers, bit operations on floats, logic on numbers.
    """
    a, b = left, right
    if not isinstance(a, Expr):
        a = as_expr(a, b.dtype if isinstance(b, Expr) else None)
    if not isinstance(b, Expr):
        b = as_expr(b, a.dtype)
    if op.is_logical:
        return _logical(op, a, b)
    if op in _ON_WHOLE and a.dtype in _WHOLE and a.dtype == b.dtype:
        return _folded(op, a, b, a.dtype)
    a, b = _promoted_operands(op, a, b)
    common = a.dtype if a.dtype is b.dtype else promote(a.dtype, b.dtype)
    if common.is_bool and not op.is_comparison and op not in _BOOL_SAFE:
        common = INT32.with_lanes(common.lanes)
    _refuse(op, common)
    return _folded(op, cast(a, common), cast(b, common), common)


_WHOLE = frozenset({INT32, dtype_of("int64")})
_ON_WHOLE = frozenset(
    {
        BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MUL, BinaryOp.FLOORDIV, BinaryOp.FLOORMOD,
        BinaryOp.MIN, BinaryOp.MAX, BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR,
    }
)  # fmt: skip
"""Operations that nothing has to be asked about where both sides are of one such type."""


def _folded(op: BinaryOp, a: Expr, b: Expr, common: DType) -> Expr:
    """Return ``a op b`` of operands of one type, computed as far as it is known."""
    result = BOOL.with_lanes(common.lanes) if op.is_comparison else common
    if isinstance(a, Const) and isinstance(b, Const):
        folded = _fold(op, a.value, b.value, common)
        if folded is not None:
            return const(folded, result)
    if common.is_int and isinstance(b, Const):
        _refuse_undefined(op, b.value, common)
    if common.is_int and common.lanes == 1:
        simpler = _identity(op, a, b)
        if simpler is not None:
            return simpler
    return Binary(op, a, b, result)


_BOOL_SAFE = frozenset(
    {BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR, BinaryOp.MIN, BinaryOp.MAX}
)
_BITWISE = frozenset({BinaryOp.BITAND, BinaryOp.BITOR, BinaryOp.BITXOR, BinaryOp.SHL, BinaryOp.SHR})


def _refuse(op: BinaryOp, dtype: DType) -> None:
    if op is BinaryOp.DIV and not dtype.is_float:
        raise DtypeMismatch(
            f"true division of integers ({dtype}) has no meaning in a kernel",
            hint="use // for floor division, or convert an operand: T.float32(a) / b",
        )
    if op in _BITWISE and dtype.is_float:
        raise DtypeMismatch(
            f"{op.value!r} works on integers, got {dtype}",
            hint="use T.reinterpret(x, 'int32') to reach the bits of a float",
        )
    if dtype.is_handle:
        raise DtypeMismatch(
            f"{op.value!r} does not work on addresses", hint="index a tensor made by T.make_tensor"
        )


def _promoted_operands(op: BinaryOp, a: Expr, b: Expr) -> tuple[Expr, Expr]:
    """Return operands as C's integer promotions leave them, where that can be told from the result.

    Sums, differences and products of short integers have the same low bits in any width, so they
    stay short; what looks at more than those bits sees the whole int32.
    """
    if not (a.dtype.is_int and b.dtype.is_int):
        return promoted(a), promoted(b)
    if op in (BinaryOp.SHL, BinaryOp.SHR):
        b = promoted(b)
        if op is BinaryOp.SHR or may_leave(b, a.dtype):
            a = promoted(a)
        return (_as_int32(a) if may_leave(b, a.dtype) else a), b
    return (a, b) if op in MODULAR else (promoted(a), promoted(b))


def _as_int32(expr: Expr) -> Expr:
    return cast(expr, INT32) if is_short(expr.dtype) else expr


def promoted(expr: Expr) -> Expr:
    """Return a short integer as C computes it: as int32 where its own width may have lost bits.

    Variables, elements and conversions have the value that their type holds.
    """
    if not is_short(expr.dtype) or not loses_bits(expr):
        return expr
    match expr:
        case Binary(op=op, a=a, b=b):
            return binary(op, _as_int32(promoted(a)), _as_int32(promoted(b)))
        case Unary(op=op, a=a):
            return unary(op, _as_int32(promoted(a)))
        case Select(cond=cond, then=then, otherwise=otherwise, lazy=lazy):
            sides = (_as_int32(promoted(side)) for side in (then, otherwise))
            return select(cond, *sides, lazy=lazy)
    return expr


def _logical(op: BinaryOp, a: Expr, b: Expr) -> Expr:
    a, b = truth(a), truth(b)
    for side, other in ((a, b), (b, a)):
        if isinstance(side, Const):
            decides = bool(side.value) is (op is BinaryOp.OR)
            return side if decides else other
    return Binary(op, a, b, BOOL.with_lanes(max(a.dtype.lanes, b.dtype.lanes)))


def truth(value: Any) -> Expr:
    """Return `value` as a bool: numbers compare with zero."""
    expr = as_expr(value)
    if expr.dtype.is_bool:
        return expr
    return binary(BinaryOp.NE, expr, const(0, expr.dtype.scalar))


def _fold(op: BinaryOp, a: int | float, b: int | float, dtype: DType) -> int | float | None:
    """Evaluate on Python numbers where that is exact in `dtype`, else return None.

    Floats fold only in comparisons, min and max of float32/64: elsewhere the rounding of
    `dtype` would be lost.
    """
    if dtype.is_float:
        if op is BinaryOp.MIN or op is BinaryOp.MAX or op.is_comparison:
            return BINARY[op](a, b) if not (math.isnan(a) or math.isnan(b)) else None
        return None
    if op in DIVISIONS:
        if b == 0:
            raise FrontendValueError(
                "division by zero in a compile-time expression",
                hint="the divisor is known while the kernel is traced: change what it is made of",
            )
        return _in_range(int(BINARY[op](a, b)), dtype)
    if op in (BinaryOp.SHL, BinaryOp.SHR):
        if not 0 <= b < dtype.bits:
            raise _bad_shift(dtype, b)
        return _in_range(int(a) << int(b) if op is BinaryOp.SHL else int(a) >> int(b), dtype)
    result = BINARY[op](a, b)
    return result if op.is_comparison else _in_range(result, dtype)


def _bad_shift(dtype: DType, amount: int | float) -> FrontendValueError:
    return FrontendValueError(
        f"a shift of {dtype} by {amount} is outside 0..{dtype.bits - 1}",
        hint="widen the value first, as in T.int64(x), or use // and *",
    )


def _refuse_undefined(op: BinaryOp, right: int | float, dtype: DType) -> None:
    """Refuse operations on integers that no left operand gives a meaning."""
    if op in (BinaryOp.SHL, BinaryOp.SHR) and not 0 <= right < dtype.bits:
        raise _bad_shift(dtype, right)
    if op in DIVISIONS and right == 0:
        raise FrontendValueError(
            f"{op.value!r} divides an integer by zero",
            hint="the divisor is known while the kernel is traced: change what it is made of",
        )


def _in_range(value: int, dtype: DType) -> int | None:
    if dtype.is_bool:
        return value
    low, high = integer_bounds(dtype)
    return value if low <= value <= high else None


@cache
def integer_bounds(dtype: DType) -> tuple[int, int]:
    """Return the smallest and largest value of an integer dtype."""
    if dtype.kind.value == "uint":
        return 0, 2**dtype.bits - 1
    return -(2 ** (dtype.bits - 1)), 2 ** (dtype.bits - 1) - 1


def _identity(op: BinaryOp, a: Expr, b: Expr) -> Expr | None:
    """Return the operand that ``a op b`` equals for every value, if it is one."""
    left = a.value if isinstance(a, Const) else None
    right = b.value if isinstance(b, Const) else None
    if left is right is None and a is not b:
        return None
    match op:
        case BinaryOp.ADD | BinaryOp.BITXOR if left == 0:
            return b
        case BinaryOp.ADD | BinaryOp.SUB | BinaryOp.BITXOR if right == 0:
            return a
        case BinaryOp.MUL if left == 1:
            return b
        case BinaryOp.MUL | BinaryOp.FLOORDIV if right == 1:
            return a
        case BinaryOp.MUL if left == 0 or right == 0:
            return const(0, a.dtype)
        case BinaryOp.FLOORMOD if right == 1:
            return const(0, a.dtype)
        case BinaryOp.SUB | BinaryOp.BITXOR if a is b:
            return const(0, a.dtype)
        case BinaryOp.MIN | BinaryOp.MAX if a is b:
            return a
    return None


def unary(op: UnaryOp, value: Any) -> Expr:
    """Return ``op value``; constants are folded."""
    a = truth(value) if op is UnaryOp.NOT else as_expr(value)
    if op is UnaryOp.BITNOT and a.dtype.is_float:
        raise DtypeMismatch(
            f"'~' works on integers, got {a.dtype}",
            hint="use T.reinterpret(x, 'int32') to reach the bits of a float",
        )
    if op is UnaryOp.BITNOT and a.dtype.is_bool:
        return unary(UnaryOp.NOT, a)
    if isinstance(a, Const):
        if op is UnaryOp.NOT:
            return const(not a.value)
        if op is UnaryOp.NEG and a.dtype.kind.value != "uint":
            return const(-a.value, a.dtype)
    if op is UnaryOp.NEG and a.dtype.is_bool:
        a = cast(a, INT32)
    return Unary(op, a, a.dtype)


def cast(value: Any, dtype: str, *, saturate: bool = True) -> Expr:
    """Return `value` converted to `dtype`; the value itself if it already is that.

    Integer constants, and constants that a wide float holds exactly, convert at once. A float that
    was widened is its old self in the type from which it came.
    """
    target = dtype if isinstance(dtype, DType) else dtype_of(dtype)
    expr = as_expr(value, target)
    if not target.is_int or target.bits > expr.dtype.bits:
        expr = promoted(expr)
    if target.lanes == 1 and expr.dtype.lanes > 1:
        target = target.with_lanes(expr.dtype.lanes)
    if expr.dtype == target:
        return expr
    _refuse_addresses(expr, target)
    if isinstance(expr, Const) and target.lanes == 1 and _converts_exactly(expr.value, target):
        return const(expr.value, target)
    if target.lanes > 1 and expr.dtype.lanes == 1:
        return Broadcast(cast(expr, target.scalar), target.lanes)
    if isinstance(expr, Cast) and expr.value.dtype == target and _is_widened(expr):
        return expr.value
    return Cast(target, expr, saturate)


def _is_widened(x: Cast) -> bool:
    """Tell whether a conversion is one between floats that rounds nothing."""
    narrow, wide = x.value.dtype, x.dtype
    return wide.base in ("float32", "float64") and narrow.is_float and narrow.bits < wide.bits


def truncated(expr: Expr) -> Expr:
    """Return what a conversion to its own type that a program asks for leaves of `expr`."""
    if not is_short(expr.dtype) or not loses_bits(expr):
        return expr
    return Cast(expr.dtype, _as_int32(promoted(expr)))


def converted(value: Any, dtype: str) -> Expr:
    """Return `value` converted to `dtype`, without what an integer of that width cannot hold."""
    return truncated(cast(value, dtype))


def _refuse_addresses(expr: Expr, target: DType) -> None:
    if expr.dtype.is_handle is target.is_handle or (isinstance(expr, Const) and expr.dtype.is_int):
        return
    other = target if expr.dtype.is_handle else expr.dtype
    if not other.is_int or other.bits < 64:
        raise DtypeMismatch(
            f"a value of dtype {expr.dtype} cannot be converted to {target}",
            hint="read what lies at an address with T.make_tensor(address, shape, dtype)",
        )


def _converts_exactly(value: int | float, dtype: DType) -> bool:
    if dtype.is_int:
        low, high = integer_bounds(dtype)
        return math.isfinite(value) and value == int(value) and low <= value <= high
    if dtype.is_bool:
        return value in (0, 1)
    if dtype.base == "float64":
        return True
    if dtype.base == "float32":
        return not math.isfinite(value) or (abs(value) <= 2**24 and value == int(value))
    return dtype.is_float and dtype.bits == 16 and abs(value) <= 256 and value == int(value)


def select(cond: Any, then: Any, otherwise: Any, *, lazy: bool = True) -> Expr:
    """Return ``then if cond else otherwise`` in the promoted dtype of both sides."""
    condition = truth(cond)
    a = as_expr(then, otherwise.dtype if isinstance(otherwise, Expr) else None)
    b = as_expr(otherwise, a.dtype)
    common = promote(a.dtype, b.dtype)
    if isinstance(condition, Const):
        return cast(a if condition.value else b, common)
    return Select(condition, cast(a, common), cast(b, common), lazy)


def call(function: str, *args: Any) -> Expr:
    """Return a call of the intrinsic `function`; its table entry gives the result dtype.

    Raises
    ------
    FrontendTypeError
        Unknown intrinsic, wrong number of arguments, or an argument of the wrong kind.
    """
    if function not in INTRINSICS:
        raise FrontendTypeError(
            f"there is no intrinsic {function!r}",
            hint="call a C function with T.call_extern, or use a function of T",
        )
    exprs = tuple(as_expr(a) for a in args)
    if function == "abs":
        exprs = tuple(promoted(e) for e in exprs)
    return Call(function, *resolved(function, exprs))


def resolved(function: str, args: tuple[Expr, ...]) -> tuple[tuple[Expr, ...], DType]:
    """Return the arguments of an intrinsic as it takes them, and the dtype of its result.

    Raises
    ------
    FrontendTypeError
        If an argument is of the wrong kind, or their number is wrong.
    """
    wanted, dtype = INTRINSICS[function].resolve(function, args)
    given = zip(args, wanted, strict=True)
    return tuple(a if to is None else cast(a, to) for a, to in given), dtype


def minimum(a: Any, b: Any) -> Expr:
    """Return the smaller of two values; NaN handling is `BinaryOp.MIN`'s."""
    return binary(BinaryOp.MIN, a, b)


def maximum(a: Any, b: Any) -> Expr:
    """Return the larger of two values; NaN handling is `BinaryOp.MAX`'s."""
    return binary(BinaryOp.MAX, a, b)


def ceildiv(a: Any, b: Any) -> Any:
    """Return ``a / b`` rounded up, for Python ints and expressions alike."""
    if isinstance(a, int) and isinstance(b, int):
        return -(-a // b)
    return binary(BinaryOp.FLOORDIV, as_expr(a) + b - 1, b)


def all_of(conditions: list[Expr]) -> Expr | None:
    """Return the conjunction of `conditions`, or None if there are none."""
    result: Expr | None = None
    for condition in conditions:
        result = condition if result is None else binary(BinaryOp.AND, result, condition)
    return result
