"""Matrix products on the CPU: register-tiled kernels over blocks and tiles."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

from tile_core.ir.buffer import Region, static_value
from tile_core.ir.build_expr import const
from tile_core.ir.expr import Const
from tile_core.ir.stmt import If
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import Rule
from tile_core.ops.serial_forms import expand
from tile_core.target import Target
from tile_cpu.lowering.cache_hints import comes_from_memory
from tile_cpu.lowering.context import Context
from tile_cpu.lowering.matrices import element_name, exists, matrix_of, valid_extent
from tile_cpu.lowering.types import all_of
from tile_cpu.ops import BlockedGemm, StreamedGemm
from tile_cpu.rules.panels import extents_of, infer_gemm, panels_of, tile_spec
from tile_cpu.tir.build import i32, loop, seq
from tile_cpu.tir.nodes import IfThenElse, Stmt, tirx


def lower_gemm(op: Gemm | StreamedGemm | BlockedGemm, ctx: Context) -> Stmt:
    """Return a product of tiles in scratch, or of regions of global memory."""
    with ctx.statement() as before:
        product = _block_product(op, ctx) if isinstance(op, BlockedGemm) else _tile_product(op, ctx)
    return seq(before, product)


def _block_product(op: BlockedGemm, ctx: Context) -> Stmt:
    from tile_cpu.gemm.macrokernel import emit_blocked_gemm, plan_gemm
    from tile_cpu.gemm.operands import Extent, StoreTo, start_from
    from tile_cpu.gemm.register_tile_shape import GemmForm, in_pairs_of_lines

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
    is_read_once = m == 1 and spec.form is GemmForm.DIRECT
    if is_read_once and comes_from_memory(op.b.buffer.storage, ctx.machine):
        nbytes = spec.kernel.lanes * op.b.buffer.dtype.bits // 8
        spec = replace(spec, tile=in_pairs_of_lines(spec.tile, nbytes))
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
    start, dst = None, matrix_of(ctx, op.dst, op.dst_rows)
    if op.start is not None:
        tile = Region(op.start, (0, 0), op.start.shape)
        start = start_from(matrix_of(ctx, tile, 0), spec.kernel)
    product = emit_blocked_gemm(
        spec,
        a,
        b,
        extent,
        k_extent=ctx.index(op.k) if depth is None else depth,
        finish=StoreTo(dst),
        start=start,
        transposed_a=op.transpose_a,
        transposed_b=op.transpose_b,
        packed=ctx.packed.get(op),
    )
    present = all_of([exists(ctx, op.a, op.a_rows), exists(ctx, op.b, op.b_rows)])
    rest = _zeros_beside(op, dst, extent, spec.kernel.lanes)
    if present is not None:
        empty = _empty_product(op, dst, extent, spec.kernel.lanes)
        product = IfThenElse(present, product, empty)
    stored = exists(ctx, op.dst, op.dst_rows)
    product = seq(rest, product)
    return product if stored is None else IfThenElse(stored, product, None)


def _zeros_beside(op: BlockedGemm, dst: Any, extent: Any, lanes: int) -> Stmt | None:
    """Return what sets a tile to zero if some of its rows or columns are not multiplied.

    A tensor has no such elements: it ends where they would begin. A tile that the products are
    added to holds them already.
    """
    sides = [(extent.m_valid, extent.m), (extent.n_valid, extent.n)]
    tests = [tirx.LT(valid, i32(size)) for valid, size in sides if valid is not None]
    if op.dst.buffer.scope.is_global or op.start is not None or not tests:
        return None
    is_clipped = tests[0] if len(tests) == 1 else tirx.Or(*tests)
    return IfThenElse(is_clipped, zero_matrix(dst, extent.m, extent.n, lanes), None)


def _empty_product(op: BlockedGemm, dst: Any, extent: Any, lanes: int) -> Stmt | None:
    """Return what is stored where an operand is outside of its tensor: sums of nothing."""
    if op.start is not None:
        return None
    rows = extent.m if extent.m_valid is None else extent.m_valid
    columns = extent.n if extent.n_valid is None else extent.n_valid
    return zero_matrix(dst, rows, columns, lanes)


def _tile_product(op: Gemm | StreamedGemm, ctx: Context) -> Stmt:
    from tile_cpu.gemm.dot_rows import emit_dot_rows
    from tile_cpu.gemm.operands import AddTo, Extent, StoreTo
    from tile_cpu.gemm.register_tile_shape import GemmForm
    from tile_cpu.gemm.tile_loops import emit_tile_gemm

    m, n, k = extents_of(op)
    spec = tile_spec(op, ctx.machine)
    last = op.b.buffer.rank - 1
    b_rows = op.b_rows if isinstance(op, StreamedGemm) else last - 1
    k_valid = valid_extent(ctx, op.b, last if op.transpose_b else b_rows)
    n_valid = valid_extent(ctx, op.b, b_rows if op.transpose_b else last)
    c = matrix_of(ctx, op.c, op.c.buffer.rank - 2)
    # What does not exist of B is zero: nothing to add.
    extent = Extent(m, n, k, None, n_valid, k_valid)
    prepare: list[Any] = []
    if spec.form is GemmForm.DOT_ROWS:
        a, b = matrix_of(ctx, op.a, op.a.buffer.rank - 2), matrix_of(ctx, op.b, b_rows)
        multiply = partial(emit_dot_rows, spec, a, b, extent)
    elif isinstance(op, StreamedGemm) and _is_packed_on_the_way(op, m):
        multiply = _packing_product(op, ctx, spec, extent)
    else:
        rows, prepare_a = _row_operand(op, ctx, spec, m, k)
        columns, prepare_b = _column_operand(op, ctx, spec, b_rows, extent)
        prepare = [prepare_a, prepare_b]
        multiply = partial(emit_tile_gemm, spec, rows, columns, extent)
    start, prepare_c = _start(op, ctx, spec, c, is_clipped=n_valid is not None)
    adds = start is not None and spec.form is not GemmForm.DOT_ROWS
    finish = AddTo(c, spec.kernel.accumulator) if adds else StoreTo(c)
    product = seq(*prepare, multiply(start=None if adds else start, finish=finish))
    present = all_of([exists(ctx, op.a, op.a.buffer.rank - 2), exists(ctx, op.b, b_rows)])
    if present is not None:
        nothing = None if start else zero_matrix(c, m, n, spec.kernel.lanes)
        product = IfThenElse(present, product, nothing)
    stored = exists(ctx, op.c, op.c.buffer.rank - 2)
    product = seq(prepare_c, product)
    return product if stored is None else IfThenElse(stored, product, None)


def _is_packed_on_the_way(op: StreamedGemm, rows: int) -> bool:
    """Whether each window of columns of B is packed just before it is multiplied.

    B in memory, for more than few rows: where its rows are far apart, those of a panel fall into
    few sets of a cache, and each row of register tiles would fetch them from further away.
    """
    from tile_cpu.gemm.register_tile_shape import GemmForm, choose_form

    form = choose_form(element_name(op.b), rows, transposed_b=op.transpose_b)
    return form is GemmForm.PANELS


def _packing_product(op: StreamedGemm, ctx: Context, spec: Any, extent: Any) -> partial[Stmt]:
    """Return what multiplies A in scratch by B in memory, given a start and a finish."""
    from tile_cpu.gemm.macrokernel import emit_blocked_gemm

    a, b = matrix_of(ctx, op.a, op.a.buffer.rank - 2), matrix_of(ctx, op.b, op.b_rows)
    return partial(
        emit_blocked_gemm,
        spec,
        a,
        b,
        extent,
        k_extent=extent.depth,
        transposed_a=op.transpose_a,
        transposed_b=op.transpose_b,
    )


def _row_operand(
    op: Gemm | StreamedGemm, ctx: Context, spec: Any, m: int, k: int
) -> tuple[Any, list[Stmt]]:
    """Return A in the form the kernel reads, and what puts it into that form."""
    from tile_cpu.gemm.operands import OperandA, copied_a
    from tile_cpu.gemm.packing import emit_copy_rows
    from tile_cpu.gemm.row_sums import emit_row_sums, row_sums

    kernel = spec.kernel
    statements: list[Stmt] = []
    a = matrix_of(ctx, op.a, op.a.buffer.rank - 2)
    operand = OperandA(a)
    if op.transpose_a or k % kernel.group or a.dtype != kernel.a_dtype:
        operand, statements = copied_a(spec, m, k, k_major=op.transpose_a)
        statements.append(emit_copy_rows(spec, a, operand, m, k, transposed=op.transpose_a))
    if kernel.flip_b:
        sums, room = row_sums(spec, m)
        operand, add = emit_row_sums(spec, operand, sums, m, k)
        statements += [*room, add]
    return operand, statements


def _column_operand(
    op: Gemm | StreamedGemm, ctx: Context, spec: Any, b_rows: int, extent: Any
) -> tuple[Any, list[Stmt]]:
    """Return B in the form the kernel reads, and what puts it into that form."""
    from tile_cpu.gemm.operands import DirectB, packed_b
    from tile_cpu.gemm.packing import emit_pack_b

    if op.b.buffer in ctx.settings.layouts and ctx.place(op.b.buffer).layout is not None:
        return panels_of(ctx, op.b.buffer, spec, extent.k), []
    b = matrix_of(ctx, op.b, b_rows)
    is_whole = extent.k_valid is None and extent.n_valid is None
    is_readable = b.dtype == spec.kernel.b_dtype or extent.m <= spec.tile.mr
    if spec.kernel.group == 1 and not op.transpose_b and is_whole and is_readable:
        return DirectB(b), []
    operand, statements = packed_b(spec, extent.k, extent.n)
    pack = emit_pack_b(
        spec,
        b,
        operand,
        extent.k,
        extent.n,
        transposed=op.transpose_b,
        k_valid=extent.k_valid,
        n_valid=extent.n_valid,
    )
    return operand, [*statements, pack]


def _start(
    op: Gemm | StreamedGemm, ctx: Context, spec: Any, c: Any, *, is_clipped: bool
) -> tuple[Any, list[Stmt]]:
    """Return what sums start from, and what must happen to C before."""
    from tile_cpu.gemm.operands import start_from

    if not isinstance(op.clear, Const):
        fill = expand(Fill(op.c, const(0, op.c.buffer.dtype)))
        return start_from(c, spec.kernel), [ctx.lower_stmt(If(op.clear, fill))]
    if not op.clear.value:
        return start_from(c, spec.kernel), []
    if not is_clipped:
        return None, []
    m, n, _ = extents_of(op)  # columns that do not exist are zero too
    return start_from(c, spec.kernel), [zero_matrix(c, m, n, spec.kernel.lanes)]


def zero_matrix(matrix: Any, m: Any, n: Any, lanes: int) -> Stmt:
    """Return the statement that sets `m` rows of `n` elements, ints or int32, to zero."""
    from tile_cpu.vectors import as_expr, floor_div, floor_mod, zero

    def row(i: Any) -> list[Stmt]:
        whole, tail = floor_div(n, lanes), floor_mod(n, lanes)
        value = zero(matrix.dtype, lanes)
        parts = []
        if not isinstance(n, int) or whole:
            parts.append(loop(whole, lambda v: matrix.store(i, v * lanes, value, lanes), name="v"))
        if not isinstance(n, int) or tail:
            parts.append(matrix.store(i, as_expr(whole * lanes), value, lanes, as_expr(tail)))
        return parts

    return loop(m, row, name="i")


def rejects_gemm(op: Gemm, target: Target) -> str | None:
    """Say why a tile product cannot run on vectors."""
    regions = (op.a, op.b, op.c)
    if any(static_value(r.buffer.strides[-1]) != 1 for r in regions if r.buffer.strides):
        return "rows of an operand are not contiguous"
    if any(r.buffer.scope.is_global for r in (op.a, op.c)):
        return "only the second operand may be in global memory"
    for dtype in (r.buffer.dtype for r in regions):
        if dtype.is_bool or dtype.is_handle:
            return f"{dtype} is not a number"
        if dtype.bits in (4, 6) or dtype.is_narrow_float:
            return f"{dtype} is widened before it is multiplied"
    return None


GEMM_RULES: tuple[Rule[Any], ...] = (
    Rule(name="cpu.blocked_gemm", op=BlockedGemm, lower=lower_gemm),
    Rule(name="cpu.streamed_gemm", op=StreamedGemm, lower=lower_gemm),
    Rule(
        name="cpu.gemm.tiled",
        op=Gemm,
        lower=lower_gemm,
        infer_layout=infer_gemm,
        rejects=rejects_gemm,
        priority=10,
    ),
)
