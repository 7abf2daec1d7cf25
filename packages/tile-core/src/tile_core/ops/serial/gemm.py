"""The product of two tiles as three scalar loops."""

from __future__ import annotations

from tile_core.ir.arith import cast, const, select
from tile_core.ir.buffer import Region
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Alloc, Stmt
from tile_core.ops.gemm import Gemm
from tile_core.ops.serial.loops import accumulator, count, load, nest, read, seq, store, write


def expand_gemm(op: Gemm) -> Stmt:
    """Return the triple loop: one accumulator per element of C, K innermost."""
    m, n, k_extent = op.mnk

    def body(at: tuple[Var, ...]) -> Stmt:
        i, j = at
        k = Var("k", i.dtype)
        total = accumulator("total", op.c.buffer.dtype)
        a_at, b_at = ((k, i) if op.transpose_a else (i, k)), ((j, k) if op.transpose_b else (k, j))
        a = cast(load(op.a, matrix_axes(op.a), a_at), total.dtype)
        b = cast(load(op.b, matrix_axes(op.b), b_at), total.dtype)
        before = cast(load(op.c, matrix_axes(op.c), at), total.dtype)
        return seq(
            Alloc(total),
            write(total, select(op.clear, const(0, total.dtype), before)),
            count(k, k_extent, write(total, read(total) + a * b)),
            store(op.c, matrix_axes(op.c), at, read(total)),
        )

    return nest((m, n), body)


def matrix_axes(region: Region) -> tuple[int | None, ...]:
    """Return the axes of a matrix operand: leading dimensions stay, the last two move."""
    return (*(None for _ in region.extents[:-2]), 0, 1)
