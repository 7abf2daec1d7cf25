"""Conditional values whose loads exist only where their condition holds."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tile_core.interp.values import Array
from tile_core.ir import build_expr
from tile_core.ir.stmt import Kernel
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, logical, seeded_case
from tile_core.testing.oracle import numbers, poison

ROWS, BLOCKS, WIDTH, LENGTH = 3, 3, 24, 62
"""Blocks of columns are so wide, and rows so long that the last block exists in part."""

ELSEWHERE = 7
"""The value where no element is read."""

# Of (place in the row, place in the block, length of a row): conditions, and what is read.
Place = Callable[[Any, Any, Any], Any]
_TAIL: tuple[Place, Place] = (lambda x, j, n: [x < n], lambda x, j, n: x)
_CHOICES: tuple[tuple[str, Place, Place], ...] = (
    ("tail", *_TAIL),
    ("head", lambda x, j, n: [x >= 15], lambda x, j, n: x - 15),
    ("window", lambda x, j, n: [x >= 5, x < n + 5], lambda x, j, n: x - 5),
    ("strided", lambda x, j, n: [2 * x < n], lambda x, j, n: 2 * x),
    ("reversed", lambda x, j, n: [x < n], lambda x, j, n: n - 1 - x),
    ("one-element", lambda x, j, n: [x + x < n], lambda x, j, n: x - j),
    ("last-element", lambda x, j, n: [x > 99], lambda x, j, n: n + j),
)


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for name, holds, at in _CHOICES:
        yield _choice(name, holds, at, "float32")
    yield _choice("window", *_CHOICES[2][1:], "float32", dynamic=True)
    for dtype in ("int8", "float16", "bfloat16", "int64"):
        yield _choice("tail", *_TAIL, dtype)
    for dtype in ("uint8", "float64"):
        yield _choice("strided", *_CHOICES[3][1:], dtype)
    yield from (_table(), _nested(), _maximum())


def _choice(name: str, holds: Place, at: Place, dtype: str, *, dynamic: bool = False) -> Case:
    """Read ``X[i, at(…)]`` where `holds`; elsewhere nothing, not even beside X."""

    def build() -> Kernel:
        n = ir.symbol("n") if dynamic else LENGTH
        x = ir.tensor("X", (ROWS, n), dtype)
        out = ir.tensor("O", (ROWS, BLOCKS * WIDTH), dtype)

        def body(bx: Any) -> Any:
            def point(i: Any, j: Any) -> Any:
                column = bx * WIDTH + j
                condition = build_expr.all_of(holds(column, j, n))
                element = ir.load(x, i, at(column, j, n))
                elsewhere = ir.value(ELSEWHERE, dtype)
                return ir.store(out, (i, column), build_expr.select(condition, element, elsewhere))

            return ir.parallel((ROWS, WIDTH), point)

        return ir.kernel([x, out], BLOCKS, body, threads=32)

    def expected(x: Array, out: Array) -> dict[int, Array]:
        values = logical(x, dtype, (ROWS, LENGTH))
        wanted = np.full((ROWS, BLOCKS * WIDTH), ELSEWHERE).astype(values.dtype)
        for column in range(BLOCKS * WIDTH):
            place = (column, column % WIDTH, LENGTH)
            if all(holds(*place)):
                wanted[:, column] = values[:, at(*place)]
        return {1: wanted}

    return Case(
        f"choice/{name}/{dtype}{'/dynamic' * dynamic}",
        build,
        lambda rng: [
            numbers(rng, (ROWS, LENGTH), dtype), poison((ROWS, BLOCKS * WIDTH), dtype)
        ],
        expected,
    )  # fmt: skip


def _table() -> Case:
    """Gather through a table that ends where the condition does."""
    rows, length = 3, 13

    def build() -> Kernel:
        x, table = ir.tensor("X", (rows, 9)), ir.tensor("T", (length,), "int32")
        out = ir.tensor("O", (rows, WIDTH))

        def point(i: Any, j: Any) -> Any:
            element = ir.load(x, i, ir.load(table, j))
            return ir.store(out, (i, j), build_expr.select(j < length, element, float(ELSEWHERE)))

        return ir.kernel(
            [x, table, out], 1, lambda bx: ir.parallel((rows, WIDTH), point), threads=32
        )

    def expected(x: Array, table: Array, out: Array) -> dict[int, Array]:
        wanted = np.full((rows, WIDTH), ELSEWHERE, np.float32)
        wanted[:, :length] = x[:, table]
        return {2: wanted}

    return Case(
        "choice/table/float32",
        build,
        lambda rng: [
            numbers(rng, (rows, 9), "float32"),
            rng.integers(0, 9, length).astype(np.int32),
            poison((rows, WIDTH), "float32"),
        ],
        expected,
    )


def _nested() -> Case:
    """Read one of two tensors where one of two conditions holds, on the side of `otherwise`."""
    length, pad = 13, 5

    def build() -> Kernel:
        a, b, out = ir.tensor("A", (length,)), ir.tensor("B", (length,)), ir.tensor("O", (WIDTH,))

        def point(j: Any) -> Any:
            inner = build_expr.select(j < length + pad, ir.load(a, j - pad), float(ELSEWHERE))
            value = build_expr.select(j < pad, ir.load(b, j + 8), inner)
            return ir.store(out, j, build_expr.select(j >= length + pad, float(ELSEWHERE), value))

        return ir.kernel([a, b, out], 1, lambda bx: ir.parallel((WIDTH,), point), threads=32)

    def expected(a: Array, b: Array, out: Array) -> dict[int, Array]:
        around = np.full(WIDTH - length - pad, ELSEWHERE, np.float32)
        return {2: np.concatenate([b[8 : 8 + pad], a, around])}

    return seeded_case("choice/nested/float32", build, expected)


def _maximum() -> Case:
    """Take maxima of rows in tiles, the last of which hangs over them."""

    def build() -> Kernel:
        x, out = ir.tensor("X", (4, LENGTH)), ir.tensor("O", (4,))
        tile, best = ir.fragment("t", (2, WIDTH)), ir.fragment("m", (2,))

        def body(bx: Any) -> Any:
            def step(s: Any) -> Any:
                def point(i: Any, j: Any) -> Any:
                    column = s * WIDTH + j
                    element = ir.load(x, bx * 2 + i, column)
                    return ir.store(
                        tile, (i, j), build_expr.select(column < LENGTH, element, -99.0)
                    )

                loop = ir.parallel((2, WIDTH), point)
                return [loop, ir.reduce("max", tile, best, 1, clear=False)]

            return [
                ir.alloc(tile, best),
                ir.fill(best, -100),
                ir.serial(BLOCKS, step),
                ir.copy(best, ir.region(out, (bx * 2,), (2,))),
            ]

        return ir.kernel([x, out], 2, body, threads=32)

    return seeded_case("choice/maximum/float32", build, lambda x, out: {1: x.max(1)})
