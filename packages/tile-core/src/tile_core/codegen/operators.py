"""How C++ spells operations, and how strongly its operators bind."""

from __future__ import annotations

from tile_core.ir.expr import BinaryOp
from tile_core.records import dataclass

# Binding strength, weakest first, as in the C++ grammar.
TERNARY, LOGIC_OR, LOGIC_AND, BIT_OR, BIT_XOR, BIT_AND = 1, 2, 3, 4, 5, 6
EQUALITY, RELATION, SHIFT, SUM, PRODUCT, UNARY, PRIMARY = 7, 8, 9, 10, 11, 12, 13


@dataclass(frozen=True, slots=True)
class Infix:
    """An operator between two operands.

    Parameters
    ----------
    level
        How strongly it binds.
    left, right
        How strongly operands must bind to stand without parentheses. Where the grammar would
        allow less than readers know by heart (``a & b == c``, ``a << b + c``), this asks
        for more.
    """

    text: str
    level: int
    left: int
    right: int


INFIX = {
    BinaryOp.ADD: Infix("+", SUM, SUM, PRODUCT),
    BinaryOp.SUB: Infix("-", SUM, SUM, PRODUCT),
    BinaryOp.MUL: Infix("*", PRODUCT, PRODUCT, UNARY),
    BinaryOp.DIV: Infix("/", PRODUCT, PRODUCT, UNARY),
    BinaryOp.TRUNCDIV: Infix("/", PRODUCT, PRODUCT, UNARY),
    BinaryOp.TRUNCMOD: Infix("%", PRODUCT, PRODUCT, UNARY),
    BinaryOp.SHL: Infix("<<", SHIFT, UNARY, UNARY),
    BinaryOp.SHR: Infix(">>", SHIFT, UNARY, UNARY),
    BinaryOp.BITAND: Infix("&", BIT_AND, UNARY, UNARY),
    BinaryOp.BITOR: Infix("|", BIT_OR, UNARY, UNARY),
    BinaryOp.BITXOR: Infix("^", BIT_XOR, UNARY, UNARY),
    BinaryOp.LT: Infix("<", RELATION, SUM, SUM),
    BinaryOp.LE: Infix("<=", RELATION, SUM, SUM),
    BinaryOp.GT: Infix(">", RELATION, SUM, SUM),
    BinaryOp.GE: Infix(">=", RELATION, SUM, SUM),
    BinaryOp.EQ: Infix("==", EQUALITY, SUM, SUM),
    BinaryOp.NE: Infix("!=", EQUALITY, SUM, SUM),
    BinaryOp.AND: Infix("&&", LOGIC_AND, LOGIC_AND, EQUALITY),
    BinaryOp.OR: Infix("||", LOGIC_OR, EQUALITY, EQUALITY),
}
"""Operators that C++ has. Division and remainder that round down are told apart by range."""

FUNCTIONS = {
    BinaryOp.FLOORDIV: "floordiv",
    BinaryOp.FLOORMOD: "floormod",
    BinaryOp.MIN: "min",
    BinaryOp.MAX: "max",
    BinaryOp.TRUNCDIV: "truncdiv",
    BinaryOp.TRUNCMOD: "truncmod",
}
"""Operations that are functions of the device header."""

RENAMED = {
    "shfl_sync": "shfl_idx",
    "any_sync": "any",
    "all_sync": "all",
    "ballot_sync": "ballot",
    "match_any_sync": "match_any",
    "match_all_sync": "match_all",
    "printf": "print",
}
"""Intrinsics whose function in the device header has another name."""


def function_name(intrinsic: str) -> str:
    """Return the name of an intrinsic in the device header."""
    if intrinsic.startswith("__"):
        return f"fast_{intrinsic[2:]}"
    return RENAMED.get(intrinsic, intrinsic)
