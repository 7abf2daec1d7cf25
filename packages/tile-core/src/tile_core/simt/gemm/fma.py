"""Matrix products by ordinary arithmetic: any element types, any extents, any layout of C."""

from __future__ import annotations

from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.buffer import Region, Scope, static_value
from tile_core.ir.stmt import For, Parallel, Stmt
from tile_core.layout import Fragment
from tile_core.layout.loop_layout import LoopLayout, planned
from tile_core.layout.loop_layout_inverse import loop_over
from tile_core.ops.gemm import Gemm
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import seq
from tile_core.simt.gemm.register_blocking import block_fragment, block_tiling, lower_blocks
from tile_core.simt.gemm.staged_operands import staged
from tile_core.simt.partition import partition


def lower_fma(op: Gemm, ctx: SimtContext) -> Stmt:
    """Return the product as each thread computes its elements of C.

    Operands in registers go through shared memory, because each element is needed by threads
    that do not hold it. Where C is spread in rectangles, a thread multiplies a column of A by
    a row of B at a time; else element by element.
    """
    in_registers = [r.buffer.scope is Scope.FRAGMENT for r in (op.a, op.b)]
    before, op, after = staged(op, in_registers[0], in_registers[1], ctx)
    tiling = block_tiling(op, ctx.threads)
    if _is_spread_in(op.c, block_fragment(tiling), ctx):
        return seq(before, lower_blocks(op, tiling, ctx), after)
    return seq(before, _by_elements(op, ctx), after)


def _is_spread_in(region: Region, fragment: Fragment, ctx: SimtContext) -> bool:
    """Whether `region` is a whole tile that threads hold as `fragment` says."""
    buffer = region.buffer
    if buffer.scope is not Scope.FRAGMENT or buffer.rank != 2 or not region.is_whole:
        return False
    return ctx.fragment_of(buffer).same_function(fragment)


def _by_elements(op: Gemm, ctx: SimtContext) -> Stmt:
    """Let each thread sum up the elements of C that it holds, one after the other."""
    rows = op.serial_form()
    if not isinstance(rows, For) or not isinstance(rows.body, For):
        raise InternalError("a serial product is not a nest of loops", span=op.span)
    columns = rows.body
    nest = Parallel((rows.var, columns.var), (rows.stop, columns.stop), columns.body, span=op.span)
    return partition(nest, _elements_of(op.c, ctx), ctx)


def _elements_of(region: Region, ctx: SimtContext) -> LoopLayout:
    """Return which thread computes each element of the last two dimensions of `region`."""
    extents = (region.static_extents or ())[-2:]
    if region.buffer.scope is not Scope.FRAGMENT:
        return planned(extents, ctx.threads)
    fragment = ctx.fragment_of(region.buffer)
    if region.is_whole and region.buffer.rank == 2:
        return loop_over(fragment)
    zeros = (0,) * (region.buffer.rank - 2)
    first, second = (static_value(start) or 0 for start in region.starts[-2:])

    def place(i: Any, j: Any) -> tuple[Any, ...]:
        return (*zeros, i + first, j + second)

    part = Fragment(
        extents,
        forward_thread_fn=lambda i, j, rep=0: fragment.forward_thread(*place(i, j), rep=rep),
        replicate=fragment.replication,
        forward_index_fn=lambda i, j: fragment.forward_index(*place(i, j)),
        threads=fragment.thread_extent,
    )
    return loop_over(part)
