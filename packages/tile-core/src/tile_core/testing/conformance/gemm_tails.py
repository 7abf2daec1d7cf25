"""Products in loops whose operands hang over their tensors: there, all of a tile counts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.interp.values import Array
from tile_core.ir.build_expr import ceildiv
from tile_core.ir.stmt import Kernel
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, logical
from tile_core.testing.oracle import numbers, poison


@dataclass(frozen=True, slots=True)
class Overhang:
    """A product ``P[batch, row block, column block] = A B`` that keeps whole tiles."""

    # factor, total: element types of A and B, and of the sums.
    factor: str = "float32"
    total: str = "float32"
    # transpose_a, transpose_b: whether they are stored the other way round.
    transpose_a: bool = False
    transpose_b: bool = False
    dynamic: bool = False  # whether all extents are symbols
    extents: tuple[int, int, int] = (19, 33, 20)  # M, N and K of the tensors
    block: tuple[int, int, int] = (16, 32, 16)  # those of a tile
    # How many blocks of rows and of columns there are; some may lie outside as a whole.
    blocks: tuple[int, int] = (3, 2)
    offset: int = 0  # added to the first row and the first column of each block
    # How many products there are; A and B have two. 0 is one product of plain matrices.
    batches: int = 0
    doubled: bool = False  # whether tiles of A are doubled in place before they are multiplied

    @property
    def name(self) -> str:
        """The case's name."""
        letters = "".join("T" if flag else "N" for flag in (self.transpose_a, self.transpose_b))
        more = "-dynamic" * self.dynamic + f"-{self.batches}-batches" * (self.batches > 0)
        more += "-doubled" * self.doubled
        sizes = "x".join(map(str, (*self.extents, "block", self.block[0], "from", self.offset)))
        return f"gemm/overhang/{self.factor}-{self.total}/{letters}{more}-{sizes}"

    def kernel(self) -> Kernel:
        """Return the product; its loop holds two copies and a gemm, as users write it."""
        m, n, k = (ir.symbol(x) for x in "mnk") if self.dynamic else self.extents
        bm, bn, bk = self.block
        lead = (2,) if self.batches else ()
        a = ir.tensor("A", (*lead, *self._turned(m, k, self.transpose_a)), self.factor)
        b = ir.tensor("B", (*lead, *self._turned(k, n, self.transpose_b)), self.factor)
        p = ir.tensor("P", self._kept(), self.total)
        sa = ir.shared("sa", self._turned(bm, bk, self.transpose_a), self.factor)
        sb = ir.shared("sb", self._turned(bk, bn, self.transpose_b), self.factor)
        acc = ir.fragment("acc", (bm, bn), self.total)

        def body(bx: Any, by: Any, bz: Any) -> Any:
            batch = (bz,) if self.batches else ()
            row, column = by * bm + self.offset, bx * bn + self.offset

            def double() -> Any:
                return ir.parallel(
                    sa.shape, lambda i, j: ir.store(sa, (i, j), ir.load(sa, i, j) * 2)
                )

            def step(ko: Any) -> Any:
                from_a = (*batch, *self._turned(row, ko * bk, self.transpose_a))
                from_b = (*batch, *self._turned(ko * bk, column, self.transpose_b))
                ones = (1,) * len(batch)
                return [
                    ir.copy(ir.region(a, from_a, (*ones, *sa.shape)), sa),
                    ir.copy(ir.region(b, from_b, (*ones, *sb.shape)), sb),
                    double() if self.doubled else None,
                    ir.gemm(
                        sa, sb, acc, transpose_a=self.transpose_a, transpose_b=self.transpose_b
                    ),
                ]

            return [
                ir.alloc(sa, sb, acc),
                ir.fill(acc, 0),
                ir.pipelined(ceildiv(k, bk), step),
                ir.copy(acc, ir.region(p, (bz, by, bx, 0, 0), (1, 1, 1, bm, bn))),
            ]

        grid = (self.blocks[1], self.blocks[0], max(1, self.batches))
        return ir.kernel([a, b, p], grid, body, threads=64)

    def _kept(self) -> tuple[int, ...]:
        return (max(1, self.batches), *self.blocks, *self.block[:2])

    def _turned(self, rows: Any, columns: Any, flag: bool) -> tuple[Any, Any]:
        return (columns, rows) if flag else (rows, columns)

    def inputs(self, rng: np.random.Generator) -> list[Array]:
        """Return the arguments."""
        m, n, k = self.extents
        lead = (2,) if self.batches else ()
        shape_a = (*lead, *self._turned(m, k, self.transpose_a))
        shape_b = (*lead, *self._turned(k, n, self.transpose_b))
        return [
            numbers(rng, shape_a, self.factor),
            numbers(rng, shape_b, self.factor),
            poison(self._kept(), self.total),
        ]

    def expected(self, a: Array, b: Array, p: Array) -> dict[int, Array]:
        """Return the product of A and B with zeros around them."""
        x, y = logical(a, self.factor), logical(b, self.factor)
        x = np.swapaxes(x, -1, -2) if self.transpose_a else x
        y = np.swapaxes(y, -1, -2) if self.transpose_b else y
        x, y = (v if self.batches else v[None] for v in (x, y))
        wide = np.float64 if x.dtype.kind == "f" else np.int64
        product = x.astype(wide) @ y.astype(wide) * (2 if self.doubled else 1)
        (down, across), (bm, bn, _), o = self.blocks, self.block, self.offset
        around = np.zeros((max(1, self.batches), down * bm + o, across * bn + o), wide)
        batches, m, n = (min(s) for s in zip(around.shape, product.shape, strict=True))
        around[:batches, :m, :n] = product[:batches, :m, :n]
        tiles = around[:, o:, o:].reshape(-1, down, bm, across, bn)
        return {2: tiles.swapaxes(2, 3)}

    def case(self) -> Case:
        """Return the case."""
        return Case(self.name, self.kernel, self.inputs, self.expected)


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    yield Overhang().case()
    yield Overhang(offset=5, dynamic=True, transpose_b=True).case()
    yield Overhang("float16", "float32", transpose_a=True).case()
    yield Overhang("int8", "int32", dynamic=True).case()
    yield Overhang(batches=3, doubled=True).case()
