"""Passes over rows as statements again: a loop over groups of rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tile_core.arith.affine import linear_in
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.build_expr import binary, cast, const
from tile_core.ir.expr import BinaryOp, Call, Expr, Load, Var
from tile_core.ir.node import N, Node, rewrite, substitute, walk
from tile_core.ir.stmt import Alloc, For, Hint, Parallel, Seq, Stmt, Store
from tile_core.ops.reduce import combine
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_cpu.passes.row_dependence import is_at
from tile_cpu.passes.row_passes import RowPass, Total

PREFETCH_NEXT_ITERATION = "prefetch_next_iteration"
"""Hint in a data-parallel loop: fetch meanwhile what its loads of global tensors read in the
next round of the sequential loop around it. The value is the cache level to fetch into."""

READ_IN_ORDER = "read_in_order"
"""Hint in a data-parallel loop: nothing else fetches what its loads of global tensors read. The
machine fetches ahead by itself where they follow the order of memory, one row after another."""

GROUP_BYTES = 8192
"""Elements of one tile in a group of rows: a few such tiles fit into a first-level cache."""

GROUP_ROWS = 16
"""Rows of a group at most: enough to fill a vector with one result per row."""

FETCH_LEVEL = 2
"""The cache the next group is fetched into. The first level has too few outstanding misses for
a stream of them: what the group at hand reads would wait behind (twice as slow in layer norm)."""


def row_loop(passes: Sequence[RowPass], row: Var, rows: int, dead: set[Buffer]) -> list[Stmt]:
    """Return allocations and the loop that runs `passes` on one group of rows after another.

    Buffers with nothing in them before and after a row's passes, the `dead`, shrink to the rows of
    a group.
    """
    if not passes:  # nothing reads what they would have written
        return []
    group = _group_rows(passes, rows)
    number = Var("g", row.dtype)
    first = const(0, row.dtype) if rows == 1 else binary(BinaryOp.MUL, number, group)
    touched = dict.fromkeys(b for one in passes for b, _ in one.touched())
    small = {
        b: replace(b, shape=(group, *b.shape[1:]))
        for b in touched
        if b in dead and _is_shrinkable(b, passes, row)
    }
    writer = _Writer(row, first, group, small)
    fetching = _fetching_pass(passes, number, row)
    body: list[Stmt] = []
    for position, one in enumerate(passes):
        hints = []
        if position == fetching:
            hints.append(Hint(PREFETCH_NEXT_ITERATION, (FETCH_LEVEL,)))
        elif fetching is None and _only_reads(one):
            hints.append(Hint(READ_IN_ORDER, ()))
        body += writer.statements(one, hints)
    if rows > 1:
        zero, one_ = const(0, row.dtype), const(1, row.dtype)
        body = [For(number, zero, const(rows // group, row.dtype), one_, Seq(tuple(body)))]
    return [*(Alloc(b) for b in (*small.values(), *writer.tiles)), *body]


def _group_rows(passes: Sequence[RowPass], rows: int) -> int:
    """Return how many rows to run together: a divisor of `rows`, small tiles in more rows."""
    widest = max(
        one.columns * max((b.dtype.bits for b, _ in one.touched()), default=8) // 8
        for one in passes
    )
    group = GROUP_ROWS
    while group > 1 and (rows % group or group * widest > GROUP_BYTES):
        group //= 2
    return group


def _is_shrinkable(buffer: Buffer, passes: Sequence[RowPass], row: Var) -> bool:
    return buffer.static_shape is not None and all(
        is_at(indices[0], row)
        for one in passes
        for touched, indices in one.touched()
        if touched is buffer
    )


def _fetching_pass(passes: Sequence[RowPass], number: Var, row: Var) -> int | None:
    """Return the position of the pass to fetch the next rows in, None if there is none.

    It reads a row that an earlier pass has read, so it does not wait for memory itself; of
    several, the one that computes most.
    """
    seen: set[Buffer] = set()
    best: tuple[int, int] | None = None
    for position, one in enumerate(passes):
        sources = {
            n.buffer
            for n in one.loads()
            if n.buffer.scope.is_global and any(_follows(i, row) for i in n.indices)
        }
        if one.column is not None and sources & seen:
            calls = sum(isinstance(n, Call) for e in one.expressions() for n in walk(e))
            if best is None or calls > best[0]:
                best = calls, position
        seen |= sources
    return None if best is None else best[1]


def _only_reads(one: RowPass) -> bool:
    """Whether a pass does nothing but combine elements of global tensors."""
    reads = [*one.loads()]
    return not one.body and bool(reads) and all(n.buffer.scope.is_global for n in reads)


def _follows(index: Expr, row: Var) -> bool:
    moves = linear_in(index, row)
    return moves is not None and moves[0] != 0


class _Writer:
    """Writes passes over the rows ``first + i`` of a group."""

    def __init__(self, row: Var, first: Expr, group: int, small: dict[Buffer, Buffer]) -> None:
        self.row, self.first, self.group, self.small = row, first, group, small
        self.tiles: list[Buffer] = []  # made for results

    def statements(self, one: RowPass, hints: Sequence[Hint]) -> list[Stmt]:
        """Return the statements of one pass."""
        at = Var("i", self.row.dtype)
        body: list[Stmt] = [*hints, *(self.placed(stmt, at) for stmt in one.body)]
        before: list[Stmt] = []
        after: list[Stmt] = []
        for total in one.totals:
            reducer = Buffer(
                f"{total.dst.name}_total", (self.group,), total.value.dtype, Scope.REDUCER
            )
            self.tiles.append(reducer)
            before.append(ReducerInit(reducer, total.kind))
            value = self.placed(total.value, at)
            body.append(ReducerUpdate(reducer, total.kind, (at,), value, total.nan_propagate))
            after += self.finish(total, reducer)
        loop = self.over_rows(at, one.column, one.columns, body)
        return [*before, loop, *after]

    def over_rows(
        self, at: Var, column: Var | None, columns: int, body: Sequence[Stmt]
    ) -> Parallel:
        """Return the loop over the elements of a group."""
        inner = body[0] if len(body) == 1 else Seq(tuple(body))
        rows = const(self.group, at.dtype)
        if column is None:
            return Parallel((at,), (rows,), inner)
        return Parallel((at, column), (rows, const(columns, column.dtype)), inner)

    def finish(self, total: Total, reducer: Buffer) -> list[Stmt]:
        """Return what brings the results of a group to where they belong."""
        done = Buffer(f"{reducer.name}s", (self.group,), reducer.dtype, Scope.FRAGMENT)
        self.tiles.append(done)
        at = Var("i", self.row.dtype)
        value: Expr = Load(done, (at,))
        if not total.clear:
            old = Load(total.dst, total.indices)
            value = combine(
                total.kind,
                value,
                cast(self.placed(old, at), value.dtype),
                nan_propagate=total.nan_propagate,
            )
        stored = Store(total.dst, total.indices, const(0, total.dst.dtype))
        stored = replace(self.placed(stored, at), value=cast(value, total.dst.dtype))
        return [
            ReducerFinalize(reducer, total.kind, whole(done)),
            self.over_rows(at, None, 1, [stored]),
        ]

    def placed(self, node: N, at: Var) -> N:
        """Return `node` for row `at` of the group, with shrunk tiles in place of whole ones."""

        def rule(inner: Node) -> Node:
            if isinstance(inner, (Load, Store)) and inner.buffer in self.small:
                indices = (at, *inner.indices[1:])
                return replace(inner, buffer=self.small[inner.buffer], indices=indices)
            return inner

        node = rewrite(node, rule)
        return substitute(node, {self.row: binary(BinaryOp.ADD, self.first, at)})
