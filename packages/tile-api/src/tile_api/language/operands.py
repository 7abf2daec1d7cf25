"""Checks shared by the functions of the language: values, counts, elements, choices."""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar, cast

from tile_api.frontend.builder import current
from tile_api.frontend.builder import here as here
from tile_api.frontend.values import BufferValue, VarHandle, as_value
from tile_core.dtypes import DType
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.build_expr import resolved
from tile_core.ir.expr import AddressOf, Call, Const, Expr, Load, StringConst
from tile_core.ir.stmt import Evaluate, Stmt


def emit(stmt: Stmt) -> None:
    """Append a statement to the kernel being traced."""
    current().emit(stmt)


def evaluate(value: Expr) -> None:
    """Append a statement that evaluates `value` for its effect."""
    current().emit(Evaluate(value))


def is_number(value: object) -> bool:
    """Whether `value` is a Python number, known while tracing."""
    return isinstance(value, (bool, int, float))


def is_static(*values: object) -> bool:
    """Whether all `values` are Python numbers, so that a result is one too."""
    return all(is_number(v) for v in values)


def scalar(value: Any, like: DType | None = None) -> Any:
    """Return Python numbers as they are and everything else as an expression.

    Numbers wait for the other operand, whose element type they take.
    """
    return value if is_number(value) else as_value(value, like)


def call(function: str, *args: Any) -> Expr:
    """Return a call of an intrinsic on scalar values, with the user's line."""
    exprs = _spread(args)
    try:
        converted, dtype = resolved(function, exprs)
    except FrontendTypeError as error:
        raise error.at(here()) from None
    return Call(function, converted, dtype, span=here())


def _spread(args: tuple[Any, ...]) -> tuple[Expr, ...]:
    """Convert arguments; plain numbers take the element type of the first expression."""
    like = next((as_value(a).dtype for a in args if not is_number(a)), None)
    return tuple(as_value(a, like) for a in args)


Annotations = Mapping[str, Any] | None
"""Options as a dictionary, as other compilers have them."""
F = TypeVar("F", bound=Callable[..., Any])


def dtype_by_name(function: F) -> F:
    """Let the first parameter of a function, a dtype, be given by name after the others."""

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        first = (options.pop("dtype"),) if args and "dtype" in options else ()
        return function(*first, *args, **options)

    return cast(F, called)


def merged(options: dict[str, Any], annotations: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return `options` with those that annotations give, which win; others there are dropped."""
    if annotations is None:
        return options
    if not isinstance(annotations, Mapping):
        raise FrontendTypeError(
            f"annotations must be a dictionary, got {annotations!r}",
            span=here(),
            hint="leave them out: they have no effect on results",
        )
    return options | {k: v for k, v in annotations.items() if k in options}


def count(value: Any, what: str, *, least: int = 1) -> int:
    """Return a compile-time integer of at least `least`."""
    if isinstance(value, Const) and value.dtype.is_int:
        value = int(value.value)
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        got = f"a {value.dtype} value" if isinstance(value, Expr) else repr(value)
        told = f"{what} must be an integer known at compile time, got {got}"
        raise FrontendTypeError(told, span=here(), hint="pass a Python int")
    number = int(value.__index__())
    if number < least:
        told = f"{what} must be at least {least}, got {number}"
        raise FrontendValueError(told, span=here(), hint=f"pass {least} or more")
    return number


def choice(value: Any, allowed: Iterable[str], what: str) -> str:
    """Return `value` if it is one of the words `allowed`."""
    words = list(allowed)
    if value not in words:
        hint = f"use one of {', '.join(repr(w) for w in words)}"
        raise FrontendValueError(f"{what} {value!r} is not known", span=here(), hint=hint)
    return str(value)


def address(x: Any, what: str, access: str = "rw") -> AddressOf:
    """Return the address of an element: ``A[i, j]``, a variable, or a buffer's first element."""
    buffer, indices = element(x, what)
    return AddressOf(buffer, indices, access, span=here())


def element(x: Any, what: str) -> tuple[Buffer, tuple[Expr, ...]]:
    """Return the buffer and the indices of the element that `x` is, or starts at."""
    if isinstance(x, (Load, AddressOf, VarHandle)):
        return x.buffer, x.indices
    if isinstance(x, Region):
        return x.buffer, tuple(build_expr.as_expr(s) for s in x.starts)
    buffer = x.buffer if isinstance(x, BufferValue) else x
    if isinstance(buffer, Buffer):
        return buffer, tuple(build_expr.as_expr(0) for _ in buffer.shape)
    got = f"a {x.dtype} value" if isinstance(x, Expr) else f"{type(x).__name__} {x!r}"
    raise FrontendTypeError(
        f"{what} must be an element such as A[i, j], got {got}",
        span=here(),
        hint="index a buffer: its address is needed, not its value",
    )


def is_tile(x: object) -> bool:
    """Whether `x` is a whole buffer or a region, not a scalar value."""
    return isinstance(x, (BufferValue, Buffer)) or (isinstance(x, Region) and not x.is_element)


def text(value: str) -> StringConst:
    """Return a word as an argument of an intrinsic."""
    return StringConst(value, span=here())


def static_size(buffer: Buffer) -> int | None:
    """Return the number of elements, or None if known only at run time."""
    return None if buffer.static_shape is None else math.prod(buffer.static_shape)
