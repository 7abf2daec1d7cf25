"""Data-parallel loops that combine values of a row: sums in registers beside the elements."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, static_value
from tile_core.ir.build_expr import cast
from tile_core.ir.expr import Call, Expr, Load, Var
from tile_core.ir.node import contains, nodes_of, walk
from tile_core.ir.stmt import Hint, Let, Parallel, Seq, Store
from tile_core.ops.loop_builders import accumulator
from tile_core.ops.reduce import ReduceKind, combine
from tile_core.ops.reducer import ReducerUpdate
from tile_cpu.lowering.context import Context, Lane, assigned, loaded
from tile_cpu.lowering.invariants import hoisted
from tile_cpu.lowering.types import number, scalar_name, spread, value_type
from tile_cpu.lowering.vector_access import NotVectorisable, lane_stride
from tile_cpu.passes.row_loops import READ_IN_ORDER
from tile_cpu.tir.build import i32, prim, seq, with_lanes
from tile_cpu.tir.nodes import For as TirFor
from tile_cpu.tir.nodes import ForKind, PrimExpr, Select, TirBuffer, tirx
from tile_cpu.tir.nodes import Stmt as TirStmt
from tile_cpu.tir.nodes import Var as TirVar

SUMS = 4
"""Independent sums: one waits for itself, four keep the adders busy."""

SUMS_OF_CALLS = 2
"""The same where each element takes a function's time anyway."""

FAR_APART = 8192
"""Bytes between rows that a machine fetches ahead each by itself, several at once. Its prefetchers
follow an order within a page: of rows in pages next to each other the one is soon the other."""

HORIZONTAL = {
    ReduceKind.SUM: "sum",
    ReduceKind.ABSSUM: "sum",
    ReduceKind.MAX: "max",
    ReduceKind.ABSMAX: "max",
    ReduceKind.MIN: "min",
    ReduceKind.BITAND: "and",
    ReduceKind.BITOR: "or",
    ReduceKind.BITXOR: "xor",
}
"""The name of each kind's combination of the lanes of one vector."""


def combined(
    ctx: Context, kind: ReduceKind, value: PrimExpr, old: PrimExpr, *, nan_propagate: bool = False
) -> PrimExpr:
    """Return `value` combined into `old`, which is never NaN unless NaN propagates."""
    is_max = kind in (ReduceKind.MAX, ReduceKind.ABSMAX)
    if is_max or kind is ReduceKind.MIN:
        if nan_propagate and scalar_name(value).startswith("float"):
            from tile_cpu.lowering.types import lanes_of
            from tile_cpu.math.table import call as math_call

            name = "max_nan" if is_max else "min_nan"
            return math_call(ctx.keep, name, value, old, lanes=lanes_of(value))
        # Of a first operand that is NaN the instruction returns the second.
        return (tirx.Max if is_max else tirx.Min)(value, old)
    match HORIZONTAL[kind]:
        case "and":
            return tirx.bitwise_and(value, old)
        case "or":
            return tirx.bitwise_or(value, old)
        case "xor":
            return tirx.bitwise_xor(value, old)
    return value + old


def updates_of(loop: Parallel) -> list[ReducerUpdate]:
    """Return the combinations that `loop` makes, in order."""
    return [*nodes_of(loop.body, ReducerUpdate)]


def can_sum(ctx: Context, loop: Parallel, var: Var) -> bool:
    """Whether the combinations of `loop` may each stay in a register along index `var`.

    The loop is a plain sequence, `var` counts to a constant, and no element combined into
    moves with it or is read in the loop.
    """
    body = loop.body.body if isinstance(loop.body, Seq) else (loop.body,)
    extent = static_value(dict(zip(loop.vars, loop.extents, strict=True))[var])
    if extent is None or extent < 2 or var is not loop.vars[-1]:
        return False
    if not all(isinstance(stmt, (Let, Store, Hint, ReducerUpdate)) for stmt in body):
        return False
    inside = {stmt.var for stmt in body if isinstance(stmt, Let)} | {var}
    reducers: list[Buffer] = []
    for update in updates_of(loop):
        dtype = update.reducer.dtype
        if dtype.is_bool or update.reducer in reducers:
            return False
        if any(n in inside or isinstance(n, Load) for i in update.indices for n in walk(i)):
            return False
        reducers.append(update.reducer)
    return not any(node.buffer.storage in reducers for node in nodes_of(loop.body, Load, Store))


class RowSums:
    """The loops over the last two indices of a data-parallel loop: rows, and vectors of them.

    Before   parallel i, j in (8, 256): T[i, j] = v;  total[i] += v
    After    for i in 4: sums a, b = 0;  for j in 16 vectors: T[…] = v; a += v; T[…] = w; b += w
             total[2*i] += across a;  total[2*i + 1] += across b
    """

    def __init__(self, ctx: Context, loop: Parallel, lanes: int, emit: Any) -> None:
        self.ctx, self.loop, self.emit = ctx, loop, emit
        self.var, self.updates = loop.vars[-1], updates_of(loop)
        self.extent = static_value(loop.extents[-1]) or 0
        widest = max(self.wide(u).bits for u in self.updates)
        self.lanes = min(lanes, ctx.machine.lanes(max(8, widest)))
        has_call = contains(loop.body, Call)
        self.sums = SUMS_OF_CALLS if has_call else SUMS
        self.is_in_order = any(h.name == READ_IN_ORDER for h in nodes_of(loop.body, Hint))

    def wide(self, update: ReducerUpdate) -> DType:
        """Return the type in which values are combined."""
        return accumulator("wide", update.reducer.dtype).dtype

    def rows(self, row: Var, extent: Expr) -> TirStmt:
        """Return the loop over index `row`, several rows an iteration."""
        fixed = static_value(extent)
        together = self.sums
        is_long = self.extent >= 2 * self.sums * self.lanes
        if self.is_in_order and is_long and self.bytes_apart(row) < FAR_APART:
            together = 1
        while together > 1 and (fixed is None or fixed % together):
            together //= 2
        named = TirVar(row.name, prim(str(row.dtype)))
        kind = str(row.dtype)
        with self.ctx.statement() as statements:
            stop = self.ctx.index(extent, kind)
            count = tirx.floordiv(stop, number(together, kind))
            at = [{row: named * number(together, kind) + number(u, kind)} for u in range(together)]
            body = self.row_group(at)
        return seq(statements, TirFor(named, number(0, kind), count, ForKind.SERIAL, body))

    def bytes_apart(self, row: Var) -> int:
        """Return how far rows next to each other are apart in memory, 0 where that is not known."""
        found = []
        for load in nodes_of(self.loop.body, Load):
            if load.buffer.scope.is_global:
                place = self.ctx.place(load.buffer)
                stride = lane_stride(self.ctx, place, load.indices, row)
                found += [(stride or 0) * load.buffer.dtype.bits // 8] * (stride != 0)
        return min(map(abs, found), default=0)

    def row_group(self, rows: Sequence[dict[Var, PrimExpr]]) -> TirStmt:
        """Return the vectors of some rows side by side, and what they add up to."""
        ctx = self.ctx
        whole, rest = divmod(self.extent, self.lanes)
        per_row = min(max(1, self.sums // len(rows)), max(1, whole // 2))
        with ctx.statement() as statements:
            kept = []
            for row in rows:
                ctx.vars.update(row)
                kept.append(hoisted(ctx, self.loop.body, self.var))
            cells = [[self.fresh() for _ in range(per_row)] for _ in rows]
            if whole // per_row:
                vector = TirVar("v", prim("int32"))
                apart = self.vectors_apart(rows, whole // per_row)
                first = vector * (self.lanes if apart > 1 else per_row * self.lanes)
                steps = [
                    self.step(row, known, mine[u], first + u * apart * self.lanes)
                    for u in range(per_row)
                    for row, known, mine in zip(rows, kept, cells, strict=True)
                ]
                count = i32(whole // per_row)
                ctx.run(TirFor(vector, i32(0), count, ForKind.SERIAL, seq(steps)))
            last = [(v * self.lanes, None) for v in range(whole // per_row * per_row, whole)]
            if rest:
                last.append((whole * self.lanes, i32(rest)))
            for base, valid in last:
                for row, known, mine in zip(rows, kept, cells, strict=True):
                    ctx.run(self.step(row, known, mine[0], i32(base), valid))
            for row, mine in zip(rows, cells, strict=True):
                ctx.vars.update(row)
                for update in self.updates:
                    self.finish(update, [cells_of[update] for cells_of in mine])
        return seq(statements)

    def vectors_apart(self, rows: Sequence[dict[Var, PrimExpr]], part: int) -> int:
        """Return how many vectors are between those that one row's sums take at a time.

        A row by itself that is merely read, and long, is read in as many parts as there are sums.
        """
        bits = max((n.buffer.dtype.bits for n in nodes_of(self.loop.body, Load)), default=8)
        is_far = part * self.lanes * bits >= FAR_APART * 8
        return part if self.is_in_order and len(rows) == 1 and is_far else 1

    def fresh(self) -> dict[ReducerUpdate, TirBuffer]:
        """Return a register for each combination, holding its identity."""
        cells = {}
        for update in self.updates:
            kind = value_type(self.wide(update))
            cell = self.ctx.cell(with_lanes(kind, self.lanes), "sum")
            identity = number(update.kind.identity(update.reducer.dtype), kind, self.lanes)
            self.ctx.run(assigned(cell, identity))
            cells[update] = cell
        return cells

    def step(
        self,
        row: dict[Var, PrimExpr],
        known: dict[Expr, PrimExpr],
        cells: dict[ReducerUpdate, TirBuffer],
        base: PrimExpr,
        valid: PrimExpr | None = None,
    ) -> TirStmt:
        """Return one vector of one row."""
        kind = str(self.var.dtype)
        if kind != "int32":
            base = tirx.Cast(prim(kind), base)
        self.ctx.vars.update(row)
        with _setting(self.ctx, known, cells):
            one: TirStmt = self.emit(
                self.ctx, self.loop.body, Lane(self.var, base, self.lanes, valid)
            )
        return one

    def finish(self, update: ReducerUpdate, cells: list[TirBuffer]) -> None:
        """Combine sums and lanes into the reducer's element."""
        from tile_cpu.math.reduce import horizontal

        ctx, wide = self.ctx, self.wide(update)
        first, *others = cells
        for other in others:
            both = loaded(other), loaded(first)
            new = combined(ctx, update.kind, *both, nan_propagate=update.nan_propagate)
            ctx.run(assigned(first, new))
        name = HORIZONTAL[update.kind]
        if wide.is_float and name in ("max", "min"):
            name += "_nan" if update.nan_propagate else "_number"
        single = horizontal(ctx.keep, loaded(first), name, lanes=self.lanes)
        result = Var("total", wide)
        ctx.vars[result] = ctx.keep(single)
        old = cast(Load(update.reducer, update.indices), wide)
        new = combine(update.kind, old, result, nan_propagate=update.nan_propagate)
        new = cast(new, update.reducer.dtype)
        ctx.run(ctx.lower_stmt(Store(update.reducer, update.indices, new)))


@contextmanager
def _setting(
    ctx: Context, known: dict[Expr, PrimExpr], cells: dict[ReducerUpdate, TirBuffer]
) -> Iterator[None]:
    before = ctx.hoisted, ctx.sums
    ctx.hoisted, ctx.sums = known, cells
    try:
        yield
    finally:
        ctx.hoisted, ctx.sums = before


def vector_update(ctx: Context, update: ReducerUpdate) -> list[TirStmt]:
    """Return the combination of one value per lane into the lanes' sums.

    Raises
    ------
    NotVectorisable
        If no register was set aside for it.
    """
    lane = ctx.lane
    cell = ctx.sums.get(update)
    if lane is None or cell is None:
        raise NotVectorisable("lanes combine into one element")
    with ctx.statement() as statements:
        wide = accumulator("wide", update.reducer.dtype).dtype
        value = ctx.value(cast(cast(update.value, update.reducer.dtype), wide))
        old = loaded(cell)
        value = spread(value, lane.lanes)
        new = combined(ctx, update.kind, value, old, nan_propagate=update.nan_propagate)
        if lane.count is not None:
            numbers = tirx.Ramp(i32(0), i32(1), lane.lanes)
            new = Select(tirx.LT(numbers, spread(lane.count, lane.lanes)), new, old)
        ctx.run(assigned(cell, new))
    return statements
