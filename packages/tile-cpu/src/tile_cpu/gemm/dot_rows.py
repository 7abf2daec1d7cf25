"""Few rows of A times a transposed B: dot products along the rows of both."""

from __future__ import annotations

from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass
from tile_cpu.gemm.instruction_kernel import MicroKernel
from tile_cpu.gemm.operands import Choice, Extent, Finish, GemmSpec, OperandA, Start, round_up
from tile_cpu.gemm.packing import emit_copy_rows
from tile_cpu.gemm.prefetch import fetch
from tile_cpu.gemm.register_tile_shape import Segment, row_segments
from tile_cpu.gemm.transpose import lane_sums
from tile_cpu.llvm_memory_access import reinterpret
from tile_cpu.tir.build import Temporaries, allocate, bind, i32, loop, scratch, seq, vload, vstore
from tile_cpu.tir.nodes import IfThenElse, PrimExpr, Select, Stmt, TirBuffer, tirx
from tile_cpu.vectors import Matrix, as_expr, ceil_div, floor_div, floor_mod, if_any, minimum, zero

# Rows of A in one pass over some rows of B.
_ROWS_PER_PASS = 4
# Rows of B with one of A where the hardware fetches them.
_UNAIDED_ROWS_AT_ONCE = 4
# Both numbers where what several passes read of B stays in the first-level cache: loads of it are
# cheap then, unless they convert, and with more rows of B those of A, which do not fit there,
# are read less often.
_NEAR_ROWS_PER_PASS, _NEAR_ROWS_AT_ONCE = 2, {32: 8, 16: 4}
# Rows of B in one pass, by vector registers and rows of A: many, for long independent
# streams from memory, but no more sums than there are registers for.
_ROWS_AT_ONCE = {32: {1: 8, 2: 8, 3: 6, 4: 6}, 16: {1: 8, 2: 6, 3: 4, 4: 2}}
# Rows of A are this many bytes apart, modulo a page.
_APART_BYTES, _PAGE_BYTES = 1024, 4096


def emit_dot_rows(
    spec: GemmSpec,
    a: Matrix,
    b: Matrix,
    extent: Extent,
    *,
    start: Start = None,
    finish: Finish,
) -> Stmt:
    """Return ``finish(start + A Bᵀ)`` for a block of few rows; `start` must not be a `Choice`.

    `a` has elements ``(i, k)``, `b` ``(j, k)``, of any type. Each sum is kept as one vector of
    partial sums over k, added up at the end. B is fetched once, several rows at a time: more rows
    of A than there are registers for take several passes over the same rows of B, or over a piece
    of them at a time, while the next ones are fetched.
    """
    kernel = spec.kernel
    columns = extent.n if extent.n_valid is None else extent.n_valid
    passes = _Passes.of(spec, extent.m, converts=b.dtype != kernel.b_dtype)
    at_once = passes.at_once
    width = round_up(extent.n, kernel.lanes) + at_once + kernel.lanes
    sums = scratch([extent.m, width], kernel.accumulator, "sums")
    partial = scratch([extent.m, at_once * kernel.lanes], kernel.accumulator, "partial")

    prepare: list[Stmt] = []
    if extent.m > passes.rows and isinstance(extent.depth, int):
        a, prepare = _spread_out(spec, a, extent)

    def some_rows(block: Any) -> Stmt:
        first = block * at_once
        ragged = extent.n_valid is not None or extent.n % at_once != 0
        keep = Temporaries()
        every = [first + r for r in range(at_once)]
        names = [keep(minimum(row, columns - 1) if ragged else row, "row") for row in every]
        rows = _Rows(kernel, a, b, extent, tuple(names), first, partial)
        return seq(keep.statements, _multiply(rows, passes), _add_up(rows, sums))

    return seq(
        allocate(sums),
        allocate(partial),
        prepare,
        loop(_blocks(extent, columns, at_once), some_rows, name="block"),
        _write_out(kernel, extent, columns, sums, start, finish),
    )


def _blocks(extent: Extent, columns: Any, at_once: int) -> Any:
    """Return how often some rows of B are multiplied; never if there is no row of A to repeat."""
    blocks = ceil_div(columns, at_once)
    if extent.m_valid is None:
        return blocks
    return Select(as_expr(extent.m_valid) > 0, as_expr(blocks), i32(0))


@dataclass(frozen=True, slots=True)
class _Passes:
    """How many rows of A are multiplied with how many of B, and how far along k."""

    rows: int  # of A in one pass
    at_once: int  # rows of B in one pass
    piece: int = 0  # steps of one vector along k until the next pass; 0 for whole rows
    fetches: bool = True  # the next rows of B

    @classmethod
    def of(cls, spec: GemmSpec, m: int, *, converts: bool) -> _Passes:
        """Return the passes over `m` rows of A; whether loads of B convert elements."""
        machine = spec.machine
        if m == 1 and machine.streams_unaided:
            return cls(1, _UNAIDED_ROWS_AT_ONCE, fetches=False)
        if m > _ROWS_PER_PASS and machine.dot_row_bytes and not converts:
            piece = machine.dot_row_bytes // machine.vector_bytes
            at_once = _NEAR_ROWS_AT_ONCE[machine.vector_registers]
            return cls(_NEAR_ROWS_PER_PASS, at_once, piece)
        rows = min(m, _ROWS_PER_PASS)
        return cls(rows, _ROWS_AT_ONCE[machine.vector_registers][rows])


def _spread_out(spec: GemmSpec, a: Matrix, extent: Extent) -> tuple[Matrix, list[Stmt]]:
    """Return a copy of A whose rows, read together, fall into different cache sets.

    Rows of tensors are often a power of two apart: with those of B they would need more
    ways than the first-level cache has.
    """
    dtype = spec.kernel.a_dtype
    size = dtype_of(dtype).bits // 8
    row = round_up(extent.k, _PAGE_BYTES // size) + _APART_BYTES // size
    held = "uint16" if dtype == "bfloat16" else dtype
    buffer = scratch([extent.m, row], held, "a_rows")
    rows = OperandA(Matrix.of(buffer, element=dtype))
    copy = emit_copy_rows(spec, a, rows, extent.m, extent.k, m_valid=extent.m_valid)
    return rows.matrix, [allocate(buffer), copy]


@dataclass(frozen=True, slots=True)
class _Rows:
    """Some rows of B, named, from column `first` of the product on."""

    kernel: MicroKernel
    a: Matrix
    b: Matrix
    extent: Extent
    names: tuple[PrimExpr, ...]
    first: Any
    partial: TirBuffer  # a vector of sums for each row of A and each of these rows

    def load_a(self, row: Any, c: Any, tail: Any) -> PrimExpr:
        """Return groups of k of one row of A; rows that do not exist repeat the last."""
        if self.extent.m_valid is not None:
            row = minimum(row, self.extent.m_valid - 1)
        return self._load(self.a, row, c, tail, self.kernel.a_dtype)

    def load_b(self, r: int, c: Any, tail: Any) -> PrimExpr:
        """Return groups of k of one row of B."""
        return self._load(self.b, self.names[r], c, tail, self.kernel.b_dtype)

    def _load(self, matrix: Matrix, row: Any, c: Any, tail: Any, dtype: str) -> PrimExpr:
        value = matrix.load_as(dtype, row, c * self.kernel.chunk, self.kernel.chunk, tail)
        return reinterpret(value, self.kernel.group_dtype, self.kernel.lanes)

    def fetch_next(self, c: Any, turn: Any, turns: int) -> list[Stmt]:
        """Fetch the share of pass `turn` of what step `c` of the next rows of B will read."""
        count = len(self.names)
        share = -(-count // turns)
        lines = [minimum(turn * share + x, count - 1) for x in range(share)]
        return [fetch(self.b, self.first + count + line, c * self.kernel.chunk) for line in lines]


@dataclass(frozen=True, slots=True)
class _Stretch:
    """`count` steps of one vector along k from step `first` on."""

    first: Any
    count: Any
    adds: bool = False  # to sums that there are; they start from zero otherwise
    is_last: PrimExpr | bool = True  # what is left of k, less than a vector, belongs to it


def _multiply(rows: _Rows, passes: _Passes) -> Stmt:
    """Return the partial sums of all rows of A, some of them at a time."""
    steps, piece = floor_div(rows.extent.depth, rows.kernel.chunk), passes.piece
    if not piece or (isinstance(steps, int) and steps <= piece):
        return _all_passes(rows, passes, _Stretch(i32(0), steps))
    count = ceil_div(steps, piece)
    if not isinstance(count, int):
        count = tirx.Max(count, i32(1))  # what is left of k belongs to the last of them
    even = isinstance(steps, int) and steps % piece == 0

    def one(p: Any) -> Stmt:
        first = p * piece
        left = piece if even else minimum(as_expr(steps) - first, piece)
        is_last = tirx.EQ(p, as_expr(count) - 1)
        return _all_passes(rows, passes, _Stretch(first, left, True, is_last))

    return seq(_clear(rows), loop(count, one, name="piece"))


def _clear(rows: _Rows) -> Stmt:
    """Return what sets all partial sums to zero."""
    lanes, cells = rows.kernel.lanes, range(len(rows.names))
    value = zero(rows.kernel.accumulator, lanes)
    at = [i32(r * lanes) for r in cells]
    return loop(rows.extent.m, lambda i: [vstore(rows.partial, [i, x], value, lanes) for x in at])


def _all_passes(rows: _Rows, passes: _Passes, stretch: _Stretch) -> Stmt:
    segments = row_segments(rows.extent.m, passes.rows)
    turns = sum(segment.count for segment in segments)

    def several(segment: Segment, before: int) -> Stmt:
        def one(t: Any) -> Stmt:
            top = t * segment.size + segment.start
            turn = (before + t, turns) if passes.fetches else None
            return _pass(rows, stretch, top, segment.size, turn)

        return loop(segment.count, one, name="t")

    statements, done = [], 0
    for segment in segments:
        statements.append(several(segment, done))
        done += segment.count
    return seq(statements)


def _pass(rows: _Rows, stretch: _Stretch, top: Any, m: int, turn: tuple[Any, int] | None) -> Stmt:
    """Return the partial sums of `m` rows of A, from `top` on, with each of these rows of B.

    `turn` is which pass this is, and out of how many, if they share the fetches between them.
    """
    kernel, count = rows.kernel, len(rows.names)
    lanes, chunk, depth = kernel.lanes, kernel.chunk, rows.extent.depth
    acc = scratch([m * count * lanes], kernel.accumulator, "acc")
    cells = [(i, r) for i in range(m) for r in range(count)]

    def cell(i: int, r: int) -> list[PrimExpr]:
        return [i32((i * count + r) * lanes)]

    def step(c: Any, tail: Any = None) -> list[Stmt]:
        statements: list[Stmt] = []
        if turn is not None and tail is None:
            statements += rows.fetch_next(c, *turn)
        left = []
        for i in range(m):
            var, bound = bind("a", rows.load_a(top + i, c, tail))
            statements.append(bound)
            left.append(var)
        for r in range(count):
            var, bound = bind("b", rows.load_b(r, c, tail))
            statements.append(bound)
            for i in range(m):
                total = kernel.accumulate(vload(acc, cell(i, r), lanes), left[i], var)
                statements.append(vstore(acc, cell(i, r), total, lanes))
        return statements

    def place(i: int, r: int) -> list[PrimExpr]:
        return [as_expr(top + i), i32(r * lanes)]

    def begun(i: int, r: int) -> Stmt:
        empty = zero(kernel.accumulator, lanes)
        value = vload(rows.partial, place(i, r), lanes) if stretch.adds else empty
        return vstore(acc, cell(i, r), value, lanes)

    def kept(i: int, r: int) -> Stmt:
        return vstore(rows.partial, place(i, r), vload(acc, cell(i, r), lanes), lanes)

    whole, rest = floor_div(depth, chunk), floor_mod(depth, chunk)
    last = if_any(rest, lambda: step(as_expr(whole), as_expr(rest)))
    if last is not None and stretch.is_last is not True:
        last = IfThenElse(stretch.is_last, last, None)
    return seq(
        allocate(acc, on_stack=True),
        [begun(i, r) for i, r in cells],
        loop(stretch.count, lambda c: step(stretch.first + c), name="c"),
        last,
        [kept(i, r) for i, r in cells],
    )


def _add_up(rows: _Rows, sums: TirBuffer) -> Stmt:
    """Return the sums over the lanes of the partial sums, as rows of `sums`."""
    lanes, count = rows.kernel.lanes, len(rows.names)

    def row(i: Any) -> list[Stmt]:
        keep, statements = Temporaries(), []
        for first in range(0, count, lanes):
            last = min(first + lanes, count)
            cells = [[as_expr(i), i32(r * lanes)] for r in range(first, last)]
            vectors = [keep(vload(rows.partial, cell, lanes)) for cell in cells]
            total, width = lane_sums(keep, vectors, lanes)
            at = [as_expr(i), rows.first + first]
            # Lanes beyond `count` are overwritten by the sums of the next rows.
            statements.append(vstore(sums, at, total, width))
        return [*keep.statements, *statements]

    return loop(rows.extent.m, row)


def _write_out(
    kernel: MicroKernel,
    extent: Extent,
    columns: Any,
    sums: TirBuffer,
    start: Start,
    finish: Finish,
) -> Stmt:
    lanes = kernel.lanes

    def one(i: Any, j: Any, count: Any, how: Finish) -> Stmt:
        if isinstance(how, Choice):
            then, other = (one(i, j, count, finish) for finish in how.finishes())
            return IfThenElse(how.condition, then, other)
        value = vload(sums, [i, as_expr(j)], lanes)
        if callable(start):
            value = value + start(i, j, lanes, count)
        return how(i, j, value, lanes, count)

    def row(i: Any) -> Stmt:
        whole, rest = floor_div(columns, lanes), floor_mod(columns, lanes)
        tail = if_any(rest, lambda: one(i, whole * lanes, rest, finish))
        return seq(loop(whole, lambda j: one(i, j * lanes, None, finish), name="j"), tail)

    return loop(extent.m if extent.m_valid is None else extent.m_valid, row)
