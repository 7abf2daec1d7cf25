"""Loops, branches, variables, launches, views, atomics, threads."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tile_core.interp.values import Array
from tile_core.ir import build_expr
from tile_core.ir.buffer import whole
from tile_core.ir.expr import BinaryOp, Ramp
from tile_core.ir.stmt import Break, Continue, Kernel
from tile_core.ops.atomic import AtomicKind, AtomicTile
from tile_core.ops.control import Barrier
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, seeded_case
from tile_core.testing.oracle import poison


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    yield from (_loops(), _while(), _branches(), _lets(), _scalars(), _fills())
    yield from (_two_launches(), _three_dimensional_grid(), _empty_loops(), _vectors())
    yield from (_view(), _reshape(), _nibbles())
    for dtype in ("int32", "uint32", "int64", "float32", "float64", "float16"):
        yield from (_atomic("add", dtype), _atomic("max", dtype), _atomic_tile(dtype))
    yield from (_atomic_returns(), _threads(), _block_sum(), _thread_private())


def _is(a: Any, b: Any) -> Any:
    return build_expr.binary(BinaryOp.EQ, a, b)


def _loops() -> Case:
    """`break`, `continue`, steps of either sign."""

    def build() -> Kernel:
        out = ir.tensor("O", (12,), "int32")
        steps = [
            ir.fill(out, 0),
            ir.serial(12, lambda i: [
                ir.when(_is(i % 3, 1), Continue()),
                ir.when(i > 8, Break()),
                ir.store(out, i, i + 10),
            ]),
            ir.serial(2, lambda i: ir.store(out, i, ir.load(out, i) - i), start=11, step=-4),
        ]  # fmt: skip
        return ir.kernel([out], 1, lambda bx: steps, threads=64)

    def expected(out: Array) -> dict[int, Array]:
        out[:] = 0
        for i in range(9):
            out[i] = 0 if i % 3 == 1 else i + 10
        for i in range(11, 2, -4):
            out[i] -= i
        return {0: out}

    return seeded_case("control/loops/int32/12", build, expected)


def _while() -> Case:
    """Count the steps of a famous iteration."""

    def build() -> Kernel:
        out = ir.tensor("O", (9,), "int32")
        x, n = ir.variable("x", "int32"), ir.variable("n", "int32")

        def body(bx: Any) -> Any:
            odd = ir.seq(ir.store(x, 0, ir.load(x, 0) * 3 + 1))
            even = ir.seq(ir.store(x, 0, ir.load(x, 0) // 2))
            return [
                ir.alloc(x, n), ir.store(x, 0, bx + 1), ir.store(n, 0, 0),
                ir.loop_while(
                    ir.load(x, 0) > 1,
                    ir.when(_is(ir.load(x, 0) % 2, 1), odd, even),
                    ir.store(n, 0, ir.load(n, 0) + 1),
                ),
                ir.store(out, bx, ir.load(n, 0)),
            ]  # fmt: skip

        return ir.kernel([out], 9, body, threads=64)

    wanted = np.array([0, 1, 7, 2, 5, 8, 16, 3, 19])
    return seeded_case("control/while/int32/9", build, lambda o: {0: wanted})


def _branches() -> Case:
    """Tile operators in branches that depend on the block, and on data."""

    def build() -> Kernel:
        a, b, t = ir.tensor("A", (4, 8)), ir.tensor("B", (4, 8)), ir.shared("t", (8,))

        def body(bx: Any) -> Any:
            row = (bx, 0)
            return [
                ir.alloc(t),
                ir.when(_is(bx % 2, 0), ir.copy(ir.region(a, row, (1, 8)), t), ir.fill(t, 7)),
                ir.when(
                    ir.load(a, bx, 0) > 0.0,
                    ir.parallel((8,), lambda i: ir.when(i < 4, ir.store(t, i, 1.0))),
                ),
                ir.copy(t, ir.region(b, row, (1, 8))),
            ]

        return ir.kernel([a, b], 4, body, threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        for k in range(4):
            b[k] = 7 if k % 2 else a[k]
            if a[k, 0] > 0:
                b[k, :4] = 1
        return {1: b}

    return seeded_case("control/branches/float32/4x8", build, expected)


def _lets() -> Case:
    """Name a value and store to its source afterwards: the name keeps the value."""

    def build() -> Kernel:
        out, v = ir.tensor("O", (2,), "int32"), ir.variable("v", "int32")

        def body(bx: Any) -> Any:
            def named(before: Any) -> Any:
                return [
                    ir.store(v, 0, 20), ir.store(out, 0, before), ir.store(out, 1, ir.load(v, 0))
                ]  # fmt: skip

            return [ir.alloc(v), ir.store(v, 0, 10), ir.let("before", ir.load(v, 0) + 1, named)]

        return ir.kernel([out], 1, body, threads=64)

    return seeded_case("control/let/int32/2", build, lambda o: {0: np.array([11, 20])})


def _scalars() -> Case:
    def build() -> Kernel:
        n, s, out = ir.symbol("n"), ir.symbol("s", "float32"), ir.tensor("O", (8,))

        def point(i: Any) -> Any:
            return ir.store(out, i, build_expr.select(i < n, s * 2.0, -1.0))

        return ir.kernel([n, s, out], 1, lambda bx: ir.parallel((8,), point), threads=64)

    return Case(
        "control/scalars/float32/8",
        build,
        lambda rng: [5, 1.5, poison((8,), "float32")],
        lambda n, s, o: {2: np.where(np.arange(8) < 5, 3.0, -1.0)},
    )


def _fills() -> Case:
    """Regions with bounds known at run time; parts beyond a global tensor are skipped."""

    def build() -> Kernel:
        n, out, t = ir.symbol("n"), ir.tensor("O", (6, 6), "int32"), ir.shared("t", (6, 6), "int32")
        steps = [
            ir.alloc(t), ir.fill(t, 1), ir.fill(ir.region(t, (0, n), (n, 2)), 2),
            ir.copy(t, out), ir.fill(ir.region(out, (4, n), (5, 9)), 3),
        ]  # fmt: skip
        return ir.kernel([n, out], 1, lambda bx: steps, threads=64)

    def expected(n: int, out: Array) -> dict[int, Array]:
        out[:] = 1
        out[:3, 3:5] = 2
        out[4:, 3:] = 3
        return {1: out}

    return Case("control/fill/int32/6x6", build, lambda rng: [3, poison((6, 6), "int32")], expected)


def _two_launches() -> Case:
    def build() -> Kernel:
        a, b = ir.tensor("A", (6,), "int32"), ir.tensor("B", (6,), "int32")
        first = ir.launch(6, lambda bx: ir.store(b, bx, ir.load(a, bx) * 2))
        second = ir.launch(3, lambda bx: ir.store(b, bx, ir.load(b, bx) + ir.load(b, 5 - bx)))
        return Kernel("two", (a, b), ir.seq(first, second))

    def expected(a: Array, b: Array) -> dict[int, Array]:
        b[:] = 2 * a
        b[:3] += b[:2:-1]
        return {1: b}

    return seeded_case("control/launches/int32/6", build, expected)


def _three_dimensional_grid() -> Case:
    def build() -> Kernel:
        out = ir.tensor("O", (2, 3, 5), "int32")
        body = lambda x, y, z: ir.store(out, (z, y, x), x + 10 * y + 100 * z)  # noqa: E731
        return ir.kernel([out], (5, 3, 2), body, threads=64)

    def expected(out: Array) -> dict[int, Array]:
        z, y, x = np.indices((2, 3, 5))
        return {0: x + 10 * y + 100 * z}

    return seeded_case("control/grid/int32/2x3x5", build, expected)


def _empty_loops() -> Case:
    """Loops without iterations, data-parallel ones included."""

    def build() -> Kernel:
        n, out = ir.symbol("n"), ir.tensor("O", (3,), "int32")
        steps = [
            ir.fill(out, 5),
            ir.serial(n, lambda s: ir.store(out, 0, 1)),
            ir.pipelined(n, lambda s: ir.store(out, 1, 1)),
            ir.parallel((n, 2), lambda i, j: ir.store(out, 2, 1)),
            ir.loop_while(n > 0, ir.store(out, 0, 2)),
        ]
        return ir.kernel([n, out], 1, lambda bx: steps, threads=64)

    return Case(
        "control/empty/int32/3",
        build,
        lambda rng: [0, poison((3,), "int32")],
        lambda n, o: {1: np.full(3, 5)},
    )


def _vectors() -> Case:
    def build() -> Kernel:
        a, b = ir.tensor("A", (16,)), ir.tensor("B", (16,))

        def at(start: Any) -> Ramp:
            return Ramp(build_expr.as_expr(start), ir.value(1), 4)

        def body(bx: Any) -> Any:
            return ir.serial(4, lambda s: ir.store(b, at(s * 4), ir.load(a, at(12 - s * 4)) * 2.0))

        return ir.kernel([a, b], 1, body, threads=64)

    return seeded_case(
        "control/vectors/float32/16", build, lambda a, b: {1: 2 * a.reshape(4, 4)[::-1].ravel()}
    )


def _view() -> Case:
    """View a float tile as integers; the tile sees a store through the view."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (4, 4)), ir.tensor("B", (4, 4))
        c, t = ir.tensor("C", (4, 8), "int16"), ir.shared("t", (4, 4))
        words = ir.view(t, (4, 8), "int16")
        steps = [
            ir.alloc(t), ir.copy(a, t), ir.store(words, (1, 3), 0x4000),
            ir.copy(words, c), ir.copy(t, b),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    def expected(a: Array, b: Array, c: Array) -> dict[int, Array]:
        a.view(np.int16)[1, 3] = 0x4000
        return {1: a, 2: a.view(np.int16)}

    return seeded_case("view/dtype/float32-int16/4x4", build, expected, outputs=2)


def _reshape() -> Case:
    def build() -> Kernel:
        a, b = ir.tensor("A", (6, 4), "int32"), ir.tensor("B", (8, 3), "int32")
        t, f = ir.shared("t", (6, 4), "int32"), ir.fragment("f", (8, 3), "int32")
        other = ir.view(t, (8, 3))
        steps = [ir.alloc(t, f), ir.copy(a, t), ir.copy(other, f), ir.copy(f, b)]
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    return seeded_case("view/shape/int32/6x4", build, lambda a, b: {1: a.reshape(8, 3)})


def _nibbles() -> Case:
    """Unpack four-bit numbers from bytes by hand."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (5, 6), "uint8"), ir.tensor("B", (5, 12), "int8")

        def point(i: Any, j: Any) -> Any:
            byte = build_expr.cast(ir.load(a, i, j // 2), "int32")
            nibble = (byte >> (j % 2 * 4)) & 15
            return ir.store(b, (i, j), nibble - 8)

        return ir.kernel([a, b], 1, lambda bx: ir.parallel((5, 12), point), threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        both = np.stack([a & 15, a >> 4], axis=-1).reshape(5, 12)
        return {1: both.astype(np.int32) - 8}

    return seeded_case("view/nibbles/uint8/5x6", build, expected, low=0, high=256)


def _atomic(kind: str, dtype: str) -> Case:
    """Blocks and iterations meet in a few elements."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (4, 30), dtype), ir.tensor("B", (5,), dtype)

        def point(bx: Any) -> Any:
            return ir.parallel((30,), lambda i: ir.evaluate(
                ir.call_atomic(kind, b, (i % 6,), ir.load(a, bx, i))
            ))  # fmt: skip

        return ir.kernel([a, b], 4, point, threads=32)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        columns = a.reshape(4, 5, 6).astype(np.float64)[:, :, :5]
        if kind == "add":
            return {1: b.astype(np.float64) + columns.sum((0, 1))}
        return {1: np.maximum(b, columns.max((0, 1)))}

    return seeded_case(f"atomic/{kind}/{dtype}/4x30", build, expected, outputs=0, low=0, high=9)


def _atomic_tile(dtype: str) -> Case:
    def build() -> Kernel:
        a, b = ir.tensor("A", (3, 4, 6), dtype), ir.tensor("B", (3, 6), dtype)
        t = ir.shared("t", (4, 6), dtype)

        def body(bx: Any) -> Any:
            return [
                ir.alloc(t),
                ir.copy(ir.region(a, (bx, 0, 0), (1, 4, 6)), t),
                AtomicTile(AtomicKind.ADD, whole(t), ir.region(b, (0, 0), (4, 6))),
            ]

        return ir.kernel([a, b], 3, body, threads=32)

    return seeded_case(
        f"atomic/tile/{dtype}/4x6", build, lambda a, b: {1: b + a.sum(0)[:3]}, outputs=0
    )


def _atomic_returns() -> Case:
    """Hand out the previous values of a counter, each once."""

    def build() -> Kernel:
        count, seen = ir.tensor("N", (1,), "int32"), ir.tensor("S", (20,), "int32")

        def body(bx: Any) -> Any:
            ticket = ir.call_atomic("add", count, (0,), 1)
            return ir.let("t", ticket, lambda t: ir.store(seen, t, 1))

        return ir.kernel([count, seen], 20, body, threads=1)

    return Case(
        "atomic/ticket/int32/20",
        build,
        lambda rng: [np.zeros(1, np.int32), np.zeros(20, np.int32)],
        lambda n, s: {0: np.array([20]), 1: np.ones(20)},
    )


def _threads() -> Case:
    """Explicit threads in three dimensions, each writing its own element."""

    def build() -> Kernel:
        out = ir.tensor("O", (2, 2, 3, 8), "int32")

        def body(bx: Any, tx: Any, ty: Any, tz: Any) -> Any:
            return ir.store(out, (bx, tz, ty, tx), bx * 1000 + tz * 100 + ty * 10 + tx)

        return ir.kernel([out], 2, body, threads=(8, 3, 2), thread_indices=True)

    def expected(out: Array) -> dict[int, Array]:
        b, z, y, x = np.indices((2, 2, 3, 8))
        return {0: b * 1000 + z * 100 + y * 10 + x}

    return seeded_case("threads/indices/int32/8x3x2", build, expected)


def _block_sum() -> Case:
    """Reduce as a tree through shared memory, with barriers."""

    def build() -> Kernel:
        a, b, s = ir.tensor("A", (3, 64)), ir.tensor("B", (3,)), ir.shared("s", (64,))

        def body(bx: Any, tx: Any, ty: Any, tz: Any) -> Any:
            def iteration(k: Any) -> Any:
                half = build_expr.binary(BinaryOp.SHR, ir.value(32), k)
                add = ir.store(s, tx, ir.load(s, tx) + ir.load(s, tx + half))
                return [ir.when(tx < half, add), Barrier()]

            return [
                ir.alloc(s), ir.store(s, tx, ir.load(a, bx, tx)), Barrier(),
                ir.serial(6, iteration),
                ir.when(_is(tx, 0), ir.store(b, bx, ir.load(s, 0))),
            ]  # fmt: skip

        return ir.kernel([a, b], 3, body, threads=64, thread_indices=True)

    return seeded_case("threads/block-sum/float32/64", build, lambda a, b: {1: a.sum(1)})


def _thread_private() -> Case:
    """Arrays and variables of single threads keep their values across a barrier."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (48, 3), "int32"), ir.tensor("B", (48,), "int32")
        mine, n = ir.local("mine", (3,), "int32"), ir.variable("n", "int32")

        def body(bx: Any, tx: Any, ty: Any, tz: Any) -> Any:
            return [
                ir.alloc(mine, n),
                ir.store(n, 0, tx),
                ir.serial(3, lambda s: ir.store(mine, s, ir.load(a, tx, s))),
                Barrier(),
                ir.serial(3, lambda s: ir.store(n, 0, ir.load(n, 0) * 2 + ir.load(mine, s))),
                ir.store(b, tx, ir.load(n, 0)),
            ]

        return ir.kernel([a, b], 1, body, threads=48, thread_indices=True)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        return {1: np.arange(48) * 8 + a[:, 0] * 4 + a[:, 1] * 2 + a[:, 2]}

    return seeded_case("threads/private/int32/48", build, expected)
