"""Declarations of parameters: what `T.Tensor(...)` and its like return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tile_api.frontend.builder import here
from tile_core.dtypes import DType, dtype_of, normalise_dtype
from tile_core.errors import FrontendTypeError, FrontendValueError, ShapeMismatch, Span
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.expr import Const, Expr, Extent
from tile_core.records import dataclass


@dataclass(frozen=True, slots=True, eq=False)
class TensorSpec:
    """The declaration of a tensor parameter: everything but its name."""

    shape: tuple[Extent, ...]
    dtype: DType
    scope: Scope = Scope.GLOBAL
    strides: tuple[Extent, ...] | None = None  # in elements; None: contiguous, row-major
    lanes: int = 1  # of a vector type: then the last dimension

    def buffer(self, name: str, span: Span | None) -> Buffer:
        """Return the buffer of a parameter called `name`."""
        return Buffer(name, self.shape, self.dtype, self.scope, self.strides, span=span)


@dataclass(frozen=True, slots=True)
class PointerSpec:
    """The declaration of a raw pointer parameter; `dtype` is what it points to, if known."""

    dtype: DType | None = None
    scope: Scope = Scope.GLOBAL


def as_dtype(spec: object, what: str = "the dtype") -> DType:
    """Return the element type meant by `spec`; the error says `what` it was meant for."""
    try:
        found = normalise_dtype(spec)
        return dtype_of(str(found)) if type(found) is not DType else found
    except FrontendTypeError as error:
        raise FrontendTypeError(
            f"{what} is not an element type: {error.message}", span=here(), hint=error.hint
        ) from None


def as_element(spec: object, what: str = "the dtype") -> DType:
    """Return the type of a buffer's elements, which are scalars."""
    dtype = as_dtype(spec, what)
    if dtype.lanes > 1:
        raise FrontendTypeError(
            f"{what} is {dtype}: the elements of a buffer are scalars",
            span=here(),
            hint=f"add a dimension of {dtype.lanes} elements of {dtype.scalar}; T.vectorized and "
            "T.Ramp reach them together",
        )
    return dtype


def as_extent(value: Any, what: str) -> Extent:
    """Return one extent or stride as an int or an integer expression."""
    if isinstance(value, (bool, str, float)) or value is None:
        raise _not_an_extent(value, what)
    if isinstance(value, int):
        return value
    if isinstance(value, Expr) or hasattr(value, "__tile_expr__"):
        expr = build_expr.as_expr(value)
        if not expr.dtype.is_int:
            raise _not_an_extent(value, what)
        return int(expr.value) if isinstance(expr, Const) else expr
    if hasattr(value, "__index__"):
        return int(value.__index__())
    raise _not_an_extent(value, what)


def _not_an_extent(value: Any, what: str) -> FrontendTypeError:
    got = f"a {value.dtype} value" if isinstance(value, Expr) else f"{value!r}"
    return FrontendTypeError(
        f"{what} must be an integer or an integer expression, got {got}",
        span=here(),
        hint="use Python ints, T.dynamic symbols, or arithmetic on them with //",
    )


def as_shape(shape: Any, what: str = "the shape") -> tuple[Extent, ...]:
    """Return a shape given as an int, an expression, or a sequence of either."""
    scalar = isinstance(shape, (int, str, Expr)) or hasattr(shape, "__tile_expr__")
    items = [shape] if scalar or not isinstance(shape, Sequence) else list(shape)
    result = tuple(as_extent(item, f"extent {k} of {what}") for k, item in enumerate(items))
    for k, extent in enumerate(result):
        if isinstance(extent, int) and extent < 0:
            raise FrontendValueError(
                f"extent {k} of {what} is negative: {extent}",
                span=here(),
                hint="extents are counts of elements, zero or more",
            )
    return result


def tensor_spec(
    shape: Any,
    dtype: object = "float32",
    *,
    strides: Any = None,
    scope: str | Scope | None = None,
    default_scope: Scope = Scope.GLOBAL,
    what: str = "",
) -> TensorSpec:
    """Return the checked declaration of a tensor.

    Strides of a vector type count vectors, as the shape does; the lanes lie side by side.
    """
    extents = as_shape(shape, f"the shape given to {what}" if what else "the tensor shape")
    element = as_dtype(dtype, f"the dtype given to {what}" if what else "the tensor dtype")
    steps: tuple[Extent, ...] | None = None
    if strides is not None:
        steps = as_shape(strides, "the strides")
        if len(steps) != len(extents):
            raise ShapeMismatch(
                f"a tensor of {len(extents)} dimensions needs {len(extents)} strides, "
                f"got {len(steps)}",
                span=here(),
                hint="give one stride per dimension, in elements",
            )
    place, lanes = default_scope if scope is None else as_scope(scope), element.lanes
    if lanes > 1:
        extents = (*extents, lanes)
        steps = None if steps is None else (*(step * lanes for step in steps), 1)
    return TensorSpec(extents, element.scalar, place, steps, lanes)


_SCOPES = {s.value: s for s in Scope if s is not Scope.SIGNALS}  # those are parameters
_SCOPES |= {"shared.dyn": Scope.SHARED, "": Scope.GLOBAL}


def as_scope(scope: str | Scope) -> Scope:
    """Return the memory scope called `scope`; static and dynamic shared memory are one."""
    if isinstance(scope, Scope):
        return scope
    if scope not in _SCOPES:
        hint = f"use one of {', '.join(sorted(s for s in _SCOPES if s))}"
        raise FrontendValueError(f"there is no memory scope {scope!r}", span=here(), hint=hint)
    return _SCOPES[scope]
