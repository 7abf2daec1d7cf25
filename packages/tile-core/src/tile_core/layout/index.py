"""Index expressions: integer functions of the coordinates of a box, built with operators."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from dataclasses import field
from enum import Enum
from typing import Any, TypeAlias, TypeVar

import numpy as np
from typing_extensions import Never

from tile_core.errors import LayoutError
from tile_core.records import dataclass

R = TypeVar("R")


class IndexOp(Enum):
    """Operations of two integers. Division and remainder round toward minus infinity."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    FLOORDIV = "//"
    FLOORMOD = "%"
    XOR = "^"
    MIN = "min"
    MAX = "max"


_CODES = {op: number for number, op in enumerate(IndexOp)}
_PRECEDENCE = {"^": 0, "+": 1, "-": 1, "*": 2, "//": 2, "%": 2}


class IndexExpr:
    """An integer function of input coordinates: a `Const`, an `Input` or a `Binary`.

    Python's ``+ - * // % ^`` build new expressions, with constants folded. Divisors are
    positive constants. Expressions have no truth value and no ``==``: a layout that branches
    on a coordinate would silently take one side for the whole box. Compare expressions with
    `same_expr`.
    """

    __slots__ = ()
    __array_ufunc__ = None  # numpy integers on the left give way to our reflected operators

    def __add__(self, other: Any) -> AnyIndex:
        return build(IndexOp.ADD, self, other)

    def __radd__(self, other: Any) -> AnyIndex:
        return build(IndexOp.ADD, other, self)

    def __sub__(self, other: Any) -> AnyIndex:
        return build(IndexOp.SUB, self, other)

    def __rsub__(self, other: Any) -> AnyIndex:
        return build(IndexOp.SUB, other, self)

    def __mul__(self, other: Any) -> AnyIndex:
        return build(IndexOp.MUL, self, other)

    def __rmul__(self, other: Any) -> AnyIndex:
        return build(IndexOp.MUL, other, self)

    def __floordiv__(self, other: Any) -> AnyIndex:
        return build(IndexOp.FLOORDIV, self, other)

    def __rfloordiv__(self, other: Any) -> AnyIndex:
        return build(IndexOp.FLOORDIV, other, self)

    def __mod__(self, other: Any) -> AnyIndex:
        return build(IndexOp.FLOORMOD, self, other)

    def __rmod__(self, other: Any) -> AnyIndex:
        return build(IndexOp.FLOORMOD, other, self)

    def __xor__(self, other: Any) -> AnyIndex:
        return build(IndexOp.XOR, self, other)

    def __rxor__(self, other: Any) -> AnyIndex:
        return build(IndexOp.XOR, other, self)

    def __neg__(self) -> AnyIndex:
        return build(IndexOp.SUB, 0, self)

    def __bool__(self) -> Never:
        raise _branches()

    def __eq__(self, other: object) -> Never:
        raise _branches()

    def __ne__(self, other: object) -> Never:
        raise _branches()

    def __lt__(self, other: object) -> Never:
        raise _branches()

    def __le__(self, other: object) -> Never:
        raise _branches()

    def __gt__(self, other: object) -> Never:
        raise _branches()

    def __ge__(self, other: object) -> Never:
        raise _branches()

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return to_text(self)


def _branches() -> LayoutError:
    return LayoutError(
        "an index expression cannot be compared: a layout is one formula for its whole box",
        hint="use //, %, ^, or minimum and maximum; same_expr compares two formulas",
    )


@dataclass(frozen=True, slots=True, eq=False)
class Const(IndexExpr):
    """A fixed integer."""

    value: int
    digest: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hash((1, self.value)))


@dataclass(frozen=True, slots=True, eq=False)
class Input(IndexExpr):
    """Coordinate number `axis` of the box, counted from 0."""

    axis: int
    digest: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "digest", hash((2, self.axis)))


@dataclass(frozen=True, slots=True, eq=False)
class Binary(IndexExpr):
    """``a op b``. Build it with operators, or with `build`, which fold and check."""

    op: IndexOp
    a: AnyIndex
    b: AnyIndex
    digest: int = field(init=False, repr=False)  # of integers only: alike in every process

    def __post_init__(self) -> None:
        digest = hash((3, _CODES[self.op], self.a.digest, self.b.digest))
        object.__setattr__(self, "digest", digest)


AnyIndex: TypeAlias = "Const | Input | Binary"


def as_index(value: Any) -> AnyIndex:
    """Return `value`, an expression or a whole number, as an expression.

    Raises
    ------
    LayoutError
        If it is neither.
    """
    if isinstance(value, (Const, Input, Binary)):
        return value
    try:
        return Const(operator.index(value))
    except TypeError:
        raise LayoutError(
            f"a coordinate must be a whole number or an index expression, got {value!r}",
            hint="layouts know + - * // % ^ and minimum, maximum of their coordinates",
        ) from None


def build(op: IndexOp, left: Any, right: Any) -> AnyIndex:
    """Return ``left op right``, with constants folded and neutral operands dropped.

    Raises
    ------
    LayoutError
        For an operand that is no integer, or a divisor that is no positive constant.
    """
    a, b = as_index(left), as_index(right)
    if op in (IndexOp.FLOORDIV, IndexOp.FLOORMOD) and not (isinstance(b, Const) and b.value > 0):
        raise LayoutError(f"the divisor in ({a}) {op.value} ({b}) is not a positive constant")
    if isinstance(a, Const) and isinstance(b, Const):
        return Const(apply_op(op, a.value, b.value))
    if isinstance(b, Const):
        if b.value == 0 and op in (IndexOp.ADD, IndexOp.SUB, IndexOp.XOR):
            return a
        if b.value == 1 and op in (IndexOp.MUL, IndexOp.FLOORDIV):
            return a
        if (op is IndexOp.MUL and b.value == 0) or (op is IndexOp.FLOORMOD and b.value == 1):
            return Const(0)
    if isinstance(a, Const):
        if a.value == 0 and op in (IndexOp.ADD, IndexOp.XOR):
            return b
        if a.value == 1 and op is IndexOp.MUL:
            return b
        if a.value == 0 and op in (IndexOp.MUL, IndexOp.FLOORDIV, IndexOp.FLOORMOD):
            return Const(0)
    return Binary(op, a, b)


def minimum(a: Any, b: Any) -> AnyIndex:
    """Return the smaller of two index expressions."""
    return build(IndexOp.MIN, a, b)


def maximum(a: Any, b: Any) -> AnyIndex:
    """Return the larger of two index expressions."""
    return build(IndexOp.MAX, a, b)


def inputs(rank: int) -> tuple[Input, ...]:
    """Return the coordinates of a box of `rank` dimensions."""
    return tuple(Input(axis) for axis in range(rank))


def same_expr(a: IndexExpr, b: IndexExpr) -> bool:
    """Whether two expressions are the same formula, symbol by symbol."""
    if a is b:
        return True
    match a, b:
        case Const(), Const():
            return a.value == b.value
        case Input(), Input():
            return a.axis == b.axis
        case Binary(), Binary():
            return (
                a.digest == b.digest
                and a.op is b.op
                and same_expr(a.a, b.a)
                and same_expr(a.b, b.b)
            )
    return False


def fold(
    expr: IndexExpr,
    leaf_fn: Callable[[Const | Input], R],
    op_fn: Callable[[IndexOp, R, R], R],
) -> R:
    """Rebuild `expr` in another type, leaves first; a shared part is visited once.

    Parameters
    ----------
    expr
        What to rebuild.
    leaf_fn
        Gives the counterpart of a constant or of an input coordinate.
    op_fn
        Gives the counterpart of an operation whose operands are rebuilt.
    """
    done: dict[int, R] = {}

    def visit(node: AnyIndex) -> R:
        if id(node) not in done:
            if isinstance(node, Binary):
                done[id(node)] = op_fn(node.op, visit(node.a), visit(node.b))
            else:
                done[id(node)] = leaf_fn(node)
        return done[id(node)]

    return visit(as_index(expr))


_OPERATORS: dict[IndexOp, Callable[[Any, Any], Any]] = {
    IndexOp.ADD: operator.add,
    IndexOp.SUB: operator.sub,
    IndexOp.MUL: operator.mul,
    IndexOp.FLOORDIV: operator.floordiv,
    IndexOp.FLOORMOD: operator.mod,
    IndexOp.XOR: operator.xor,
}


def apply_op(op: IndexOp, a: Any, b: Any) -> Any:
    """Return ``a op b`` for integers, int64 arrays, or anything with Python's operators.

    Raises
    ------
    LayoutError
        For a minimum or maximum of values of some other room: `fold` rebuilds those.
    """
    if op in _OPERATORS:
        return _OPERATORS[op](a, b)
    if isinstance(a, IndexExpr) or isinstance(b, IndexExpr):
        return build(op, a, b)
    if isinstance(a, np.ndarray) or isinstance(b, np.ndarray):
        return np.minimum(a, b) if op is IndexOp.MIN else np.maximum(a, b)
    if isinstance(a, (int, np.integer)) and isinstance(b, (int, np.integer)):
        return min(a, b) if op is IndexOp.MIN else max(a, b)
    raise LayoutError(
        f"{op.value} of {type(a).__name__} and {type(b).__name__} is not known to the layout room",
        hint="rebuild the expression with fold, giving the operation of the other type",
    )


def evaluate(expr: IndexExpr, coords: Sequence[Any]) -> Any:
    """Return the value of `expr` at `coords`.

    Coordinates are integers, int64 arrays that broadcast together, index expressions (this
    substitutes), or any values with Python's integer operators.
    """
    return fold(
        expr,
        lambda leaf: leaf.value if isinstance(leaf, Const) else coords[leaf.axis],
        apply_op,
    )


def inputs_of(expr: IndexExpr) -> frozenset[int]:
    """Return the axes that occur in `expr`."""
    return fold(
        expr,
        lambda leaf: frozenset((leaf.axis,)) if isinstance(leaf, Input) else frozenset(),
        lambda op, a, b: a | b,
    )


def axis_names(rank: int) -> tuple[str, ...]:
    """Return the names under which the coordinates of a box are printed."""
    return tuple("ijklmn"[:rank]) if rank <= 6 else tuple(f"i{axis}" for axis in range(rank))


def to_text(expr: IndexExpr, names: Sequence[str] | None = None) -> str:
    """Return `expr` as Python source; `names` are those of the coordinates."""

    def leaf(node: Const | Input) -> tuple[str, int]:
        if isinstance(node, Const):
            return str(node.value), 9 if node.value >= 0 else 0
        if names is not None:
            return names[node.axis], 9
        return ("ijklmn"[node.axis] if node.axis < 6 else f"i{node.axis}"), 9

    def join(op: IndexOp, a: tuple[str, int], b: tuple[str, int]) -> tuple[str, int]:
        if op in (IndexOp.MIN, IndexOp.MAX):
            return f"{op.value}imum({a[0]}, {b[0]})", 9
        level = _PRECEDENCE[op.value]
        left = a[0] if a[1] >= level else f"({a[0]})"
        right = b[0] if b[1] > level else f"({b[0]})"
        return f"{left} {op.value} {right}", level

    return fold(expr, leaf, join)[0]
