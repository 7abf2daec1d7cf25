"""Scalar expressions: a closed union with Python operators.

Build them with the operators, or with the functions of `tile_core.ir.build_expr`, which promote
element types and fold constants. The constructors here do neither.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, ClassVar, TypeAlias

from typing_extensions import Never

from tile_core.dtypes import DType
from tile_core.errors import ControlFlowError
from tile_core.ir.node import Node
from tile_core.records import dataclass
from tile_launch.contract import Contract

if TYPE_CHECKING:
    from tile_core.ir.buffer import Buffer


class BinaryOp(Enum):
    """Operations of two scalars. Division and remainder of integers: floor and trunc forms."""

    ADD = "+"
    SUB = "-"
    MUL = "*"
    DIV = "/"
    FLOORDIV = "//"
    FLOORMOD = "%"
    TRUNCDIV = "truncdiv"
    TRUNCMOD = "truncmod"
    MIN = "min"
    MAX = "max"
    AND = "and"
    OR = "or"
    BITAND = "&"
    BITOR = "|"
    BITXOR = "^"
    SHL = "<<"
    SHR = ">>"
    EQ = "=="
    NE = "!="
    LT = "<"
    LE = "<="
    GT = ">"
    GE = ">="

    __hash__ = object.__hash__  # as fast as can be: tables of operations are asked all the time

    @property
    def is_comparison(self) -> bool:
        """Whether the result is a truth value about two numbers."""
        return self in _COMPARISONS

    @property
    def is_logical(self) -> bool:
        """Whether operands and result are truth values; the right side runs only if needed."""
        return self in (BinaryOp.AND, BinaryOp.OR)


_COMPARISONS = frozenset(
    {BinaryOp.EQ, BinaryOp.NE, BinaryOp.LT, BinaryOp.LE, BinaryOp.GT, BinaryOp.GE}
)


class UnaryOp(Enum):
    """Operations of one scalar."""

    NEG = "-"
    NOT = "not"
    BITNOT = "~"

    __hash__ = object.__hash__


@dataclass(frozen=True, slots=True, eq=False)
class Arithmetic:
    """Builders of expressions that promote element types and fold constants."""

    binary: Callable[[BinaryOp, Any, Any], Expr]
    unary: Callable[[UnaryOp, Any], Expr]
    call: Callable[..., Expr]
    convert: Callable[[Any, str], Expr]


def _operator(op: BinaryOp) -> Callable[[Expr, Any], Expr]:
    """Return the method that builds ``self op other``."""

    def build(self: Expr, other: Any) -> Expr:
        return self.arithmetic.binary(op, self, other)

    return build


def _reflected(op: BinaryOp) -> Callable[[Expr, Any], Expr]:
    """Return the method that builds ``other op self``."""

    def build(self: Expr, other: Any) -> Expr:
        return self.arithmetic.binary(op, other, self)

    return build


@dataclass(frozen=True, slots=True, eq=False)
class Expr(Node):
    """A scalar (or vector) value. Operators build new expressions; `==` does too.

    Because ``a == b`` is an expression, never use `in` on tuples of expressions and never
    compare expressions with `==` in the compiler: use `is`, or
    `tile_core.ir.structural_equality.structurally_equal`.
    """

    arithmetic: ClassVar[Arithmetic]
    """What the operators build with: `tile_core.ir.build_expr`, which stands above this module."""

    if TYPE_CHECKING:  # a property here would look like a field default to dataclasses

        @property
        def dtype(self) -> DType:
            """Element type of the value, with its lanes."""

    def __bool__(self) -> Never:
        """Refuse: the value is known only when the kernel runs."""
        raise ControlFlowError(
            "the truth of a run-time expression is not known while the kernel is traced",
            hint="use T.if_then_else(cond, a, b), T.And/T.Or, or `if` directly in the kernel body",
        )

    def __iter__(self) -> Any:
        """Yield the expression itself, so ``as (bx,)`` unpacks a single block index."""
        yield self

    __hash__ = Node.__hash__  # as fast as that of any object; `==` would take it away

    __add__, __radd__ = _operator(BinaryOp.ADD), _reflected(BinaryOp.ADD)
    __sub__, __rsub__ = _operator(BinaryOp.SUB), _reflected(BinaryOp.SUB)
    __mul__, __rmul__ = _operator(BinaryOp.MUL), _reflected(BinaryOp.MUL)
    __truediv__, __rtruediv__ = _operator(BinaryOp.DIV), _reflected(BinaryOp.DIV)
    __floordiv__, __rfloordiv__ = _operator(BinaryOp.FLOORDIV), _reflected(BinaryOp.FLOORDIV)
    __mod__, __rmod__ = _operator(BinaryOp.FLOORMOD), _reflected(BinaryOp.FLOORMOD)
    __and__, __rand__ = _operator(BinaryOp.BITAND), _reflected(BinaryOp.BITAND)
    __or__, __ror__ = _operator(BinaryOp.BITOR), _reflected(BinaryOp.BITOR)
    __xor__, __rxor__ = _operator(BinaryOp.BITXOR), _reflected(BinaryOp.BITXOR)
    __lshift__, __rlshift__ = _operator(BinaryOp.SHL), _reflected(BinaryOp.SHL)
    __rshift__, __rrshift__ = _operator(BinaryOp.SHR), _reflected(BinaryOp.SHR)
    __lt__ = _operator(BinaryOp.LT)
    __le__ = _operator(BinaryOp.LE)
    __gt__ = _operator(BinaryOp.GT)
    __ge__ = _operator(BinaryOp.GE)
    __eq__ = _operator(BinaryOp.EQ)  # type: ignore[assignment]
    __ne__ = _operator(BinaryOp.NE)  # type: ignore[assignment]

    def __neg__(self) -> Expr:
        return self.arithmetic.unary(UnaryOp.NEG, self)

    def __pos__(self) -> Expr:
        return self

    def __invert__(self) -> Expr:
        return self.arithmetic.unary(UnaryOp.BITNOT, self)

    def __abs__(self) -> Expr:
        return self.arithmetic.call("abs", self)

    def astype(self, dtype: str) -> Expr:
        """Return this value converted to `dtype`, narrow floats saturating."""
        return self.arithmetic.convert(self, dtype)


Extent: TypeAlias = "int | Expr"


@dataclass(frozen=True, slots=True, eq=False)
class Const(Expr):
    """A number known at compile time; `value` is a Python bool, int or float."""

    value: int | float
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class StringConst(Expr):
    """Text, as an argument of an intrinsic such as `printf`."""

    value: str

    @property
    def dtype(self) -> DType:
        """An address."""
        return DType("handle")


@dataclass(frozen=True, slots=True, eq=False)
class Var(Expr):
    """A named scalar: a loop, block or thread index, a parameter, a symbolic dimension."""

    name: str
    dtype: DType
    # What holds of every value of a symbolic dimension or a parameter, beyond its type.
    contract: Contract | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Binary(Expr):
    """``a op b``; both sides have one dtype (shifts too). Comparisons give bool."""

    op: BinaryOp
    a: Expr
    b: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Unary(Expr):
    """``op a``."""

    op: UnaryOp
    a: Expr
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Select(Expr):
    """``then if cond else otherwise``; the side not taken is not evaluated if `lazy`."""

    cond: Expr
    then: Expr
    otherwise: Expr
    lazy: bool = True

    @property
    def dtype(self) -> DType:
        """The common dtype of both sides."""
        side = self.then
        while isinstance(side, Select):  # choices may be nested more deeply than calls can be
            side = side.then
        return side.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Cast(Expr):
    """`value` converted to `dtype`.

    Float to int truncates toward zero; narrow floats (8 bits and fewer) saturate unless
    `saturate` is false; every other rounding is to nearest even.
    """

    dtype: DType
    value: Expr
    saturate: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class Bitcast(Expr):
    """The bits of `value` read as `dtype`; total widths are equal."""

    dtype: DType
    value: Expr


@dataclass(frozen=True, slots=True, eq=False)
class Load(Expr):
    """``buffer[indices]``, one index per dimension.

    Global buffers: an index outside gives the safe value (0, or the annotated one). The last
    index may be a `Ramp`, which makes the result a vector.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]

    @property
    def dtype(self) -> DType:
        """The buffer's element type, with the lanes of the last index."""
        lanes = self.indices[-1].dtype.lanes if self.indices else 1
        return self.buffer.dtype if lanes == 1 else self.buffer.dtype.with_lanes(lanes)


@dataclass(frozen=True, slots=True, eq=False)
class AddressOf(Expr):
    """The address of ``buffer[indices]``; `access` is "r", "w" or "rw", for effects."""

    buffer: Buffer
    indices: tuple[Expr, ...]
    access: str = "rw"

    @property
    def dtype(self) -> DType:
        """An address."""
        return DType("handle")


@dataclass(frozen=True, slots=True, eq=False)
class Call(Expr):
    """A function of `tile_core.ir.intrinsics.INTRINSICS`, or an extern C function.

    Extern functions are spelt ``function="extern:name"``.
    """

    function: str
    args: tuple[Expr, ...]
    dtype: DType


@dataclass(frozen=True, slots=True, eq=False)
class Ramp(Expr):
    """The vector ``base, base + stride, …`` of `lanes` elements."""

    base: Expr
    stride: Expr
    lanes: int

    @property
    def dtype(self) -> DType:
        """The dtype of `base`, with lanes."""
        return self.base.dtype.with_lanes(self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Broadcast(Expr):
    """A vector of `lanes` copies of `value`."""

    value: Expr
    lanes: int

    @property
    def dtype(self) -> DType:
        """The dtype of `value`, with lanes."""
        return self.value.dtype.with_lanes(self.lanes)


@dataclass(frozen=True, slots=True, eq=False)
class Shuffle(Expr):
    """The lanes `picks` of the concatenation of `vectors`; one pick gives a scalar."""

    vectors: tuple[Expr, ...]
    picks: tuple[int, ...]

    @property
    def dtype(self) -> DType:
        """The element type of the vectors, with one lane per pick."""
        return self.vectors[0].dtype.with_lanes(len(self.picks))


AnyExpr: TypeAlias = (
    "Const | StringConst | Var | Binary | Unary | Select | Cast | Bitcast | Load | AddressOf"
    " | Call | Ramp | Broadcast | Shuffle"
)
