"""Hypothesis strategies: element types, shapes, expressions, well-formed small kernels.

Kernels are built so that they mean something on every backend: no element is read before it
is written, iterations do not touch each other's elements, and nothing is divided by zero.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import strategies as st

from tile_core.interp.values import Array
from tile_core.ir import build_expr
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import ceildiv
from tile_core.ir.expr import BinaryOp, Expr
from tile_core.ir.printer import print_kernel
from tile_core.ir.stmt import Kernel, Stmt
from tile_core.testing import build_ir as ir
from tile_core.testing.oracle import numbers, poison

Draw = Callable[[st.SearchStrategy[Any]], Any]

DTYPES = ("int32", "int8", "uint8", "int64", "float32", "float16", "bool", "bfloat16")
COMPUTED = ("int32", "int8", "int64", "float32")
"""Element types of generated kernels: exact, or close to it, on every backend."""

_OPS = (BinaryOp.ADD, BinaryOp.SUB, BinaryOp.MIN, BinaryOp.MAX)
_COMPARISONS = (BinaryOp.LT, BinaryOp.GE, BinaryOp.EQ, BinaryOp.NE)


def dtypes(names: Sequence[str] = DTYPES) -> st.SearchStrategy[str]:
    """Return element types by name."""
    return st.sampled_from(names)


def shapes(
    min_rank: int = 1, max_rank: int = 3, max_extent: int = 9
) -> st.SearchStrategy[tuple[int, ...]]:
    """Return small shapes; ones, primes and powers of two among them."""
    extents = st.sampled_from([n for n in (1, 2, 3, 4, 5, 7, 8, 9, 13, 16) if n <= max_extent])
    return st.lists(extents, min_size=min_rank, max_size=max_rank).map(tuple)


def expressions(leaves: Sequence[Expr], dtype: str, depth: int = 3) -> st.SearchStrategy[Expr]:
    """Return expressions of type `dtype` over `leaves`, which have that type.

    Numbers stay small: sums, differences, minima, maxima, selections, products with constants.
    """
    constants = st.integers(-3, 3).map(lambda n: ir.value(n, dtype))
    base = st.one_of(st.sampled_from(list(leaves)), constants) if leaves else constants

    def extend(inner: st.SearchStrategy[Expr]) -> st.SearchStrategy[Expr]:
        binary = st.builds(build_expr.binary, st.sampled_from(_OPS), inner, inner)
        scaled = st.builds(lambda a, n: a * n, inner, st.integers(-2, 2))
        compared = st.builds(build_expr.binary, st.sampled_from(_COMPARISONS), inner, inner)
        chosen = st.builds(build_expr.select, compared, inner, inner)
        return st.one_of(binary, scaled, chosen)

    return st.recursive(base, extend, max_leaves=2**depth).map(lambda e: build_expr.cast(e, dtype))


@dataclass(slots=True, eq=False)
class _Program:
    """A kernel under construction: its tensors, and the tiles that hold values by now."""

    draw: Draw
    dtype: str
    shape: tuple[int, int]
    tile: tuple[int, int]
    inputs: list[Buffer]
    block: tuple[Any, Any] = (0, 0)
    buffers: list[Buffer] = field(default_factory=list)
    tiles: list[Buffer] = field(default_factory=list)

    def new(self, shape: tuple[int, ...]) -> Buffer:
        """Return another scratch tile."""
        make = self.draw(st.sampled_from((ir.shared, ir.fragment)))
        buffer: Buffer = make(f"t{len(self.buffers)}", shape, self.dtype)
        self.buffers.append(buffer)
        return buffer

    def origin(self) -> tuple[Any, Any]:
        """Return where this block's tile begins in the tensors."""
        return self.block[1] * self.tile[0], self.block[0] * self.tile[1]

    def outer(self) -> Stmt:
        """Return a statement of the body: it may bring a new tile."""
        return self.load() if self.draw(st.integers(0, 3)) == 0 else self.step(2)

    def step(self, depth: int) -> Stmt:
        """Return a statement that changes tiles which have values."""
        kinds: list[Callable[[int], Stmt]] = [
            self.map_in_place,
            self.reduce_and_broadcast,
            self.accumulate,
        ]
        if depth:
            kinds += [self.loop, self.branch]
        if self.dtype != "int8":
            kinds.append(self.multiply)
        chosen: Callable[[int], Stmt] = self.draw(st.sampled_from(kinds))
        return chosen(depth)

    def load(self, depth: int = 0) -> Stmt:
        """Copy a tile from a tensor, perhaps shifted beyond its borders."""
        source = self.draw(st.sampled_from(self.inputs))
        shift = self.draw(st.tuples(st.integers(-2, 2), st.integers(-2, 2)))
        row, col = self.origin()
        tile = self.new(self.tile)
        self.tiles.append(tile)
        return ir.copy(ir.region(source, (row + shift[0], col + shift[1]), self.tile), tile)

    def map_in_place(self, depth: int = 0) -> Stmt:
        """Compute each element of a tile from the same element of the tiles."""
        target = self.draw(st.sampled_from(self.tiles))
        draw, tiles, dtype = self.draw, self.tiles, self.dtype

        def point(i: Any, j: Any) -> Stmt:
            leaves: list[Expr] = [ir.load(t, i, j) for t in tiles]
            leaves += [build_expr.cast(i - j, dtype)]
            return ir.store(target, (i, j), draw(expressions(leaves, dtype)))

        return ir.parallel(self.tile, point)

    def reduce_and_broadcast(self, depth: int = 0) -> Stmt:
        """Reduce a tile along one dimension and add the result to every row or column."""
        source = self.draw(st.sampled_from(self.tiles))
        target = self.draw(st.sampled_from(self.tiles))
        dim = self.draw(st.integers(0, 1))
        kind = self.draw(st.sampled_from(("sum", "max", "min", "absmax")))
        vector = self.new((self.tile[1 - dim],))

        def point(i: Any, j: Any) -> Stmt:
            value = ir.load(vector, i if dim else j)
            limited = build_expr.minimum(build_expr.maximum(value, -9), 9)
            return ir.store(target, (i, j), ir.load(target, i, j) + limited)

        return ir.seq(ir.reduce(kind, source, vector, dim), ir.parallel(self.tile, point))

    def accumulate(self, depth: int = 0) -> Stmt:
        """Run a serial loop inside a data-parallel one."""
        target = self.draw(st.sampled_from(self.tiles))
        trip = self.draw(st.integers(0, 3))

        def point(i: Any, j: Any) -> Stmt:
            add = build_expr.cast(i, self.dtype)
            return ir.serial(
                j % 2 + trip, lambda s: ir.store(target, (i, j), ir.load(target, i, j) + add)
            )

        return ir.parallel(self.tile, point)

    def multiply(self, depth: int = 0) -> Stmt:
        """Multiply two fresh tiles into one that has values."""
        target = self.draw(st.sampled_from(self.tiles))
        k = self.draw(st.sampled_from((1, 2, 4, 5)))
        flags = self.draw(st.tuples(st.booleans(), st.booleans()))
        a = self.new((k, self.tile[0]) if flags[0] else (self.tile[0], k))
        b = self.new((self.tile[1], k) if flags[1] else (k, self.tile[1]))
        first, second = (self.draw(st.sampled_from(self.inputs)) for _ in range(2))
        clear = self.draw(st.booleans())
        total = self.new(self.tile)

        def limited(i: Any, j: Any) -> Stmt:
            value = build_expr.minimum(build_expr.maximum(ir.load(total, i, j), -50), 50)
            return ir.store(target, (i, j), value)

        return ir.seq(
            ir.copy(ir.region(first, self.origin(), a.shape), a),
            ir.copy(ir.region(second, (0, 0), b.shape), b),
            ir.copy(target, total),
            ir.gemm(a, b, total, transpose_a=flags[0], transpose_b=flags[1], clear=clear),
            ir.parallel(self.tile, limited),
        )

    def loop(self, depth: int) -> Stmt:
        """Repeat a statement; the index takes part through a branch."""
        trip = self.draw(st.integers(0, 3))
        make = self.draw(st.sampled_from((ir.serial, ir.pipelined)))
        odd, always = self.step(depth - 1), self.step(depth - 1)
        loop: Stmt = make(trip, lambda s: [ir.when(s % 2 > 0, odd), always])
        return loop

    def branch(self, depth: int) -> Stmt:
        """Run one of two statements, by block."""
        limit = self.draw(st.integers(0, 2))
        then = self.step(depth - 1)
        otherwise = self.step(depth - 1) if self.draw(st.booleans()) else None
        return ir.when(self.block[0] + self.block[1] < limit, then, otherwise)


class Shown:
    """A kernel that failing examples show as its text (Hypothesis takes dataclasses apart)."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel

    def __repr__(self) -> str:
        return print_kernel(self.kernel)


@st.composite
def kernels(draw: Draw, dtype: str | None = None) -> Shown:
    """Return kernels of two inputs and one output, all of one shape and element type."""
    kind = dtype or draw(dtypes(COMPUTED))
    shape, tile = draw(shapes(2, 2)), draw(shapes(2, 2, 8))
    inputs = [ir.tensor("A", shape, kind), ir.tensor("B", shape, kind)]
    result = ir.tensor("R", shape, kind)
    program = _Program(draw, kind, shape, tile, inputs)

    def body(bx: Any, by: Any) -> Any:
        program.block = (bx, by)
        steps = [program.load()]
        for _ in range(draw(st.integers(1, 3))):
            steps.append(program.outer())
        row, col = program.origin()
        last = ir.copy(program.tiles[-1], ir.region(result, (row, col), tile))
        return [ir.alloc(*program.buffers), steps, last]

    grid = (ceildiv(shape[1], tile[1]), ceildiv(shape[0], tile[0]))
    return Shown(ir.kernel([*inputs, result], grid, body, threads=32, outputs=(2,)))


def arguments(kernel: Kernel, seed: int = 0) -> list[Array]:
    """Return seeded integer-valued inputs for a generated kernel, outputs poisoned."""
    rng = np.random.default_rng(seed)
    args = []
    for position, param in enumerate(kernel.params):
        assert isinstance(param, Buffer)
        extents = param.static_shape
        assert extents is not None
        if position in kernel.outputs:
            args.append(poison(extents, param.dtype))
        else:
            args.append(numbers(rng, extents, param.dtype))
    return args
