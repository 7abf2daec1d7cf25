"""Running totals along rows: several rows at a time."""

from __future__ import annotations

from typing import Any

from tile_core.ir.build_expr import as_expr, cast, const
from tile_core.ir.expr import Var
from tile_core.ir.stmt import Alloc, Stmt
from tile_core.ops.loop_builders import accumulator, count, load, nest, read, seq, store, write
from tile_core.ops.reduce import combine
from tile_core.ops.rule import Rule
from tile_core.ops.scan import Scan
from tile_cpu.lowering.context import Context
from tile_cpu.rules.elementwise import lower_vector

AT_ONCE = 4
"""Rows whose totals do not wait for each other: an addition takes about as many cycles."""


def lower_scan(op: Scan, ctx: Context) -> Any:
    """Return the scan of `AT_ONCE` rows in one loop, where rows are dense and so many.

    Before   scan sum x, dim=1 -> y
    After    for rows i, i+1, i+2, i+3:  for j: four totals, each with its element added
    """
    shape = op.src.static_extents
    rank = len(op.src.extents)
    if shape is None or op.dim != rank - 1 or rank == 1 or shape[-2] % AT_ONCE:
        return lower_vector(op, ctx)
    return ctx.lower_stmt(nest([*shape[:-2], shape[-2] // AT_ONCE], _rows(op)))


def _rows(op: Scan) -> Any:
    dtype, extent = op.dst.buffer.dtype, op.src.extents[-1]
    axes = tuple(range(len(op.src.extents)))

    def body(at: tuple[Var, ...]) -> Stmt:
        r = Var("r", at[0].dtype)
        where = as_expr(extent, r.dtype) - 1 - r if op.reverse else r
        totals = [accumulator(f"total{k}", dtype) for k in range(AT_ONCE)]
        first = const(op.kind.identity(dtype), totals[0].dtype)
        steps: list[Stmt] = []
        for k, total in enumerate(totals):
            row = (*at[:-1], at[-1] * AT_ONCE + k, where)
            value = cast(cast(load(op.src, axes, row), dtype), total.dtype)
            step = combine(op.kind, read(total), value, nan_propagate=op.nan_propagate)
            steps.append(write(total, step))
        for k, total in enumerate(totals):
            row = (*at[:-1], at[-1] * AT_ONCE + k, where)
            steps.append(store(op.dst, axes, row, read(total)))
        begin = [s for total in totals for s in (Alloc(total), write(total, first))]
        return seq(*begin, count(r, extent, seq(*steps)))

    return body


SCAN_RULE: Rule[Any] = Rule(name="cpu.scan.rows", op=Scan, lower=lower_scan)
"""Running totals; of what is no row, as loops over the other dimensions."""
