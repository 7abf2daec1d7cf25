"""Loops and operators over no elements."""

from __future__ import annotations

from collections.abc import Iterable

from tile_core.ir.buffer import Region, static_value
from tile_core.ir.build_expr import INT32, as_expr, binary, cast, const
from tile_core.ir.expr import BinaryOp, Const, Expr, Load, Var
from tile_core.ir.node import Node, rewrite
from tile_core.ir.stmt import If, Kernel, Parallel, Seq, Stmt, Store
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm
from tile_core.ops.loop_builders import accumulator
from tile_core.ops.operator import TileOperator
from tile_core.ops.parallel_form import as_parallel, is_element_wise
from tile_core.ops.reduce import Reduce, combine
from tile_core.ops.scan import Scan
from tile_core.passes.lower_serially import nested_loops


def eliminate_dead_code(kernel: Kernel) -> Kernel:
    """Return `kernel` without data-parallel loops and operators over no elements.

    Before   copy A[4:+0, 0:+8], S[4:+0, 0:+8];  parallel i, j in (0, 8): S[i, j] = 7
             reduce max S[0:+8, 4:+0], dim=1 -> rows
    After    parallel i in (8): rows[i] = -inf

    Slices that are empty at compile time are legal and have no elements, as in Python; there is
    nothing to lay out or to share among threads. Reductions of rows without elements give the
    identity, MMAs without depth zeros. Returns the same object if there are
    none.
    """
    return rewrite(kernel, _rule)


def _rule(node: Node) -> Node:
    match node:
        case Reduce() if _has_none((node.dst,)):
            return Seq((), span=node.span)
        case Reduce() if _has_none((node.src,)):
            return _of_empty_rows(node)
        case Gemm() if _has_none((node.a, node.b)):
            return _of_no_products(node)
        case Scan() if _has_none((node.src,)):
            return Seq((), span=node.span)
        case TileOperator() if is_element_wise(node):
            regions = (*node.reads(), *node.writes())
            if _has_none(regions) and _runs_nothing(as_parallel(node)):
                return Seq((), span=node.span)
        case Parallel() if _runs_nothing(node):
            return Seq((), span=node.span)
    return node


def _has_none(regions: Iterable[Region]) -> bool:
    return any(static_value(e) == 0 for region in regions for e in region.extents)


def _runs_nothing(loop: Parallel) -> bool:
    return any(static_value(e) == 0 for e in loop.extents)


def _of_no_products(op: Gemm) -> Stmt:
    """Return what an MMA without rows, columns or depth does to its accumulator: it clears it."""
    if _has_none((op.c,)):
        return Seq((), span=op.span)
    zeros = Fill(op.c, const(0, op.c.buffer.dtype), span=op.span)
    if isinstance(op.clear, Const):
        return zeros if op.clear.value else Seq((), span=op.span)
    return If(op.clear, zeros, span=op.span)


def _of_empty_rows(op: Reduce) -> Stmt:
    """Return what a reduction of rows without elements does to its results."""
    dst = op.dst
    points = tuple(Var(f"i{axis}", INT32) for axis in range(dst.buffer.rank))
    starts = (as_expr(start) for start in dst.starts)
    there = tuple(binary(BinaryOp.ADD, s, p) for s, p in zip(starts, points, strict=True))
    wide = accumulator("total", dst.buffer.dtype).dtype
    value: Expr = const(op.kind.identity(dst.buffer.dtype), wide)
    if not op.clear:
        old = cast(Load(dst.buffer, there), wide)
        value = combine(op.kind, value, old, nan_propagate=op.nan_propagate)
    store = Store(dst.buffer, there, cast(value, dst.buffer.dtype), span=op.span)
    extents = tuple(as_expr(extent) for extent in dst.extents)
    loop = Parallel(points, extents, Seq((store,), span=op.span), span=op.span)
    return nested_loops(loop) if dst.buffer.scope.is_thread_private else loop
