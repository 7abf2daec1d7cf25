"""Filling tiles with one value."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.values import as_region, converted
from tile_api.language.operands import Annotations, emit
from tile_core.ir import build_expr
from tile_core.ops.copy import Fill

__all__ = ["clear", "fill"]


def fill(buffer: Any, value: Any, annotations: Annotations = None) -> None:
    """Set every element of a buffer or region to `value`, converted to the element type.

    The region may be in any memory and its bounds may be known only at run time; elements
    outside a global tensor are skipped.
    """
    region = as_region(buffer, "the destination of T.fill")
    dtype = region.buffer.dtype
    emit(Fill(region, converted(value, dtype)))


def clear(buffer: Any, annotations: Annotations = None) -> None:
    """Set every element of a buffer or region to zero."""
    region = as_region(buffer, "the operand of T.clear")
    emit(Fill(region, build_expr.const(0, region.buffer.dtype)))
