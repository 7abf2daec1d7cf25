"""Matrix products on the CPU: register-tiled kernels over blocks and tiles."""

from __future__ import annotations

from typing import Any

from tile_core.errors import InternalError
from tile_core.ir.arith import const
from tile_core.ir.buffer import Region, static_value
from tile_core.ir.expr import Const
from tile_core.ir.stmt import If
from tile_core.ops.fill import Fill
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import Rule
from tile_core.ops.serial import expand
from tile_core.target import Target
from tile_core.tir.build import i32, loop, seq
from tile_core.tir.nodes import Stmt
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.matrices import element_name, matrix_of, valid_extent
from tile_cpu.ops.blocked_gemm import BlockedGemm
from tile_cpu.ops.streamed_gemm import StreamedGemm
from tile_cpu.rules.gemm_dtypes import unsupported_product


def lower_blocked_gemm(op: BlockedGemm, ctx: Context) -> Stmt:
    """Return a block of a product over all of K, read from and written to global memory."""
    from tile_cpu.gemm.macro import emit_blocked_gemm, plan_gemm
    from tile_cpu.gemm.operands import Extent, start_from, store_to

    m, n = op.mn
    spec = plan_gemm(
        ctx.machine,
        element_name(op.a),
        element_name(op.b),
        str(op.accumulator),
        m,
        n,
        transposed_b=op.transpose_b,
    )
    a, b = matrix_of(ctx, op.a, op.a_rows), matrix_of(ctx, op.b, op.b_rows)
    last_a, last_b = op.a.buffer.rank - 1, op.b.buffer.rank - 1
    extent = Extent(
        m,
        n,
        0,
        valid_extent(ctx, op.a, last_a if op.transpose_a else op.a_rows),
        valid_extent(ctx, op.b, op.b_rows if op.transpose_b else last_b),
    )
    depth = static_value(op.k)
    start = None
    if op.start is not None:
        tile = Region(op.start, (0, 0), op.start.shape)
        start = start_from(matrix_of(ctx, tile, 0), spec.kernel)
    return emit_blocked_gemm(
        spec,
        a,
        b,
        extent,
        k_extent=ctx.index(op.k) if depth is None else depth,
        finish=store_to(matrix_of(ctx, op.dst, op.dst_rows)),
        start=start,
        transposed_a=op.transpose_a,
        transposed_b=op.transpose_b,
    )


def lower_gemm(op: Gemm, ctx: Context) -> Stmt:
    """Return the product of two tiles in scratch."""
    return _tile_product(op, ctx, op.b.buffer.rank - 2)


def lower_streamed_gemm(op: StreamedGemm, ctx: Context) -> Stmt:
    """Return the product of a tile in scratch with one packed from global memory."""
    return _tile_product(op, ctx, op.b_rows)


def _tile_product(op: Gemm | StreamedGemm, ctx: Context, b_rows: int) -> Stmt:
    from tile_cpu.gemm.kernel import choose_kernel
    from tile_cpu.gemm.operands import (
        DirectB,
        Extent,
        GemmSpec,
        OperandA,
        copied_a,
        packed_b,
        start_from,
        store_to,
    )
    from tile_cpu.gemm.packing import emit_copy_rows, emit_pack_b
    from tile_cpu.gemm.shape import choose_tile
    from tile_cpu.gemm.tile import emit_tile_gemm

    m, n, k = _extents(op, b_rows)
    names = [element_name(r) for r in (op.a, op.b, op.c)]
    kernel = choose_kernel(ctx.machine, *names)
    spec = GemmSpec(ctx.machine, kernel, choose_tile(ctx.machine, kernel, m, n))
    a = matrix_of(ctx, op.a, op.a.buffer.rank - 2)
    b = matrix_of(ctx, op.b, b_rows)
    c = matrix_of(ctx, op.c, op.c.buffer.rank - 2)
    statements: list[Any] = []

    row_operand: Any = OperandA(a)
    whole_groups = k % kernel.group == 0 and names[0] == kernel.a_dtype
    if op.transpose_a or kernel.flip_a or not whole_groups:
        row_operand, room = copied_a(spec, m, k, k_major=op.transpose_a)
        statements += room
        statements.append(emit_copy_rows(spec, a, row_operand, m, k, transposed=op.transpose_a))

    last = op.b.buffer.rank - 1
    k_valid = valid_extent(ctx, op.b, last if op.transpose_b else b_rows)
    n_valid = valid_extent(ctx, op.b, b_rows if op.transpose_b else last)
    column_operand: Any
    if kernel.group == 1 and not op.transpose_b and k_valid is None and n_valid is None:
        column_operand = DirectB(b)
    else:
        column_operand, room = packed_b(spec, k, n)
        statements += room
        statements.append(
            emit_pack_b(
                spec,
                b,
                column_operand,
                k,
                n,
                transposed=op.transpose_b,
                k_valid=k_valid,
                n_valid=n_valid,
            )
        )
    start: Any = start_from(c, kernel)
    clears = isinstance(op.clear, Const) and bool(op.clear.value)
    if clears and n_valid is not None:
        statements.append(zero_matrix(c, m, n, kernel.lanes))  # columns that do not exist too
    elif clears:
        start = None
    elif not isinstance(op.clear, Const):
        cleared = ctx.lower_stmt(If(op.clear, expand(Fill(op.c, const(0, op.c.buffer.dtype)))))
        statements.insert(0, cleared)
    # What does not exist of B is zero: nothing to add.
    extent = Extent(m, n, k, None, n_valid, k_valid)
    product = emit_tile_gemm(
        spec, row_operand, column_operand, extent, start=start, finish=store_to(c)
    )
    return seq(statements, product)


def zero_matrix(matrix: Any, m: int, n: int, lanes: int) -> Stmt:
    """Return the statement that sets `m` rows of `n` elements to zero."""
    from tile_cpu.vectors import zero

    def row(i: Any) -> list[Stmt]:
        whole, tail = divmod(n, lanes)
        value = zero(matrix.dtype, lanes)
        parts = [loop(whole, lambda v: matrix.store(i, v * lanes, value, lanes), name="v")]
        if tail:
            parts.append(matrix.store(i, i32(whole * lanes), value, lanes, i32(tail)))
        return parts if whole else parts[1:]

    return loop(m, row, name="i")


def _extents(op: Gemm | StreamedGemm, b_rows: int) -> tuple[int, int, int]:
    a, c = op.a.static_extents, op.c.static_extents
    if a is None or c is None:
        raise InternalError("a product has run-time extents", span=op.span)
    return c[-2], c[-1], a[-2] if op.transpose_a else a[-1]


def rejects_gemm(op: Gemm, target: Target) -> str | None:
    """Say why a tile product cannot run on vectors."""
    regions = (op.a, op.b, op.c)
    if any(static_value(r.buffer.strides[-1]) != 1 for r in regions if r.buffer.strides):
        return "rows of an operand are not contiguous"
    if any(r.buffer.scope.is_global for r in (op.a, op.c)):
        return "only the second factor may be in global memory"
    return unsupported_product(*(r.buffer.dtype for r in regions))


GEMM_RULES: tuple[Rule[Any], ...] = (
    Rule(name="cpu.blocked_gemm", op=BlockedGemm, lower=lower_blocked_gemm),
    Rule(name="cpu.streamed_gemm", op=StreamedGemm, lower=lower_streamed_gemm),
    Rule(
        name="cpu.gemm.tiled",
        op=Gemm,
        lower=lower_gemm,
        rejects=rejects_gemm,
        priority=10,
    ),
)
