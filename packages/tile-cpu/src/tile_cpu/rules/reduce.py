"""Reductions on vectors."""

from __future__ import annotations

from typing import Any

from tile_core.ir.buffer import static_value
from tile_core.ir.build_expr import cast, const
from tile_core.ir.expr import Expr, Var
from tile_core.ops.loop_builders import accumulator, load, store
from tile_core.ops.parallel_form import parallel_nest
from tile_core.ops.reduce import Reduce, combine, magnitude
from tile_core.ops.rule import Rule
from tile_core.ops.serial_forms import expand
from tile_cpu.lowering.context import Context, Lane, assigned, loaded
from tile_cpu.lowering.row_reductions import HORIZONTAL, SUMS, combined
from tile_cpu.lowering.types import number, spread, value_type
from tile_cpu.lowering.vector_access import NotVectorisable, lane_stride
from tile_cpu.tir.build import i32, prim, seq, with_lanes
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import ForKind, PrimExpr, Select, TirBuffer, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar

ROWS_TOGETHER = 4
"""Rows reduced side by side: one sum waits for itself, four keep the adders busy."""


def lower_reduce(op: Reduce, ctx: Context) -> TirStmt:
    """Return the reduction along contiguous rows with vector sums, else one lane per result."""
    extent = static_value(op.src.extents[op.dim])
    if extent is not None and extent >= 2 and not op.dst.buffer.dtype.is_bool:
        rows = _Rows(op, ctx, extent)
        if rows.are_contiguous():
            try:
                with ctx.attempt():
                    return rows.emit()
            except NotVectorisable:
                pass
    return ctx.lower_stmt(parallel_nest(expand(op)))


class _Rows:
    """A reduction whose elements lie side by side: vectors along the row, then across."""

    def __init__(self, op: Reduce, ctx: Context, extent: int) -> None:
        self.op, self.ctx, self.extent = op, ctx, extent
        self.kept = [k for k in range(len(op.src.extents)) if k != op.dim]
        self.r = Var("r", const(0).dtype)
        self.at = tuple(Var("i", const(0).dtype) for _ in self.kept)
        self.total = accumulator("total", op.dst.buffer.dtype).dtype
        self.lanes = ctx.machine.lanes(max(8, self.total.bits))
        while self.lanes > 2 and self.lanes >= 2 * extent:
            self.lanes //= 2
        axes = (len(self.kept) if d == op.dim else self.kept.index(d)
                for d in range(len(op.src.extents)))  # fmt: skip
        value = load(op.src, tuple(axes), (*self.at, self.r))
        self.source = value
        value_: Expr = cast(cast(value, op.dst.buffer.dtype), self.total)
        self.value = magnitude(value_) if op.kind.takes_magnitudes else value_

    def are_contiguous(self) -> bool:
        """Whether neighbours along the reduced dimension are neighbours in memory."""
        with self.ctx.statement():
            place = self.ctx.place(self.op.src.buffer)
            stride = lane_stride(self.ctx, place, self.source.indices, self.r)
        return stride == 1 and place.packing == 1

    def emit(self) -> TirStmt:
        """Return loops over the kept dimensions around rows reduced together."""
        env = self.ctx.env.with_loop(self.r, 0, self.extent)
        for var, k in zip(self.at, self.kept, strict=True):
            env = env.with_loop(var, 0, self.op.src.extents[k])
        with self.ctx.scope(env):
            return self.over(0)

    def over(self, depth: int) -> TirStmt:
        """Return the loops from kept dimension `depth` on."""
        if depth == len(self.kept):
            return self.reduced([{}])
        var, extent = self.at[depth], self.op.src.extents[self.kept[depth]]
        if depth == len(self.kept) - 1:
            return self.innermost(var, extent)
        named = TirVar("i", prim("int32"))
        self.ctx.vars[var] = named
        with self.ctx.statement() as statements:
            limit = self.ctx.index(extent)
            body = self.over(depth + 1)
        return seq(statements, TirFor(named, i32(0), limit, ForKind.SERIAL, body))

    def innermost(self, var: Var, extent: Any) -> TirStmt:
        """Return the loop over the last kept dimension, several rows an iteration."""
        fixed = static_value(extent)
        together = ROWS_TOGETHER if fixed is not None and fixed >= ROWS_TOGETHER else 1
        with self.ctx.statement() as statements:
            limit = self.ctx.keep_index(self.ctx.index(extent))
            whole = tirx.floordiv(limit, i32(together))
            parts = [self.rounds(var, i32(0), whole, together)]
            if fixed is None or fixed % together:
                parts.append(self.rounds(var, whole * together, limit - whole * together, 1))
        return seq(statements, *parts)

    def rounds(self, var: Var, first: PrimExpr, count: PrimExpr, together: int) -> TirStmt:
        named = TirVar("i", prim("int32"))
        rows = [{var: first + named * together + u} for u in range(together)]
        return TirFor(named, i32(0), count, ForKind.SERIAL, self.reduced(rows))

    def reduced(self, rows: list[dict[Var, PrimExpr]]) -> TirStmt:
        """Return the reduction of some rows side by side, and the stores of their results.

        A row alone is cut into several sums instead.
        """
        ctx = self.ctx
        kind = value_type(self.total)
        identity = number(self.op.kind.identity(self.op.dst.buffer.dtype), kind, self.lanes)
        whole, rest = divmod(self.extent, self.lanes)
        sums = min(SUMS, max(1, whole // 2)) if len(rows) == 1 else 1
        with ctx.statement() as statements:
            cells = [[ctx.cell(with_lanes(kind, self.lanes), "acc") for _ in range(sums)]
                     for _ in rows]  # fmt: skip
            for cell in (c for row in cells for c in row):
                ctx.run(assigned(cell, identity))
            if whole // sums:
                vector = TirVar("v", prim("int32"))
                first = vector * (sums * self.lanes)
                steps = [
                    self.accumulate(rows, [c[u] for c in cells], first + u * self.lanes)
                    for u in range(sums)
                ]
                ctx.run(TirFor(vector, i32(0), i32(whole // sums), ForKind.SERIAL, seq(steps)))
            for v in range(whole // sums * sums, whole):
                ctx.run(self.accumulate(rows, [c[0] for c in cells], i32(v * self.lanes)))
            if rest:
                last = i32(whole * self.lanes)
                ctx.run(self.accumulate(rows, [c[0] for c in cells], last, i32(rest)))
            for row, (cell, *others) in zip(rows, cells, strict=True):
                for other in others:
                    ctx.run(assigned(cell, self.combined(loaded(other), loaded(cell))))
                self.finish(row, cell)
        return seq(statements)

    def accumulate(
        self,
        rows: list[dict[Var, PrimExpr]],
        cells: list[TirBuffer],
        first: PrimExpr,
        count: PrimExpr | None = None,
    ) -> TirStmt:
        """Return the combination of one vector of each row, from `first` on, into its sum."""
        ctx = self.ctx
        outer = ctx.lane
        parts = []
        for row, cell in zip(rows, cells, strict=True):
            ctx.vars.update(row)
            ctx.lane = Lane(self.r, first, self.lanes, count)
            with ctx.statement() as statements:
                value = spread(ctx.value(self.value), self.lanes)
                old = loaded(cell)
                new = self.combined(value, old)
                if count is not None:
                    numbers = tirx.Ramp(i32(0), i32(1), self.lanes)
                    new = Select(tirx.LT(numbers, spread(count, self.lanes)), new, old)
                ctx.run(assigned(cell, new))
            ctx.lane = outer
            parts.append(seq(statements))
        return seq(parts)

    def combined(self, value: PrimExpr, old: PrimExpr) -> PrimExpr:
        """Return `value` combined into `old`, which is never NaN unless NaN propagates."""
        op = self.op
        return combined(self.ctx, op.kind, value, old, nan_propagate=op.nan_propagate)

    def finish(self, row: dict[Var, PrimExpr], cell: TirBuffer) -> None:
        """Combine the lanes, and the old contents unless cleared, and store the result."""
        from tile_cpu.math.reduce import horizontal

        ctx, op = self.ctx, self.op
        name = HORIZONTAL[op.kind]
        if name in ("max", "min") and self.total.is_float:
            name += "_nan" if op.nan_propagate else "_number"
        ctx.vars.update(row)
        single = horizontal(ctx.keep, loaded(cell), name, lanes=self.lanes)
        result = Var("total", self.total)
        ctx.vars[result] = ctx.keep(single)
        dst_axes = tuple(None if d is None else self.kept.index(d) for d in op.dst_axes)
        value: Expr = result
        if not op.clear:
            old = cast(load(op.dst, dst_axes, self.at), self.total)
            value = combine(op.kind, result, old, nan_propagate=op.nan_propagate)
        ctx.run(ctx.lower_stmt(store(op.dst, dst_axes, self.at, value)))


REDUCE_RULE = Rule(name="cpu.reduce.vector", op=Reduce, lower=lower_reduce)
