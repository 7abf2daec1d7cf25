"""Which layouts of tiles in scratch the CPU follows."""

from __future__ import annotations

from collections.abc import Callable

from tile_core.ir.buffer import Buffer
from tile_core.ir.effects import Mode, accesses
from tile_core.ir.expr import AddressOf
from tile_core.ir.stmt import Kernel
from tile_core.layout import Layout
from tile_core.passes.infer_layouts import Layouts
from tile_cpu.lowering.buffer_addresses import row_strides


def admits_in(kernel: Kernel) -> Callable[[Buffer, Layout], bool]:
    """Return the test whether an annotated tile of `kernel` is stored as annotated.

    Rows must stay rows, of consecutive elements: any distance apart, so padding is followed.
    What the swizzles and fragments of GPUs are for, banks of memory and registers of
    threads, does not exist here, and they would tear vectors apart. Tiles that are also seen
    through views, or whose address is handed out, stay as they are.
    """
    fixed: set[Buffer] = set()
    for access in accesses(kernel.body):
        is_address = isinstance(access.node, AddressOf) and access.mode is not Mode.ATOMIC
        if is_address or access.buffer.origin is not None:
            fixed.add(access.buffer.storage)

    def admits(buffer: Buffer, layout: Layout) -> bool:
        is_plain = buffer.origin is None and buffer not in fixed and buffer.dtype.packing == 1
        is_tile = is_plain and not buffer.scope.is_thread_private
        return is_tile and row_strides(layout) is not None

    return admits


def special_layouts(layouts: Layouts) -> dict[Buffer, Layout]:
    """Return what is not stored row by row without gaps."""
    return {
        buffer: layout
        for buffer, layout in layouts.known.items()
        if isinstance(layout, Layout)
        and (layout.cosize != layout.size or not _counts_elements(layout))
    }


def _counts_elements(layout: Layout) -> bool:
    strides, step = row_strides(layout), 1
    if strides is None:
        return layout.size == 1
    for extent, stride in zip(reversed(layout.shape), reversed(strides), strict=True):
        if extent > 1 and stride != step:
            return False
        step *= extent
    return True
