"""The C++ text of scalar expressions, with as few parentheses as readers need."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any, TypeAlias

from tile_core.arith.bounds import Bounds
from tile_core.codegen.calls import print_call
from tile_core.codegen.names import CppNames
from tile_core.codegen.operators import (
    BIT_AND,
    FUNCTIONS,
    INFIX,
    LOGIC_OR,
    PRIMARY,
    SHIFT,
    SUM,
    TERNARY,
    UNARY,
    Infix,
)
from tile_core.codegen.types import cpp_type, is_bare, is_small_int, literal, string_literal
from tile_core.dtypes import DType
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import (
    AddressOf,
    Binary,
    BinaryOp,
    Bitcast,
    Call,
    Cast,
    Const,
    Expr,
    Load,
    Select,
    Shuffle,
    StringConst,
    Unary,
    UnaryOp,
    Var,
)
from tile_core.ir.extrema import is_extremum_or_nan
from tile_core.records import dataclass

Text: TypeAlias = "tuple[str, int]"
"""A piece of C++ and how strongly its outermost operator binds."""


@dataclass(slots=True)
class ExpressionPrinter:
    """Prints the expressions of one function.

    `bounds` tells what values integers can have: divisions of numbers that are never negative
    need no function. The machine's header may have other names for functions: `device_names`.
    """

    names: CppNames
    bounds: Bounds
    device_names: Mapping[str, str] = field(default_factory=dict)

    def text(self, expr: Expr, strength: int = 0) -> str:
        """Return `expr`, in parentheses if it binds less than `strength`."""
        found, level = self.piece(expr)
        return found if level >= strength else f"({found})"

    def piece(self, expr: Expr) -> Text:
        """Return `expr` and how strongly it binds."""
        printer = _PRINTERS.get(type(expr))
        if printer is None:
            raise InternalError(f"{type(expr).__name__} is not printed as C++", span=expr.span)
        return printer(self, expr)

    def argument(self, expr: Expr) -> str:
        """Return `expr` as something whose C++ type is exactly its own.

        Elements of memory may be stand-ins for their value, which templates and ``?:``
        would take for what they are.
        """
        text = self.text(expr)
        if type(expr) is Load and expr.buffer.scope is not Scope.VAR:
            return f"{cpp_type(expr.dtype)}({text})"
        return text

    def index(self, indices: Sequence[Expr]) -> Text:
        """Return the offset of an element: the one index of a flat buffer."""
        if len(indices) != 1:
            raise InternalError("a buffer that is not flat reached the printer")
        return self.piece(_narrow(indices[0]))

    def place(self, buffer: Buffer) -> str:
        """Return the pointer or register array that `buffer` is."""
        if isinstance(buffer.origin, Expr):
            return f"tile::at<{cpp_type(buffer.dtype)}>({self.argument(buffer.origin)})"
        return self.names.of(buffer)

    def element(self, buffer: Buffer, indices: Sequence[Expr]) -> str:
        """Return one element of `buffer`, to read or to write."""
        if buffer.scope is Scope.VAR:
            return self.names.of(buffer)
        return f"{self.place(buffer)}[{self.index(indices)[0]}]"

    def infix(self, how: Infix, a: Expr, b: Expr) -> Text:
        """Return ``a how b``."""
        if a.dtype.base == "int64":
            return self._infix_wide(how, a, b)
        left, right = self.text(a, how.left), self.text(b, how.right)
        return f"{left} {how.text} {right}", how.level

    def _infix_wide(self, how: Infix, a: Expr, b: Expr) -> Text:
        """One operand of 64 bits is enough for C++ to widen the other."""
        if type(b) is Const or _narrow(b) is not b:
            left, right = self.text(a, how.left), self._narrow_text(b, how.right)
        elif type(a) is Const or _narrow(a) is not a:
            left, right = self._narrow_text(a, how.left), self.text(b, how.right)
        else:
            left, right = self.text(a, how.left), self.text(b, how.right)
        return f"{left} {how.text} {right}", how.level

    def _narrow_text(self, expr: Expr, strength: int) -> str:
        if type(expr) is Const and is_bare(expr.value):
            text = str(int(expr.value))
            return f"({text})" if expr.value < 0 and strength > UNARY else text
        return self.text(_narrow(expr), strength)

    def call(self, name: str, args: Sequence[Expr]) -> Text:
        """Return a call of the device header's function `name`."""
        return f"tile::{name}({', '.join(map(self.argument, args))})", PRIMARY


def _narrow(expr: Expr) -> Expr:
    """Return what is widened to 64 bits, if C++ would do the same unasked."""
    if type(expr) is Cast and expr.dtype.base == "int64":
        inner = expr.value.dtype
        if inner.is_int and inner.bits <= 32 and inner.lanes == 1:
            return expr.value
    return expr


def _const(p: ExpressionPrinter, expr: Const) -> Text:
    text = literal(expr.value, expr.dtype)
    if text[0] != "-":
        return text, PRIMARY
    return text, SUM if " " in text else UNARY


def _string(p: ExpressionPrinter, expr: StringConst) -> Text:
    return string_literal(expr.value), PRIMARY


def _var(p: ExpressionPrinter, expr: Var) -> Text:
    return p.names.of(expr), PRIMARY


def _load(p: ExpressionPrinter, expr: Load) -> Text:
    return p.element(expr.buffer, expr.indices), PRIMARY


def _address(p: ExpressionPrinter, expr: AddressOf) -> Text:
    if expr.buffer.scope is Scope.VAR:
        return f"&{p.names.of(expr.buffer)}", UNARY
    index, level = p.index(expr.indices)
    base = p.place(expr.buffer)
    if index == "0":
        return base, PRIMARY
    return f"{base} + {index if level == PRIMARY else f'({index})'}", SUM


def _binary(p: ExpressionPrinter, expr: Binary) -> Text:
    operands = expr.a.dtype
    if operands.is_narrow_float and not expr.op.is_logical:
        return _in_float32(p, expr)
    if operands.is_bool and not expr.op.is_logical:
        found = _on_truths(p, expr)
    else:
        found = _operation(p, expr, operands)
    if is_small_int(expr.dtype) and not (expr.op is BinaryOp.MIN or expr.op is BinaryOp.MAX):
        return f"tile::cast<{cpp_type(expr.dtype)}>({found[0]})", PRIMARY
    return found


def _operation(p: ExpressionPrinter, expr: Binary, operands: DType) -> Text:
    op, a, b = expr.op, expr.a, expr.b
    if operands.is_int and (op is BinaryOp.FLOORDIV or op is BinaryOp.FLOORMOD):
        return _rounding_down(p, expr)
    if operands.is_int and (op is BinaryOp.TRUNCDIV or op is BinaryOp.TRUNCMOD):
        return _rounding_to_zero(p, op, a, b)
    if op is BinaryOp.ADD and _is_negative(b):
        return p.infix(INFIX[BinaryOp.SUB], a, Const(-b.value, b.dtype))  # type: ignore[attr-defined]
    how = INFIX.get(op)
    if how is None or (operands.is_float and op in FUNCTIONS):
        return p.call(FUNCTIONS[op], (a, b))
    return p.infix(how, a, b)


def _is_negative(expr: Expr) -> bool:
    return (
        type(expr) is Const and expr.dtype.base in ("int32", "int64") and -(2**31) < expr.value < 0
    )


def _rounding_down(p: ExpressionPrinter, expr: Binary) -> Text:
    """Shifts and masks round down whatever the sign; C++'s division only without one."""
    a, b = expr.a, expr.b
    divides = expr.op is BinaryOp.FLOORDIV
    if type(b) is Const and b.value > 0 and b.value & (int(b.value) - 1) == 0:  # type: ignore[operator]
        value = p.text(a, UNARY)
        if divides:
            return f"{value} >> {int(b.value).bit_length() - 1}", SHIFT
        return f"{value} & {int(b.value) - 1}", BIT_AND
    if p.bounds.is_natural(a) and p.bounds.is_natural(b):
        return _rounding_to_zero(p, BinaryOp.TRUNCDIV if divides else BinaryOp.TRUNCMOD, a, b)
    return p.call(FUNCTIONS[expr.op], (a, b))


def _rounding_to_zero(p: ExpressionPrinter, op: BinaryOp, a: Expr, b: Expr) -> Text:
    """C++'s own division has no meaning for zero, nor where the quotient is no number."""
    if p.bounds.of(b)[0] > 0:
        return p.infix(INFIX[op], a, b)
    return p.call(FUNCTIONS[op], (a, b))


def _on_truths(p: ExpressionPrinter, expr: Binary) -> Text:
    """C++ computes with truth values as int; only comparisons give one back."""
    match expr.op:
        case BinaryOp.BITXOR:
            return p.infix(INFIX[BinaryOp.NE], expr.a, expr.b)
        case BinaryOp.MIN | BinaryOp.BITAND:
            how = INFIX[BinaryOp.BITAND]
        case BinaryOp.MAX | BinaryOp.BITOR:
            how = INFIX[BinaryOp.BITOR]
        case _:
            return p.infix(INFIX[expr.op], expr.a, expr.b)
    return f"tile::cast<bool>({p.infix(how, expr.a, expr.b)[0]})", PRIMARY


def _in_float32(p: ExpressionPrinter, expr: Binary) -> Text:
    """Floats of 8 bits and fewer have no arithmetic of their own."""
    float32 = DType("float32")
    result = float32 if expr.dtype.is_float else expr.dtype
    wide = Binary(expr.op, Cast(float32, expr.a), Cast(float32, expr.b), result)
    return p.piece(wide if result is expr.dtype else Cast(expr.dtype, wide))


def _unary(p: ExpressionPrinter, expr: Unary) -> Text:
    if expr.dtype.is_narrow_float:
        float32 = DType("float32")
        return p.piece(Cast(expr.dtype, Unary(expr.op, Cast(float32, expr.a), float32)))
    sign = _SIGNS[expr.op]
    operand = p.text(expr.a, UNARY)
    text = f"{sign}({operand})" if operand[0] == sign else f"{sign}{operand}"
    if is_small_int(expr.dtype):
        return f"tile::cast<{cpp_type(expr.dtype)}>({text})", PRIMARY
    return text, UNARY


_SIGNS = {UnaryOp.NEG: "-", UnaryOp.NOT: "!", UnaryOp.BITNOT: "~"}


def _select(p: ExpressionPrinter, expr: Select) -> Text:
    then = p.argument(expr.then)
    if type(expr.then) is Select:
        then = f"({then})"
    text = f"{p.text(expr.cond, LOGIC_OR)} ? {then} : {p.argument(expr.otherwise)}"
    return (f"tile::opaque({text})", PRIMARY) if is_extremum_or_nan(expr) else (text, TERNARY)


def _cast(p: ExpressionPrinter, expr: Cast) -> Text:
    narrows = not expr.saturate and expr.dtype.is_narrow_float
    name = "cast_unsaturated" if narrows else "cast"
    return f"tile::{name}<{cpp_type(expr.dtype)}>({p.text(expr.value)})", PRIMARY


def _bitcast(p: ExpressionPrinter, expr: Bitcast) -> Text:
    return f"tile::bitcast<{cpp_type(expr.dtype)}>({p.argument(expr.value)})", PRIMARY


def _call(p: ExpressionPrinter, expr: Call) -> Text:
    return print_call(expr, p.argument, p.device_names), PRIMARY


def _shuffle(p: ExpressionPrinter, expr: Shuffle) -> Text:
    """Print the one scalar that is picked of several."""
    if len(expr.picks) != 1 or any(v.dtype.lanes != 1 for v in expr.vectors):
        raise InternalError("a vector reached the printer", span=expr.span)
    return p.piece(expr.vectors[expr.picks[0]])


_PRINTERS: dict[type, Callable[[ExpressionPrinter, Any], Text]] = {
    Const: _const,
    StringConst: _string,
    Var: _var,
    Load: _load,
    AddressOf: _address,
    Binary: _binary,
    Unary: _unary,
    Select: _select,
    Cast: _cast,
    Bitcast: _bitcast,
    Call: _call,
    Shuffle: _shuffle,
}
