"""Few rows of A times a transposed B: dot products along the rows of both."""

from __future__ import annotations

from typing import Any

from tile_core.tir.build import (
    Temporaries,
    allocate,
    i32,
    loop,
    scratch,
    seq,
    shuffle,
    vload,
    vstore,
)
from tile_core.tir.nodes import Bind, BufferStore, IfThenElse, PrimExpr, Stmt, TirBuffer, Var
from tile_cpu.gemm.kernel import MicroKernel
from tile_cpu.gemm.operands import Choice, Extent, Finish, GemmSpec, Start, round_up
from tile_cpu.vectors import (
    Matrix,
    as_expr,
    ceil_div,
    floor_div,
    floor_mod,
    minimum,
    opaque,
    reinterpret,
    zero,
)

# Rows of B multiplied at once, by rows of A: enough independent sums, few enough registers.
_ROWS_AT_ONCE = {1: 8, 2: 6, 3: 4, 4: 3}


def emit_dot_rows(
    spec: GemmSpec,
    a: Matrix,
    b: Matrix,
    extent: Extent,
    *,
    start: Start = None,
    finish: Finish,
) -> Stmt:
    """Return ``finish(start + A Bᵀ)`` for a block of at most four rows.

    Parameters
    ----------
    a
        ``(i, k)`` elements of any type.
    b
        ``(j, k)`` elements of any type; read once, front to back, several rows at a time.
    extent, start, finish
        As in `emit_tile_gemm`; `start` must not be a `Choice`.

    Notes
    -----
    Each sum is kept as one vector of partial sums over k, added up at the end.
    """
    kernel = spec.kernel
    columns = extent.n if extent.n_valid is None else extent.n_valid
    at_once = _ROWS_AT_ONCE.get(extent.m, 2)
    width = round_up(round_up(extent.n, kernel.lanes), at_once)
    sums = scratch([extent.m, width], kernel.accumulator, "sums")

    def some_rows(block: Any) -> Stmt:
        first = block * at_once
        ragged = extent.n_valid is not None or extent.n % at_once != 0
        names: list[PrimExpr] = []
        binds: list[Stmt] = []
        for r in range(at_once):
            row = minimum(first + r, columns - 1) if ragged else first + r
            name, named = opaque("row", row)
            names.append(name)
            binds += named
        return seq(binds, _dots(kernel, a, b, extent, names, sums, first))

    return seq(
        allocate(sums),
        loop(ceil_div(columns, at_once), some_rows, name="block"),
        _write_out(kernel, extent, columns, sums, start, finish),
    )


def _dots(
    kernel: MicroKernel,
    a: Matrix,
    b: Matrix,
    extent: Extent,
    rows: list[Any],
    sums: TirBuffer,
    first: Any,
) -> Stmt:
    m, count, lanes, chunk = extent.m, len(rows), kernel.lanes, kernel.chunk
    acc = scratch([m * count * lanes], kernel.accumulator, "acc")

    def cell(i: int, r: int) -> list[PrimExpr]:
        return [i32((i * count + r) * lanes)]

    cells = [(i, r) for i in range(m) for r in range(count)]

    def load(matrix: Matrix, row: Any, c: Any, tail: Any, dtype: str) -> PrimExpr:
        value = matrix.load_as(dtype, row, c * chunk, chunk, tail)
        return reinterpret(kernel.group_dtype, lanes, value)

    def step(c: Any, tail: Any = None) -> list[Stmt]:
        statements: list[Stmt] = []
        left = []
        for i in range(m):
            row = i if extent.m_valid is None else minimum(i, extent.m_valid - 1)
            value = load(a, row, c, tail, kernel.a_dtype)
            var = Var("a", value.ty)
            statements.append(Bind(var, value))
            left.append(var)
        for r, row in enumerate(rows):
            value = load(b, row, c, tail, kernel.b_dtype)
            var = Var("b", value.ty)
            statements.append(Bind(var, value))
            for i in range(m):
                total = kernel.accumulate(vload(acc, cell(i, r), lanes), left[i], var)
                statements.append(vstore(acc, cell(i, r), total, lanes))
        return statements

    depth = extent.depth
    whole = floor_div(depth, chunk)
    rest = floor_mod(depth, chunk)
    tail = None
    if not isinstance(rest, int):
        tail = IfThenElse(rest > 0, seq(step(whole, rest)), None)
    elif rest:
        tail = seq(step(i32(whole), rest))
    reduced = []
    for i, r in cells:
        keep = Temporaries()
        total = _horizontal_sum(keep, vload(acc, cell(i, r), lanes), lanes)
        reduced.append(seq(keep.statements, BufferStore(sums, total, [i32(i), first + r])))
    return seq(
        allocate(acc, on_stack=True),
        [vstore(acc, cell(i, r), zero(kernel.accumulator, lanes), lanes) for i, r in cells],
        loop(whole, step, name="c"),
        tail,
        reduced,
    )


def _horizontal_sum(keep: Temporaries, value: PrimExpr, lanes: int) -> PrimExpr:
    while lanes > 1:
        half = lanes // 2
        value = keep(value)
        value = keep(shuffle([value], range(half)) + shuffle([value], range(half, lanes)))
        lanes = half
    return value


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
        tail = None
        if not isinstance(rest, int):
            tail = IfThenElse(rest > 0, one(i, whole * lanes, rest, finish), None)
        elif rest:
            tail = one(i, whole * lanes, rest, finish)
        return seq(loop(whole, lambda j: one(i, j * lanes, None, finish), name="j"), tail)

    return loop(extent.m if extent.m_valid is None else extent.m_valid, row)
