"""Functions written in C, and statements for their effect."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import current
from tile_api.frontend.types import as_dtype
from tile_api.frontend.values import BufferValue, as_value
from tile_api.language.operands import Annotations, call, dtype_by_name, here
from tile_api.language.operands import evaluate as evaluate_now
from tile_core.errors import FrontendTypeError, FrontendValueError, UnsupportedOnTarget
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import AddressOf, Call, Expr, StringConst
from tile_core.ir.intrinsics import INTRINSICS

__all__ = ["call_extern", "call_intrin", "call_pure_extern", "evaluate", "import_source"]


def import_source(source: str | None = None) -> None:
    """Compile `source`, text in C, along with the kernel; equal texts once.

    Functions in it are reached with `T.call_extern`. The same text serves all targets: on GPUs,
    where it is compiled as C++, functions need no ``__device__`` (on the CPU that says nothing),
    and the headers ``float.h limits.h math.h stdbool.h stddef.h stdint.h stdio.h stdlib.h
    string.h`` may be included. Names that CUDA takes itself, such as ``half``, cannot be given.
    """
    if source is None:
        return
    if not isinstance(source, str):
        raise FrontendTypeError(
            f"C source is a string, got {type(source).__name__}",
            span=here(),
            hint='write T.import_source("int f(int x) { return x + 1; }")',
        )
    sources = current().sources
    if source not in sources:
        sources.append(source)


@dtype_by_name
def call_extern(dtype: Any, func_name: str, *args: Any) -> Expr:
    """Call the C function `func_name`.

    Parameters
    ----------
    dtype
        What it returns; ``"handle"`` or ``"void"`` for nothing of interest.
    args
        Numbers and expressions are passed by value, buffers and regions as the address of
        their first element, addresses (`T.access_ptr`, `T.address_of`) as they are, strings
        as C strings.

    Raises
    ------
    FrontendValueError
        If `func_name` is not a C identifier.
    """
    if not _is_text(func_name) or not func_name.isidentifier():
        raise FrontendValueError(
            f"{func_name!r} is not the name of a C function",
            span=here(),
            hint='write T.call_extern("float32", "name", x, y): the dtype comes first',
        )
    dtype = as_dtype("handle" if dtype in ("void", None, "") else dtype)
    return Call(f"extern:{func_name}", tuple(_argument(a) for a in args), dtype, span=here())


@dtype_by_name
def call_pure_extern(dtype: Any, func_name: str, *args: Any) -> Expr:
    """Call the C function `func_name`, which has no effect; see `T.call_extern`."""
    return call_extern(dtype, func_name, *args)


def _is_text(value: object) -> bool:
    return isinstance(value, str)


def _argument(value: Any) -> Expr:
    if isinstance(value, str):
        return StringConst(value, span=here())
    if isinstance(value, (BufferValue, Buffer)):
        buffer = value.buffer if isinstance(value, BufferValue) else value
        zeros = tuple(build_expr.as_expr(0) for _ in buffer.shape)
        return AddressOf(buffer, zeros, "rw", span=here())
    if isinstance(value, Region):
        starts = tuple(build_expr.as_expr(s) for s in value.starts)
        return AddressOf(value.buffer, starts, "rw", span=here())
    return as_value(value)


@dtype_by_name
def call_intrin(dtype: Any, func_name: Any, *args: Any, annotations: Annotations = None) -> Expr:
    """Call an intrinsic by name; a prefix such as ``tir.`` or ``tl.`` does not matter.

    Parameters
    ----------
    dtype
        Of the result, and of the value that is returned.
    annotations
        Accepted for compatibility and dropped.

    Raises
    ------
    UnsupportedOnTarget
        If there is no such intrinsic.
    """
    text = str(getattr(func_name, "name", func_name))
    function = text.rpartition(".")[2]
    if function not in INTRINSICS:
        hint = "call a C function with T.call_extern, or use the function of T of that name"
        raise UnsupportedOnTarget(f"there is no intrinsic {text!r}", span=here(), hint=hint)
    result = call(function, *(_argument(a) for a in args))
    dtype = as_dtype(dtype)
    return result if dtype.is_handle else build_expr.cast(result, dtype)


def evaluate(value: Any) -> None:
    """Evaluate an expression for its effect; a plain number does nothing."""
    if isinstance(value, (int, float)) or value is None:
        return
    evaluate_now(as_value(value))
