"""Numbers that a kernel's host computes, as data: nothing in a file is ever run as Python.

An expression is a number, the name of a variable, or an operation before its operands:

    ["//", ["+", "m", 127], 128]        # (m + 127) // 128
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, TypeAlias

from tile_launch.errors import InvalidBundle

Expression: TypeAlias = "bool | int | float | str | tuple[Any, ...]"
"""What JSON says, with tuples for lists."""

DEEPEST = 80
"""Operations inside each other; Python reads about 200 nested parentheses."""

FARTHEST = 64
"""Bits by which numbers are moved to the left."""

WIDEST = 1 << 12
"""Bits of the numbers that expressions compute with."""


def truncdiv(a: int, b: int) -> int:
    """Return a quotient rounded towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def truncmod(a: int, b: int) -> int:
    """Return what a quotient rounded towards zero leaves."""
    return a - truncdiv(a, b) * b


def shifted(a: int, b: int) -> int:
    """Return `a` moved by `b` bits to the left: by 64 at most, as memory is finite."""
    if not 0 <= b <= FARTHEST:
        raise OverflowError(f"{a} << {b} is no number of a kernel")
    return a << b


def shifted_back(a: int, b: int) -> int:
    """Return `a` moved by `b` bits to the right."""
    if b < 0:
        raise OverflowError(f"{a} >> {b} is no number of a kernel")
    return a >> b


def whole(a: Any) -> Any:
    """Return a number rounded towards zero."""
    if isinstance(a, float) and a - a != 0:
        raise OverflowError(f"{a} is no integer")
    return int(a) if isinstance(a, float | bool) else a  # symbols of a tracer stay symbols


OPERATIONS: dict[str, tuple[str, Callable[..., Any]]] = {
    "+": ("({} + {})", operator.add),
    "-": ("({} - {})", operator.sub),
    "*": ("({} * {})", operator.mul),
    "/": ("({} / {})", operator.truediv),
    "//": ("({} // {})", operator.floordiv),
    "%": ("({} % {})", operator.mod),
    "truncdiv": ("truncdiv({}, {})", truncdiv),
    "truncmod": ("truncmod({}, {})", truncmod),
    "min": ("min({}, {})", min),
    "max": ("max({}, {})", max),
    "and": ("({} and {})", lambda a, b: bool(a and b)),
    "or": ("({} or {})", lambda a, b: bool(a or b)),
    "&": ("({} & {})", operator.and_),
    "|": ("({} | {})", operator.or_),
    "^": ("({} ^ {})", operator.xor),
    "<<": ("shifted({}, {})", shifted),
    ">>": ("shifted_back({}, {})", shifted_back),
    "==": ("({} == {})", operator.eq),
    "!=": ("({} != {})", operator.ne),
    "<": ("({} < {})", operator.lt),
    "<=": ("({} <= {})", operator.le),
    ">": ("({} > {})", operator.gt),
    ">=": ("({} >= {})", operator.ge),
    "neg": ("(-{})", operator.neg),
    "not": ("(not {})", operator.not_),
    "~": ("(~{})", operator.invert),
    "int": ("whole({})", whole),
    "float": ("float({})", float),
}
"""How each operation is written, and what it computes of exact numbers."""
_SELECT = "select"  # condition, then, otherwise: only one of the two is computed

FUNCTIONS: dict[str, Callable[..., Any]] = {
    "shifted": shifted,
    "shifted_back": shifted_back,
    "truncdiv": truncdiv,
    "truncmod": truncmod,
    "whole": whole,
}
"""What texts of `text_of` call, beside Python's own functions."""


def read(data: Any, where: str, depth: int = 0) -> Expression:
    """Return what JSON says as an expression."""
    if isinstance(data, bool | int | float | str):
        return data
    if not isinstance(data, list | tuple) or not data or depth > DEEPEST:
        raise InvalidBundle(f"{where}: {_short(data)} is not an expression")
    name, *operands = data
    if not isinstance(name, str) or _operands(name) != len(operands):
        raise InvalidBundle(f"{where}: {_short(data)} is not an operation that is known")
    return (name, *(read(operand, where, depth + 1) for operand in operands))


def _operands(name: str) -> int | None:
    if name == _SELECT:
        return 3
    known = OPERATIONS.get(name)
    return None if known is None else known[0].count("{}")


def _short(data: Any) -> str:
    text = repr(data)
    return text if len(text) <= 60 else f"{text[:57]}..."


def text_of(expression: Expression, names: Mapping[str, str]) -> str:
    """Return Python text with the value of an expression.

    Examples
    --------
    >>> text_of(("//", ("+", "m", 127), 128), {"m": "s0"})
    '((s0 + 127) // 128)'
    """
    if isinstance(expression, str):
        if expression not in names:
            raise InvalidBundle(f"nothing says what {expression!r} is")
        return names[expression]
    if not isinstance(expression, tuple):
        return repr(expression) if expression - expression == 0 else f'float("{expression}")'
    name, *operands = expression
    texts = [text_of(operand, names) for operand in operands]
    if name == _SELECT:
        condition, then, otherwise = texts
        return f"({then} if {condition} else {otherwise})"
    return OPERATIONS[name][0].format(*texts)


def value_of(expression: Expression, values: Mapping[str, Any]) -> Any:
    """Return the value of an expression in Python's exact arithmetic.

    Raises
    ------
    KeyError
        If a variable has no value.
    ArithmeticError
        If something is divided by zero, or has no value for another reason.
    """
    if isinstance(expression, str):
        return values[expression]
    if not isinstance(expression, tuple):
        return expression
    name, *operands = expression
    if name == _SELECT:
        condition, then, otherwise = operands
        return value_of(then if value_of(condition, values) else otherwise, values)
    return OPERATIONS[name][1](*(value_of(operand, values) for operand in operands))


class ExpressionType(NamedTuple):
    """What an expression computes: ``"bool"``, ``"int"`` of at most `bits`, or ``"float"``."""

    name: str
    bits: int


_TRUTHS = frozenset({"and", "or", "not", "==", "!=", "<", "<=", ">", ">="})
_OF_BITS = frozenset({"&", "|", "^", "~", "<<", ">>"})
_FLOAT = ExpressionType("float", 64)
_BITS_OF_FLOATS = 1100  # of the integer that the largest one is


def kind_of(
    expression: Expression, known: Mapping[str, ExpressionType], where: str
) -> ExpressionType:
    """Return what an expression computes, for variables of `known` kinds.

    Raises
    ------
    InvalidBundle
        If a variable is unknown, bits of a float are asked for, or integers may get too long.
    """
    if isinstance(expression, str):
        if expression not in known:
            raise InvalidBundle(f"{where}: nothing says what {expression!r} is")
        return known[expression]
    if isinstance(expression, bool | int):
        is_bool = isinstance(expression, bool)
        return ExpressionType("bool" if is_bool else "int", expression.bit_length())
    if not isinstance(expression, tuple):
        return _FLOAT
    name, *operands = expression
    kinds = [kind_of(operand, known, where) for operand in operands]
    found = _kind_of_operation(name, kinds[1:] if name == _SELECT else kinds)
    if found is None or found.bits > WIDEST:
        raise InvalidBundle(f"{where}: {_short(expression)} is no number of a kernel")
    return found


def _kind_of_operation(name: str, kinds: list[ExpressionType]) -> ExpressionType | None:
    has_float = any(kind.name == "float" for kind in kinds)
    widest = max(kind.bits for kind in kinds)
    if name in _TRUTHS:
        return ExpressionType("bool", widest)  # Python's `and` returns one of its operands
    if name == "int":
        return ExpressionType("int", _BITS_OF_FLOATS if has_float else widest)
    if name in _OF_BITS:
        is_bool = name in "&|^" and all(kind.name == "bool" for kind in kinds)
        more = FARTHEST if name == "<<" else 1
        return None if has_float else ExpressionType("bool" if is_bool else "int", widest + more)
    if has_float or name in ("/", "float"):
        return _FLOAT
    if name in (_SELECT, "min", "max"):
        is_bool = all(kind.name == "bool" for kind in kinds)
        return ExpressionType("bool" if is_bool else "int", widest)
    return ExpressionType("int", sum(kind.bits for kind in kinds) if name == "*" else widest + 1)


def variables_of(expression: Expression) -> dict[str, None]:
    """Return the variables of an expression, as an ordered set."""
    if isinstance(expression, str):
        return {expression: None}
    found: dict[str, None] = {}
    if isinstance(expression, tuple):
        for operand in expression[1:]:
            found |= variables_of(operand)
    return found


STRENGTH = {
    "or": 1, "and": 2, "==": 4, "!=": 4, "<": 4, "<=": 4, ">": 4, ">=": 4, "|": 5, "^": 6, "&": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "//": 10, "%": 10,
}  # fmt: skip
"""How strongly operators bind their operands, as in Python."""


def words_of(expression: Expression, strength: int = 0) -> str:
    """Return an expression as people write it; what binds less than `strength` in parentheses.

    Examples
    --------
    >>> words_of(("//", ("+", "m", 127), 128)), words_of(("min", "m", ("*", 2, "n")))
    ('(m + 127) // 128', 'min(m, 2 * n)')
    """
    if not isinstance(expression, tuple):
        return str(expression)
    name, *operands = expression
    level = STRENGTH.get(name)
    if level is not None:
        a, b = operands
        text = f"{words_of(a, level)} {name} {words_of(b, level + 1)}"
        return f"({text})" if level < strength else text
    if name in ("neg", "not", "~"):
        sign = {"neg": "-", "not": "not "}.get(name, name)
        return f"{sign}{words_of(operands[0], max(STRENGTH.values()) + 1)}"
    return f"{name}({', '.join(map(words_of, operands))})"
