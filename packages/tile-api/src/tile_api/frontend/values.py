"""What users hold in a kernel: buffers, mutable scalars, and conversions to tile IR."""

from __future__ import annotations

from typing import Any, cast

from tile_api.frontend.builder import current, here
from tile_api.frontend.dtypes import dtype as language_dtype
from tile_api.frontend.dtypes import not_one_value
from tile_api.frontend.indexing import resolve_index
from tile_api.frontend.vectors import has_step, slice_indices, vector_value
from tile_core.dtypes import DType
from tile_core.errors import (
    ControlFlowError,
    FrontendTypeError,
    IndexMismatch,
    MutationError,
    Note,
    ShapeMismatch,
    Span,
)
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region, whole
from tile_core.ir.expr import AddressOf, BinaryOp, Const, Expr, Extent, Load, UnaryOp
from tile_core.ir.stmt import Store
from tile_core.ops.copy import Fill
from tile_core.records import dataclass


class BufferValue:
    """A buffer as the user sees it: a name to index, slice and hand to tile operators."""

    __slots__ = ("buffer",)

    def __init__(self, buffer: Buffer) -> None:
        self.buffer = buffer

    @property
    def name(self) -> str:
        """The name it was declared under."""
        return self.buffer.name

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents in elements: ints where static, expressions otherwise."""
        return self.buffer.shape

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return self.buffer.rank

    @property
    def dtype(self) -> DType:
        """Element type, as the object `T.float32` and its like are."""
        return language_dtype(self.buffer.dtype)

    @property
    def strides(self) -> tuple[Extent, ...]:
        """Distances in elements; those of row-major order unless declared."""
        if self.buffer.strides is not None:
            return self.buffer.strides
        strides: list[Extent] = []
        step: Extent = 1
        for extent in reversed(self.buffer.shape):
            strides.append(step)
            step = extent * step
        return tuple(reversed(strides))

    def scope(self) -> str:
        """Return the memory scope under TileLang's name, such as "local.fragment"."""
        return self.buffer.scope.value

    @property
    def data(self) -> Expr:
        """The address of the first element."""
        return self.access_ptr("rw")

    def access_ptr(self, access: str = "rw", *indices: Any) -> Expr:
        """Return the address of ``self[indices]`` (of the first element without indices).

        Parameters
        ----------
        access
            "r", "w" or "rw": what is done through the pointer.
        """
        if access not in ("r", "w", "rw"):
            raise FrontendTypeError(
                f"access {access!r} is not one of 'r', 'w', 'rw'",
                span=here(),
                hint="say 'r' for an address to read through, 'w' for one to write through",
            )
        where = resolve_index(self.buffer, indices or (0,) * self.buffer.rank).indices
        return AddressOf(self.buffer, where, access, span=here())

    def __getitem__(self, index: Any) -> Any:
        return load(self.buffer, index, here())

    def __setitem__(self, index: Any, value: Any) -> None:
        store(self.buffer, index, value)

    def __len__(self) -> int:
        told = f"len() of the buffer {self.name!r} is not supported in a kernel"
        raise FrontendTypeError(told, span=here(), hint=f"use {self.name}.shape[0]")

    def __iter__(self) -> Any:
        raise FrontendTypeError(
            f"the buffer {self.name!r} cannot be iterated over",
            span=here(),
            hint=f"loop over its indices: for i in T.serial({self.name}.shape[0])",
        )

    def __bool__(self) -> bool:
        raise FrontendTypeError(
            f"the buffer {self.name!r} has no truth value",
            span=here(),
            hint=f"compare an element, as in `{self.name}[0] != 0`, or test `is not None`",
        )

    def _refuse(self, other: Any = None) -> Any:
        """Refuse arithmetic on all elements at once, and say what to write instead."""
        return as_value(self)

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = __pow__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __matmul__ = __and__ = __or__ = __xor__ = _refuse

    def __repr__(self) -> str:
        buffer = self.buffer
        shape = ", ".join(str(e) if isinstance(e, int) else "?" for e in buffer.shape)
        return f"<{buffer.scope.value} buffer {buffer.name}: {buffer.dtype}[{shape}]>"


@dataclass(frozen=True, slots=True, eq=False)
class RegionReference(Region):
    """A region passed to a `T.Ref` parameter: assigning to the name fills it."""

    def fill(self, value: Any) -> None:
        """Emit the assignment of `value` to every element."""
        dtype = self.buffer.dtype
        region = Region(
            self.buffer, self.starts, self.extents, is_element=self.is_element, span=here()
        )
        current().emit(Fill(region, converted(value, dtype)))


class VarHandle:
    """A place that a name stands for: an `alloc_var`, or an element passed as `T.Ref`.

    Reading it in an expression loads the place; assigning a number or an expression to the
    name stores to it.
    """

    __slots__ = ("buffer", "claimed", "indices")

    def __init__(self, buffer: Buffer, indices: tuple[Expr, ...], *, claimed: bool) -> None:
        self.buffer = buffer
        self.indices = indices
        self.claimed = claimed  # whether a name owns it: reading that name gives the value

    def __tile_expr__(self) -> Expr:
        return Load(self.buffer, self.indices, span=here())

    def store(self, value: Any) -> None:
        """Emit the assignment of `value`, converted to the element type."""
        expr = converted(value, self._stored)
        current().emit(Store(self.buffer, self.indices, expr))

    @property
    def _stored(self) -> DType:
        """The type of the value; of a vector, its elements lie side by side."""
        return self.buffer.dtype.with_lanes(self.indices[-1].dtype.lanes if self.indices else 1)

    @property
    def name(self) -> str:
        """The name it was declared under."""
        return self.buffer.name

    @property
    def dtype(self) -> DType:
        """Element type."""
        return language_dtype(self._stored)

    @property
    def shape(self) -> tuple[Extent, ...]:
        """``(1,)``: one element."""
        return (1,)

    def scope(self) -> str:
        """Return the memory scope of the place."""
        return self.buffer.scope.value

    @property
    def data(self) -> Expr:
        """The address of the place."""
        return AddressOf(self.buffer, self.indices, "rw", span=here())

    def _element(self, index: Any) -> None:
        first = index[0] if isinstance(index, tuple) and len(index) == 1 else index
        if isinstance(first, Const):
            first = first.value
        if not isinstance(first, int) or first != 0:
            told = f"the variable {self.name!r} is a single element"
            raise IndexMismatch(told, span=here(), hint=f"use {self.name} or {self.name}[0]")

    def __getitem__(self, index: Any) -> Expr:
        self._element(index)
        return self.__tile_expr__()

    def __setitem__(self, index: Any, value: Any) -> None:
        self._element(index)
        self.store(value)

    def __bool__(self) -> bool:
        raise ControlFlowError(
            f"the value of {self.name!r} is not known while the kernel is traced",
            span=here(),
            hint="use `if` in the kernel body, or T.if_then_else(cond, a, b)",
        )

    def __hash__(self) -> int:
        return object.__hash__(self)

    def __repr__(self) -> str:
        return f"<variable {self.name}: {self.buffer.dtype}>"

    def astype(self, dtype: str) -> Expr:
        """Return the value converted to `dtype`."""
        return build_expr.truncated(build_expr.cast(self.__tile_expr__(), dtype))

    def __iter__(self) -> Any:
        yield self.__tile_expr__()

    def __neg__(self) -> Expr:
        return build_expr.unary(UnaryOp.NEG, self.__tile_expr__())

    def __pos__(self) -> Expr:
        return self.__tile_expr__()

    def __invert__(self) -> Expr:
        return build_expr.unary(UnaryOp.BITNOT, self.__tile_expr__())

    def __abs__(self) -> Expr:
        return build_expr.call("abs", self.__tile_expr__())

    def __eq__(self, other: Any) -> Any:
        return _operate(BinaryOp.EQ, self, other)

    def __ne__(self, other: Any) -> Any:
        return _operate(BinaryOp.NE, self, other)


def _operate(op: BinaryOp, left: Any, right: Any) -> Expr:
    a = left.__tile_expr__() if isinstance(left, VarHandle) else left
    b = right.__tile_expr__() if isinstance(right, VarHandle) else right
    return build_expr.binary(op, a, b)


_OPERATORS = {
    "add": BinaryOp.ADD,
    "sub": BinaryOp.SUB,
    "mul": BinaryOp.MUL,
    "truediv": BinaryOp.DIV,
    "floordiv": BinaryOp.FLOORDIV,
    "mod": BinaryOp.FLOORMOD,
    "and": BinaryOp.BITAND,
    "or": BinaryOp.BITOR,
    "xor": BinaryOp.BITXOR,
    "lshift": BinaryOp.SHL,
    "rshift": BinaryOp.SHR,
    "lt": BinaryOp.LT,
    "le": BinaryOp.LE,
    "gt": BinaryOp.GT,
    "ge": BinaryOp.GE,
}


def _install_operators() -> None:
    """Give `VarHandle` the operators of `Expr`, in both directions."""

    def method(op: BinaryOp, swapped: bool) -> Any:
        if swapped:
            return lambda self, other: _operate(op, other, self)
        return lambda self, other: _operate(op, self, other)

    for name, op in _OPERATORS.items():
        setattr(VarHandle, f"__{name}__", method(op, False))
        if not op.is_comparison:
            setattr(VarHandle, f"__r{name}__", method(op, True))


_install_operators()


def load(buffer: Buffer, index: Any, span: Span | None) -> Load | Region:
    """Return the element ``buffer[index]``, or a region if any part of `index` is a slice.

    A slice with a step along the last dimension gives the vector of its elements.
    """
    if has_step(index):
        vector = slice_indices(buffer, index)
        if vector is not None:
            return Load(buffer, vector, span=span)
    where = resolve_index(buffer, index)
    if where.is_element:
        return Load(buffer, where.indices, span=span)
    return Region(buffer, where.starts, where.extents, span=span)


def store(buffer: Buffer, index: Any, value: Any) -> None:
    """Emit ``buffer[index] = value``; the value is converted to the element type."""
    current().emit(assignment(buffer, index, value))


def assignment(buffer: Buffer, index: Any, value: Any) -> Store:
    """Return the statement ``buffer[index] = value``."""
    builder = current()
    indices = None
    if has_step(index):
        indices, vector = slice_indices(buffer, index), vector_value(value)
        value = value if vector is None else vector
    elif (where := resolve_index(buffer, index)).is_element:
        indices = where.indices
    elif (vector := vector_value(value)) is not None:
        indices, value = slice_indices(buffer, index), vector
    if indices is None:
        raise MutationError(
            f"a slice of {buffer.name!r} cannot be assigned to",
            span=builder.span,
            hint="use T.copy(src, dst) for tiles and T.fill(dst, value) for one value, or assign "
            "elements in a T.Parallel loop",
        )
    return Store(buffer, indices, _stored(buffer, indices, value))


def _stored(buffer: Buffer, indices: tuple[Expr, ...], value: Any) -> Expr:
    lanes = indices[-1].dtype.lanes if indices else 1
    given = as_value(value, buffer.dtype).dtype.lanes
    if buffer.dtype.lanes == 1 and given not in (1, lanes):
        raise ShapeMismatch(
            f"a vector of {given} values cannot be stored to {lanes} "
            f"element{'s' * (lanes != 1)} of {buffer.name!r}",
            span=here(),
            notes=(Note(f"{buffer.name} is declared here", buffer.span),),
            hint="give the index T.Ramp(start, 1, n) and the value the same number of lanes",
        )
    return converted(value, buffer.dtype if lanes == 1 else buffer.dtype.with_lanes(lanes))


def converted(value: Any, dtype: DType) -> Expr:
    """Return `value` as the element type it is assigned to, which holds it if it is a plain number.

    Expressions are converted when the kernel runs, by the rules of `T.cast`.
    """
    number = value if isinstance(value, int) and not isinstance(value, bool) else None
    if number is not None and dtype.is_int and not build_expr.representable(number, dtype):
        raise build_expr.unrepresentable(number, dtype).at(here())
    return build_expr.cast(as_value(value, dtype), dtype)


def as_value(x: Any, like: DType | None = None) -> Expr:
    """Return `x` as a scalar expression; variables are read."""
    if isinstance(x, Expr):
        return x
    if isinstance(x, VarHandle):
        return x.__tile_expr__()
    if isinstance(x, (BufferValue, Buffer, Region)):
        raise not_one_value(x)
    return build_expr.as_expr(x, like)


def as_region(x: Any, what: str) -> Region:
    """Return the region that an operand of a tile operator stands for; `what` is its role.

    A whole buffer gives the region of all of it; an element ``A[i, j]`` the region at that
    head address; a region itself.
    """
    if isinstance(x, Region):
        return x
    if hasattr(x, "__tile_region__"):
        return cast(Region, x.__tile_region__())
    if isinstance(x, BufferValue):
        return whole(x.buffer)
    if isinstance(x, Buffer):
        return whole(x)
    if isinstance(x, VarHandle):
        return _element(x.buffer, x.indices, None)
    if isinstance(x, Load):
        return _element(x.buffer, x.indices, x.span)
    raise FrontendTypeError(
        f"{what} must be a buffer, a region A[a:b, c] or an element A[i, j], got {_describe(x)}",
        span=here(),
        hint="allocate it with T.alloc_shared or T.alloc_fragment, or make it a parameter",
    )


def _element(buffer: Buffer, indices: tuple[Expr, ...], span: Span | None) -> Region:
    starts = tuple(int(i.value) if isinstance(i, Const) else i for i in indices)
    return Region(buffer, starts, (1,) * len(starts), is_element=True, span=span)


def as_buffer(x: Any, what: str = "the operand") -> Buffer:
    """Return the buffer that `x` is, or is all of."""
    if isinstance(x, (BufferValue, VarHandle)):
        return x.buffer
    if isinstance(x, Buffer):
        return x
    if isinstance(x, Region) and x.is_whole:
        return x.buffer
    told = f"{what} must be a whole buffer, got {_describe(x)}"
    raise FrontendTypeError(told, span=here(), hint="pass the name of the buffer without an index")


def _describe(x: object) -> str:
    if isinstance(x, Expr):
        return f"a {x.dtype} value"
    if isinstance(x, Region):
        return f"a region of {x.buffer.name!r}"
    return f"{type(x).__name__} {x!r}"
