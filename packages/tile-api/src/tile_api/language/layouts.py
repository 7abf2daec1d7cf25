"""Layouts that have a name, for `T.annotate_layout`."""

from __future__ import annotations

from typing import Any

from tile_api.frontend.values import BufferValue
from tile_api.language.operands import count, here
from tile_core.errors import FrontendTypeError, FrontendValueError
from tile_core.ir.buffer import Buffer, Region
from tile_core.ir.expr import Load
from tile_core.layout import (
    Fragment,
    Layout,
    Swizzle,
    fully_replicated,
    row_major,
    shared_operand,
    swizzled,
)

__all__ = [
    "Fragment", "Layout", "make_full_bank_swizzled_layout", "make_fully_replicated_layout_fragment",
    "make_gemm_fragment_8x8", "make_gemm_fragment_8x8_transposed", "make_half_bank_swizzled_layout",
    "make_linear_layout", "make_mma_swizzle_layout", "make_quarter_bank_swizzled_layout",
    "make_swizzled_layout", "make_wgmma_swizzled_layout",
]  # fmt: skip


def _tile(x: Any) -> tuple[tuple[int, ...], int]:
    """Return static shape and bits per element of a buffer, region or element."""
    buffer = x.buffer if isinstance(x, (BufferValue, Region, Load)) else x
    if not isinstance(buffer, Buffer):
        told = f"a layout is made for a buffer, got {type(x).__name__}"
        raise FrontendTypeError(told, span=here(), hint="pass a tile made with T.alloc_shared")
    shape = buffer.static_shape
    if shape is None:
        raise FrontendValueError(
            f"the extents of {buffer.name!r} are known only at run time",
            span=here(),
            hint="a layout needs extents known at compile time",
        )
    return shape, buffer.dtype.bits


def make_swizzled_layout(buffer: Any, k_major: bool = True, allow_pad: bool = True) -> Layout:
    """Return the layout of a matrix operand in shared memory, free of bank conflicts.

    Parameters
    ----------
    buffer
        A tile of rows and columns; leading dimensions stay outermost.
    k_major
        Whether products are summed along the columns; without effect on the layout.
    allow_pad
        Pad rows for which no swizzle fits.
    """
    return shared_operand(*_tile(buffer), allow_pad)


def make_wgmma_swizzled_layout(buffer: Any, continuity: Any = None, k_major: bool = True) -> Layout:
    """Return the layout Hopper's matrix instructions read; never padded."""
    return shared_operand(*_tile(buffer), False)


def make_mma_swizzle_layout(shared_buf: Any, is_smooth: bool = False) -> Layout:
    """Return the layout of a matrix operand; row-major if `is_smooth`."""
    return make_linear_layout(shared_buf) if is_smooth else make_swizzled_layout(shared_buf)


def make_full_bank_swizzled_layout(buffer: Any) -> Layout:
    """Return the layout that exchanges 16-byte chunks within 128 bytes."""
    return swizzled(*_tile(buffer), Swizzle.FULL)


def make_half_bank_swizzled_layout(buffer: Any) -> Layout:
    """Return the layout that exchanges 16-byte chunks within 64 bytes."""
    return swizzled(*_tile(buffer), Swizzle.HALF)


def make_quarter_bank_swizzled_layout(buffer: Any) -> Layout:
    """Return the layout that exchanges 16-byte chunks within 32 bytes."""
    return swizzled(*_tile(buffer), Swizzle.QUARTER)


def make_linear_layout(buffer_or_load_or_region: Any) -> Layout:
    """Return the row-major layout."""
    return row_major(_tile(buffer_or_load_or_region)[0])


def make_fully_replicated_layout_fragment(buffer: Any, threads: Any) -> Fragment:
    """Return the fragment in which each of `threads` threads holds the whole tile."""
    return fully_replicated(_tile(buffer)[0], count(threads, "the number of threads"))


def make_gemm_fragment_8x8() -> Fragment:
    """Return how a warp holds an 8 x 8 tile of 16-bit elements: pairs along a row."""
    return Fragment((8, 8), lambda i, j: (i * 4 + j // 2, j % 2))


def make_gemm_fragment_8x8_transposed() -> Fragment:
    """Return how a warp holds an 8 x 8 tile of 16-bit elements: pairs along a column."""
    return Fragment((8, 8), lambda i, j: (j * 4 + i // 2, i % 2))
