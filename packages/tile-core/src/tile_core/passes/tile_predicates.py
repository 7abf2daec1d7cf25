"""Conditions of whole tiles: whether any element of a box meets the condition of elements."""

from __future__ import annotations

from collections.abc import Mapping

from tile_core.arith.affine import linear_in
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Scope
from tile_core.ir.build_expr import binary, unary
from tile_core.ir.expr import Binary, BinaryOp, Call, Const, Expr, Load, Unary, UnaryOp, Var
from tile_core.ir.free_variables import free_variables
from tile_core.ir.node import Node, substitute, walk

_OPPOSITE = {
    BinaryOp.LT: BinaryOp.GE,
    BinaryOp.GE: BinaryOp.LT,
    BinaryOp.GT: BinaryOp.LE,
    BinaryOp.LE: BinaryOp.GT,
    BinaryOp.EQ: BinaryOp.NE,
    BinaryOp.NE: BinaryOp.EQ,
}

_SMALLER_LEFT = (BinaryOp.LT, BinaryOp.LE)
_ORDER = (*_SMALLER_LEFT, BinaryOp.GT, BinaryOp.GE)


def tile_predicate(cond: Expr, box: Mapping[Var, int], *, negated: bool = False) -> Expr:
    """Return a condition without the variables of `box` that holds if `cond` does anywhere in it.

    It may hold where `cond` does nowhere, never the other way round. An order of linear
    expressions is decided by a corner of the box: ``k + j < n`` for some j of 128 if
    ``k < n``. What is true of two things is asked of each; what no corner decides is taken to be
    true: the constant. Only what all threads of a block know is asked: index variables and
    scalars, no elements of tiles and tensors.

    Parameters
    ----------
    box
        How far each variable counts, from 0.
    negated
        Whether elements are sought for which `cond` does not hold.
    """
    match cond:
        case Unary(op=UnaryOp.NOT, a=inner):
            return tile_predicate(inner, box, negated=not negated)
        case Binary(op=BinaryOp.AND | BinaryOp.OR as op, a=a, b=b):
            both = (op is BinaryOp.AND) is not negated
            sides = (tile_predicate(side, box, negated=negated) for side in (a, b))
            return binary(BinaryOp.AND if both else BinaryOp.OR, *sides)
        case Binary(op=op, a=a, b=b) if op in _OPPOSITE:
            return _compared(_OPPOSITE[op] if negated else op, a, b, box)
    if not _is_common(cond) or free_variables(cond).keys() & box.keys():
        return _TRUE
    return unary(UnaryOp.NOT, cond) if negated else cond


_TRUE = Const(True, dtype_of("bool"))


def _compared(op: BinaryOp, a: Expr, b: Expr, box: Mapping[Var, int]) -> Expr:
    """Return whether two values compare so at the corner of the box that is best for it."""
    if not _is_common(a) or not _is_common(b):
        return _TRUE
    corner: dict[Node, Node] = {}
    for var in box.keys() & (free_variables(a).keys() | free_variables(b).keys()):
        left, right = linear_in(a, var), linear_in(b, var)
        if left is None or right is None or op not in _ORDER:
            return _TRUE
        grows = right[0] - left[0] if op in _SMALLER_LEFT else left[0] - right[0]
        corner[var] = Const(box[var] - 1 if grows > 0 else 0, var.dtype)
    return binary(op, _folded(a, corner), _folded(b, corner))


def _folded(expr: Expr, values: dict[Node, Node]) -> Expr:
    """Return the expression with variables replaced, sums of constants added up."""
    if isinstance(expr, Binary):
        return binary(expr.op, _folded(expr.a, values), _folded(expr.b, values))
    return substitute(expr, values)


def _is_common(expr: Expr) -> bool:
    """Whether all threads of a block have the same value of an integer, but for the box."""
    for node in walk(expr):
        if isinstance(node, Call) or (
            isinstance(node, Load) and node.buffer.scope is not Scope.VAR
        ):
            return False
    return True
