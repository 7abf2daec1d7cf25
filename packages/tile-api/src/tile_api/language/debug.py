"""Printing, checks inside kernels, and facts for the compiler."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.builder import BlockKind, current
from tile_api.frontend.values import as_region, as_value
from tile_api.language.operands import emit, is_number, is_tile
from tile_api.language.vectors import extract_lane
from tile_core.errors import FrontendTypeError, TraceAssertionError
from tile_core.ir import build_expr
from tile_core.ir.expr import Const
from tile_core.ir.printer import print_expr_text
from tile_core.ir.stmt import Check, CheckKind
from tile_core.ops.printing import Print

__all__ = ["Assert", "assume", "device_assert", "print"]


def print(obj: Any = None, msg: str = "", warp_group_id: Any = 0, warp_id: Any = 0) -> None:
    """Print from a kernel to standard output.

    The lines of one thread are in order; those of different threads may mix.

    Parameters
    ----------
    obj
        A buffer or region: every element, once per block. An expression: its value, from
        every thread that gets here; of a vector all elements. Nothing: just the message.
    msg
        Printed in front.
    warp_group_id, warp_id
        Which warp prints a tile; accepted, any one prints it here.

    Raises
    ------
    FrontendTypeError
        If `msg` is not a string.
    """
    if isinstance(obj, str) and not msg:
        obj, msg = None, obj
    if not isinstance(msg, str):
        raise FrontendTypeError(
            f"the message of T.print is a string, got {msg!r}", hint='write T.print(x, msg="x is")'
        )
    if obj is None:
        op = Print(msg)
    elif is_tile(obj):
        op = Print(msg, as_region(obj, "the operand of T.print"))
    else:
        value = as_value(obj)
        lanes = value.dtype.lanes
        elements = (extract_lane(value, k) for k in range(lanes))
        op = Print(msg, None, tuple(elements) if lanes > 1 else (value,))
    if op.source is None and current().inside(BlockKind.PARALLEL):
        emit(op.serial_form())
    else:
        emit(op)


def device_assert(cond: Any, msg: str = "", no_stack_info: bool = False) -> None:
    """Stop the kernel with an error if `cond` is false where this is reached.

    Parameters
    ----------
    msg
        What the error says.
    no_stack_info
        Accepted for compatibility.

    Raises
    ------
    TraceAssertionError
        If `cond` is known to be false while tracing.
    """
    _check(cond, str(msg), CheckKind.ASSERT, "T.device_assert")


def assume(cond: Any) -> None:
    """State that `cond` holds here: the compiler may rely on it, the host checks what it can.

    Raises
    ------
    TraceAssertionError
        If `cond` is known to be false while tracing.
    """
    _check(cond, "", CheckKind.ASSUME, "T.assume")


def _check(cond: Any, message: str, kind: CheckKind, name: str) -> None:
    known = cond if is_number(cond) else None
    expr = None if is_number(cond) else build_expr.truth(as_value(cond))
    if isinstance(expr, Const):
        known = expr.value
    if known is not None:
        if known:
            return
        raise TraceAssertionError(
            message or f"the condition of {name} is false",
            hint="its value is known while the kernel is traced: change the arguments that lead "
            "here",
        )
    if expr is not None:
        emit(Check(expr, message or print_expr_text(expr), kind))


def Assert(condition: Any, message: str = "") -> None:
    """Stop the kernel with an error unless `condition` holds; `T.device_assert` in TVM's words."""
    device_assert(condition, message)
