"""One register tile: accumulators that live in registers over the whole k loop."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from tile_core.dtypes import dtype_of
from tile_core.records import dataclass, replace
from tile_cpu.gemm.instruction_kernel import MicroKernel, MultiplyStep
from tile_cpu.gemm.operands import Choice, DirectB, Finish, OperandA, OperandB, PackingB, Start
from tile_cpu.gemm.prefetch import fetch
from tile_cpu.tir.build import (
    Temporaries,
    allocate,
    bind,
    i32,
    loop,
    scratch,
    seq,
    splat,
    vload,
    vstore,
)
from tile_cpu.tir.nodes import BufferLoad, IfThenElse, PrimExpr, Stmt
from tile_cpu.vectors import as_expr, minimum, zero

LONG_VECTOR_BITS = 512
"""Of vectors whose halves some machines multiply at twice the rate."""


class _Accumulators:
    """`mr` x `nv` vectors on the stack, every index a constant, so LLVM keeps registers.

    `kernels` are those of the vectors of a row: the last one may have fewer lanes.
    """

    def __init__(self, kernels: Sequence[MicroKernel], mr: int) -> None:
        self.kernels, self.mr, self.nv = kernels, mr, len(kernels)
        self.row = sum(kernel.lanes for kernel in kernels)
        self.buffer = scratch([mr * self.row], kernels[0].accumulator, "acc")

    def cells(self) -> Iterator[tuple[int, int]]:
        return ((i, v) for i in range(self.mr) for v in range(self.nv))

    def load(self, i: int, v: int) -> PrimExpr:
        return vload(self.buffer, [self._at(i, v)], self.kernels[v].lanes)

    def store(self, i: int, v: int, value: PrimExpr) -> Stmt:
        return vstore(self.buffer, [self._at(i, v)], value, self.kernels[v].lanes)

    def _at(self, i: int, v: int) -> PrimExpr:
        return i32(i * self.row + v * self.kernels[0].lanes)


@dataclass(frozen=True, slots=True)
class RegisterTiledGemm:
    """What every register tile of a block has in common."""

    kernel: MicroKernel
    a: OperandA
    b: OperandB
    groups: Any  # trip count of the k loop: groups of `MicroKernel.group` elements
    start: Start
    finish: Finish

    def multiply(self, acc: _Accumulators, rows: list[Any], vector: Any, counts: list[Any]) -> Stmt:
        """Return the k loop over `rows` and the vectors from `vector` on."""
        kernel = self.kernel

        def step(q: Any) -> list[Stmt]:
            names, binds = [], []
            for v, count in enumerate(counts):
                # One level of `Bind` only: TVM substitutes bound values into each other.
                own = acc.kernels[v]
                at = (vector + v) * (kernel.lanes // own.lanes)
                name, bound = bind("b", self.b.load(own, q, at, count))
                names.append(name)
                binds.append(bound)
                if isinstance(self.b, PackingB):
                    binds.append(self.b.keep(kernel, q, vector + v, name))
            fetches = _fetch_below(kernel, self.b, q, vector, len(counts))
            return [*fetches, *binds, *_products(acc, self.a, q, rows, names)]

        return seq(_compensate(kernel, acc, self.a, rows), loop(self.groups, step, name="k"))


def emit_tile(
    product: RegisterTiledGemm,
    *,
    rows: tuple[Any, int],
    vectors: tuple[Any, int],
    tail: int | None = None,
) -> Stmt:
    """Multiply a whole register tile: nothing in it is guarded.

    `rows` and `vectors` of columns are each the first one and their number. Of the last vector
    `tail` lanes exist, known now; None means all.
    """
    kernel, (row, mr), (vector, nv) = product.kernel, rows, vectors
    last = _of_tail(product, tail)
    acc = _Accumulators([*[kernel] * (nv - 1), last], mr)
    counts = [tail if v == nv - 1 and tail != last.lanes else None for v in range(nv)]
    column = [(vector + v) * kernel.lanes for v in range(nv)]

    def begin(how: Start) -> Stmt:
        if isinstance(how, Choice):
            return IfThenElse(how.condition, *map(begin, how.starts()))
        cells = []
        for i, v in acc.cells():
            lanes = acc.kernels[v].lanes
            if how is None:
                value = zero(kernel.accumulator, lanes)
            else:
                value = how(row + i, column[v], lanes, counts[v])
            cells.append(acc.store(i, v, value))
        return seq(cells)

    def end(how: Finish) -> Stmt:
        if isinstance(how, Choice):
            return IfThenElse(how.condition, *map(end, how.finishes()))
        stores = [
            how(row + i, column[v], acc.load(i, v), acc.kernels[v].lanes, counts[v])
            for i, v in acc.cells()
        ]
        return seq(stores)

    return seq(
        allocate(acc.buffer, on_stack=True),
        begin(product.start),
        product.multiply(acc, [row + i for i in range(mr)], vector, counts),
        end(product.finish),
    )


def _of_tail(product: RegisterTiledGemm, tail: int | None) -> MicroKernel:
    """Return the kernel of a register tile's last vector, of which `tail` lanes exist.

    Half of a long vector takes half of its time, if B is not in panels of whole ones.
    """
    kernel, half = product.kernel, product.kernel.lanes // 2
    is_long = half * dtype_of(kernel.accumulator).bits == LONG_VECTOR_BITS // 2
    is_direct = isinstance(product.b, DirectB) and kernel.step is MultiplyStep.FMA
    if tail is None or tail > half or not (is_long and is_direct):
        return kernel
    return replace(kernel, lanes=half)


def emit_edge_tile(
    product: RegisterTiledGemm, *, row: Any, mr: int, vector: Any, limits: tuple[Any, Any]
) -> Stmt:
    """Multiply a register tile, one vector wide, that may stick out of the block.

    `limits` are the rows and columns of the block that exist.
    Rows that do not exist read the last row that does and are not stored. Loads and stores
    of C go through a small buffer row by row, so this is little code; the k loop runs at
    the speed of a whole tile of one vector.
    """
    kernel, lanes = product.kernel, product.kernel.lanes
    acc = _Accumulators([kernel], mr)
    edge = scratch([mr, lanes], kernel.accumulator, "edge")
    column = vector * lanes
    count = minimum(limits[1] - column, lanes)
    present = minimum(limits[0] - row, mr)
    keep, last = Temporaries(), as_expr(limits[0]) - i32(1)
    rows = [keep(minimum(row + i, last), "row") for i in range(mr)]

    def begin(how: Start) -> Stmt:
        if isinstance(how, Choice):
            return IfThenElse(how.condition, *map(begin, how.starts()))
        if how is None:
            return seq([acc.store(i, v, zero(kernel.accumulator, lanes)) for i, v in acc.cells()])
        fill = loop(
            present,
            lambda i: vstore(edge, [i, i32(0)], how(row + i, column, lanes, count), lanes),
        )
        return seq(fill, [acc.store(i, 0, vload(edge, [i32(i), i32(0)], lanes)) for i in range(mr)])

    def end(how: Finish) -> Stmt:
        if isinstance(how, Choice):
            return IfThenElse(how.condition, *map(end, how.finishes()))
        return loop(
            present,
            lambda i: how(row + i, column, vload(edge, [i, i32(0)], lanes), lanes, count),
        )

    return seq(
        keep.statements,
        allocate(acc.buffer, on_stack=True),
        allocate(edge, on_stack=True),
        begin(product.start),
        product.multiply(acc, rows, vector, [count]),
        [vstore(edge, [i32(i), i32(0)], acc.load(i, 0), lanes) for i in range(mr)],
        end(product.finish),
    )


def _fetch_below(kernel: MicroKernel, b: OperandB, q: Any, vector: Any, nv: int) -> list[Stmt]:
    """Fetch `nv` vectors of the row that is read when the block gets there.

    One line for each that is read keeps memory evenly busy; many at once are dropped.
    """
    if not isinstance(b, DirectB) or (isinstance(b.ahead, int) and b.ahead == 0):
        return []
    return [fetch(b.matrix, q + b.ahead, (vector + v) * kernel.lanes) for v in range(nv)]


def _products(acc: _Accumulators, a: OperandA, q: Any, rows: list[Any], b: list[Any]) -> list[Stmt]:
    statements: list[Stmt] = []
    for i, row in enumerate(rows):
        names: dict[int, Any] = {}  # by lanes
        for v, vector in enumerate(b):
            kernel = acc.kernels[v]
            if kernel.lanes not in names:
                spread = splat(a.group(kernel, row, q), kernel.lanes)
                names[kernel.lanes], bound = bind("a", spread)
                statements.append(bound)
            total = kernel.accumulate(acc.load(i, v), names[kernel.lanes], vector)
            statements.append(acc.store(i, v, total))
    return statements


def _compensate(
    kernel: MicroKernel, acc: _Accumulators, a: OperandA, rows: list[Any]
) -> list[Stmt]:
    if a.sums is None:
        return []
    statements: list[Stmt] = []
    for i, v in acc.cells():
        correction = splat(BufferLoad(a.sums, [as_expr(rows[i])]), kernel.lanes)
        statements.append(acc.store(i, v, acc.load(i, v) - correction))
    return statements
