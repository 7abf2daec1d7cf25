"""Matrix products in which each thread owns a rectangle of C, interleaved with the others."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

from tile_core.dtypes import DType
from tile_core.ir.buffer import Buffer, Region, Scope
from tile_core.ir.build_expr import as_expr, binary, cast, const, select
from tile_core.ir.expr import BinaryOp, Const, Expr, Load
from tile_core.ir.stmt import Alloc, If, Stmt, Store
from tile_core.layout import Fragment
from tile_core.ops.gemm import Gemm
from tile_core.ops.loop_builders import accumulator
from tile_core.records import dataclass
from tile_core.simt.context import SimtContext
from tile_core.simt.expr_builders import at, do, looped, seq, unrolled
from tile_core.simt.lower_accesses import lower_expr
from tile_core.simt.subbyte_access import storage_dtype

_VECTORS = (4, 2, 1)
"""Neighbouring columns that one thread may own, most first."""

_DEPTH = 4
"""Steps along K that are loaded together."""


@dataclass(frozen=True, slots=True)
class BlockTiling:
    """How threads share C without matrix instructions.

    Threads form a grid. Thread ``(r, c)`` has the rows ``r, r + rows, ...`` and, in groups of
    `vector` neighbours, the columns whose group is ``c, c + columns, ...``: neighbouring
    threads read neighbouring elements, and each element that is loaded is used several times.

    `shape` is M and N; a thread has `vector` neighbouring columns.
    """

    shape: tuple[int, int]
    rows: int
    columns: int
    vector: int

    @property
    def threads(self) -> int:
        """Threads that take part."""
        return self.rows * self.columns

    @property
    def share(self) -> tuple[int, int]:
        """Rows and columns of C that each thread has."""
        return self.shape[0] // self.rows, self.shape[1] // self.columns


def block_tiling(op: Gemm, threads: int) -> BlockTiling:
    """Return the grid that uses most threads; among those, the one nearest to squares.

    Extents are divided exactly, so that a prime number of rows is shared by that many
    threads, or by one. Columns are grouped where they are neighbours in memory.

    With policy FullRow threads divide rows the same way, however many columns there are: what
    products of the same rows leave there is in the same threads. Unless rows are so few that most
    threads would be idle.
    """
    m, n, _ = op.mnk
    vectors = (1,) if op.transpose_b else _VECTORS
    found = [
        BlockTiling((m, n), rows, columns, vector)
        for vector in vectors
        if n % vector == 0
        for rows in _divisors(m)
        for columns in _divisors(n // vector)
        if rows * columns <= threads
    ]
    if op.policy.is_full_row():
        same = [t for t in found if t.columns == _side_by_side(m, threads)]
        if 2 * max((t.threads for t in same), default=0) >= max(t.threads for t in found):
            found = same
    return min(found, key=lambda t: (-t.threads, sum(t.share), -t.vector))


def _side_by_side(m: int, threads: int) -> int:
    """Return how many threads have the same rows of `m`: few, so that most widths divide by it."""

    def used(columns: int) -> int:
        return columns * max(k for k in _divisors(m) if k == 1 or k * columns <= threads)

    return max((8, 4, 2), key=used)


def _divisors(number: int) -> list[int]:
    return [k for k in range(1, number + 1) if number % k == 0]


@lru_cache(maxsize=64)
def block_fragment(tiling: BlockTiling) -> Fragment:
    """Return who holds which element of C: shape (M, N), each element once."""
    rows, columns, v = tiling.rows, tiling.columns, tiling.vector
    share = tiling.share[1]
    return Fragment(
        tiling.shape,
        lambda i, j: (
            i % rows * columns + j // v % columns,
            i // rows * share + j // (columns * v) * v + j % v,
        ),
    )


@dataclass(frozen=True, slots=True)
class _Operand:
    """One operand, in pieces of `depth` steps that a thread keeps in registers.

    Parameters
    ----------
    region
        Where it is.
    is_k_last
        Whether neighbours along K are neighbours in memory.
    count
        Rows (of A) or columns (of B) that the thread needs.
    group
        How many of these are neighbours in memory.
    place
        The row or column that is number `x` of the thread's.
    registers
        Where the piece goes.
    k_inner
        Whether neighbours along K are neighbours in registers.
    """

    region: Region
    is_k_last: bool
    count: int
    group: int
    place: Callable[[Expr], Expr]
    registers: Buffer
    depth: int
    k_inner: bool

    def offset(self, x: Expr, kk: Expr) -> Expr:
        """Return the register of step `kk` of row or column `x`."""
        return x * self.depth + kk if self.k_inner else kk * self.count + x

    def indices(self, x: Expr, k: Expr) -> tuple[Expr, ...]:
        """Return the indices in the buffer of an element."""
        row, column = (self.place(x), k) if self.is_k_last else (k, self.place(x))
        *lead, first, second = map(as_expr, self.region.starts)
        return (*lead, first + row, second + column)


def lower_blocks(op: Gemm, tiling: BlockTiling, ctx: SimtContext) -> Stmt:
    """Return the product as one thread computes its rectangle.

    Before   gemm A_shared, B_shared, C_local
    After    for k in steps of 4: a <- A[rows, k...];  b <- B[k..., columns]
             for kk, i, j: C_local[i, j] += a[i, kk] * b[kk, j]
    """
    depth = math.gcd(op.mnk[2], _DEPTH)
    total = accumulator("total", op.c.buffer.dtype).dtype
    quads = depth == 4 and _multiplies_quads(op, ctx)
    a, b = _operands(op, tiling, depth, quads, total, ctx)
    own = ctx.places.flat(op.c.buffer)
    is_wide = total != own.dtype
    count = a.count * b.count
    accumulators = ctx.registers("sums", count, str(total)) if is_wide else own

    def product(kk: Expr, i: Expr, j: Expr) -> Stmt:
        at_accumulator = i * b.count + j
        places = ((a, a.offset(i, kk)), (b, b.offset(j, kk)))
        if quads:
            return do(
                "dp4a",
                at(accumulators, at_accumulator),
                *(at(f.registers, o, "r") for f, o in places),
            )
        left, right = (cast(Load(f.registers, (o,)), total) for f, o in places)
        return Store(
            accumulators, (at_accumulator,), Load(accumulators, (at_accumulator,)) + left * right
        )

    def step(k: Expr) -> Stmt:
        products = unrolled(ctx, "kk", 1 if quads else depth, lambda kk: unrolled(
            ctx, "i", a.count, lambda i: unrolled(
                ctx, "j", b.count, lambda j: product(kk, i, j))))  # fmt: skip
        return seq(_load(a, k * depth, ctx), _load(b, k * depth, ctx), products)

    body = seq(
        Alloc(a.registers),
        Alloc(b.registers),
        Alloc(accumulators) if is_wide else None,
        _begin(op, own, accumulators, count, ctx),
        looped(ctx, "k", op.mnk[2] // depth, step),
        unrolled(ctx, "i", count, lambda i: _end(own, accumulators, i)) if is_wide else None,
    )
    if tiling.threads == ctx.threads:
        return body
    return If(binary(BinaryOp.LT, ctx.thread, tiling.threads), body)


def _begin(
    op: Gemm, own: Buffer, accumulators: Buffer, count: int, ctx: SimtContext
) -> Stmt | None:
    """Return what gives all accumulators their first values."""
    if isinstance(op.clear, Const) and not op.clear.value and own is accumulators:
        return None

    def one(i: Expr) -> Stmt:
        before = cast(Load(own, (i,)), accumulators.dtype)
        value = select(lower_expr(op.clear, ctx), const(0, accumulators.dtype), before)
        return Store(accumulators, (i,), value)

    return unrolled(ctx, "i", count, one)


def _end(own: Buffer, accumulators: Buffer, i: Expr) -> Stmt:
    return Store(own, (i,), cast(Load(accumulators, (i,)), own.dtype))


def _multiplies_quads(op: Gemm, ctx: SimtContext) -> bool:
    """Whether four products of bytes are one instruction."""
    a, b, c = (str(r.buffer.dtype) for r in (op.a, op.b, op.c))
    sums_quads = ctx.machine.has("dp4a") or ctx.machine.has("dot4")
    return sums_quads and a == b and a in ("int8", "uint8") and c == "int32"


def _operands(
    op: Gemm, tiling: BlockTiling, depth: int, quads: bool, total: DType, ctx: SimtContext
) -> tuple[_Operand, _Operand]:
    rows, columns = tiling.share
    row, column = ctx.thread // tiling.columns, ctx.thread % tiling.columns
    v = tiling.vector

    def column_of(x: Expr) -> Expr:
        return column * v + x // v * (tiling.columns * v) + x % v

    def registers(name_hint: str, region: Region, count: int) -> Buffer:
        dtype = region.buffer.dtype
        kept = total if dtype.bits < 8 else storage_dtype(dtype, Scope.SHARED)
        return ctx.registers(name_hint, count * depth, str(kept))

    a = _Operand(
        op.a, not op.transpose_a, rows, 1, lambda x: row + x * tiling.rows,
        registers("a", op.a, rows), depth, quads or not op.transpose_a,
    )  # fmt: skip
    b = _Operand(
        op.b, op.transpose_b, columns, v, column_of,
        registers("b", op.b, columns), depth, quads or op.transpose_b,
    )  # fmt: skip
    return a, b


def _load(operand: _Operand, k: Expr, ctx: SimtContext) -> Stmt:
    """Return the loads of the next piece, from step `k` on, in vectors where that is possible."""
    run = operand.depth if operand.is_k_last else operand.group
    width = _width(operand, run, ctx) if operand.k_inner == operand.is_k_last else 1
    x_step, k_step = (1, width) if operand.is_k_last else (width, 1)

    def one(x: Expr, kk: Expr) -> Stmt:
        x, kk = x * x_step, kk * k_step
        indices, target = operand.indices(x, k + kk), operand.offset(x, kk)
        if width > 1:
            source = ctx.address(operand.region.buffer, *indices, access="r")
            return do("load", width, at(operand.registers, target, "w"), source)
        value: Expr = Load(operand.region.buffer, indices)
        return Store(
            operand.registers, (target,), lower_expr(cast(value, operand.registers.dtype), ctx)
        )

    return unrolled(
        ctx, "x", operand.count // x_step,
        lambda x: unrolled(ctx, "kk", operand.depth // k_step, lambda kk: one(x, kk)),
    )  # fmt: skip


def _width(operand: _Operand, run: int, ctx: SimtContext) -> int:
    """Return how many of `run` neighbours one access can take."""
    buffer = operand.region.buffer
    if storage_dtype(buffer.dtype, buffer.scope) != operand.registers.dtype:
        return 1
    limit = ctx.machine.vector_bytes * 8 // operand.registers.dtype.bits
    limit = min(limit, ctx.layout_of(buffer).vector_width(-1, limit))
    start = ctx.env.multiple_of(operand.region.starts[-1])
    width = 1
    while 2 * width <= limit and run % (2 * width) == 0 and start % (2 * width) == 0:
        width *= 2
    return width
