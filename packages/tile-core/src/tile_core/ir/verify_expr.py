"""Invariants of scalar expressions: operand types agree, conditions are truth values."""

from __future__ import annotations

from collections.abc import Iterator

from tile_core.errors import FrontendTypeError, Span, VerifyError
from tile_core.ir.expr import AddressOf, Binary, Call, Expr, Load, Select
from tile_core.ir.intrinsics import INTRINSICS


def verify_expr(root: Expr, span: Span | None) -> Iterator[Expr]:
    """Yield every expression under `root` after checking its types.

    Buffers are not entered: whoever consumes the loads checks them. An expression shared
    within `root` is checked once.
    """
    stack, seen = [root], set[Expr]()
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen.add(expr)
        _check(expr, expr.span or span)
        yield expr
        if isinstance(expr, (Load, AddressOf)):
            stack.extend(expr.indices)
        else:
            stack.extend(child for child in expr.children() if isinstance(child, Expr))


def _check(expr: Expr, span: Span | None) -> None:
    match expr:
        case Binary(op=op, a=a, b=b, dtype=dtype):
            if a.dtype != b.dtype:
                raise VerifyError(f"{op.value!r} of {a.dtype} and {b.dtype}", span=span)
            is_truth = op.is_comparison or op.is_logical
            if dtype.is_bool is not (is_truth or a.dtype.is_bool):
                raise VerifyError(f"{op.value!r} of {a.dtype} gives {dtype}", span=span)
        case Select(cond=cond, then=then, otherwise=otherwise):
            if not cond.dtype.is_bool or then.dtype != otherwise.dtype:
                raise VerifyError(
                    f"select on {cond.dtype} between {then.dtype} and {otherwise.dtype}", span=span
                )
        case Call(function=function) if not function.startswith("extern:"):
            if function not in INTRINSICS:
                raise FrontendTypeError(
                    f"there is no intrinsic {function!r}",
                    span=span,
                    hint="call a C function with T.call_extern, or use a function of T",
                )
