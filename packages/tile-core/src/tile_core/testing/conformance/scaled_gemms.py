"""Products of narrow floats whose groups along K have scales: formats, transposes, odd extents."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.interp.values import Array
from tile_core.ir.buffer import whole
from tile_core.ir.build_expr import as_expr, ceildiv
from tile_core.ir.stmt import Kernel
from tile_core.records import replace
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical
from tile_core.testing.oracle import numbers, pack, poison

Shape = tuple[int, int, int]
POWER, FRACTION = "float8_e8m0fnu", "float8_e4m3fn"
FORMATS = (
    ("float8_e4m3fn", "float8_e4m3fn", POWER, 32), ("float8_e5m2", "float8_e4m3fn", POWER, 32),
    ("float6_e2m3fn", "float6_e3m2fn", POWER, 32), ("float8_e4m3fn", "float8_e5m2", POWER, 128),
    ("float4_e2m1fn", "float4_e2m1fn", POWER, 32), ("float4_e2m1fn", "float4_e2m1fn", FRACTION, 16),
)  # fmt: skip
"""Both factors, scales, and how many neighbours along K share one."""
BESIDE = (100, 120, 192)
"""Less than a block of 128 rows and columns."""


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for types in FORMATS:
        yield _Tiled(*types, (64, 32, 256), (32, 16, 128)).case()
    yield _Tiled(*FORMATS[0], (19, 13, 192), (16, 16, 64), (True, False)).case()
    yield _Tiled(*FORMATS[0], (64, 64, 96), (64, 64, 32)).case()
    yield _Tiled(*FORMATS[5], (33, 17, 320), (16, 16, 64)).case()
    for types, shape in ((FORMATS[0], (128,) * 3), (FORMATS[4], (128,) * 3), (FORMATS[5], BESIDE)):
        yield _Tiled(*types, shape, (128, 128, 64), threads=128).case()


def _turned(shape: tuple[Any, Any], is_turned: bool) -> tuple[Any, Any]:
    return (shape[1], shape[0]) if is_turned else shape


@dataclass(frozen=True, slots=True)
class _Tiled:
    """A product in tiles, pipelined; blocks and the last iteration may overhang.

    Scales of rows of A and of columns of B are by rows, those of all of K in one tile.
    """

    a: str
    b: str
    scales: str
    group: int
    shape: Shape
    tile: Shape
    turns: tuple[bool, bool] = (False, True)
    threads: int = 64

    def case(self) -> Case:
        """Return the case."""
        letters = "".join("T" if turn else "N" for turn in self.turns)
        name = f"{self.scales}-{self.group}-{letters}-{label(self.shape)}"
        return Case(
            f"gemm/scaled/{self.a}-{self.b}/{name}", self.kernel, self.inputs, self.expected
        )

    def shapes(self) -> tuple[tuple[int, int], ...]:
        """Return the shapes of both factors, and of their scales."""
        (m, n, k), (turn_a, turn_b) = self.shape, self.turns
        groups = k // self.group
        return _turned((m, k), turn_a), _turned((k, n), turn_b), (m, groups), (n, groups)

    def kernel(self) -> Kernel:
        """Return the kernel."""
        (m, n, k), (tm, tn, tk) = self.shape, self.tile
        types = (self.a, self.b, self.scales, self.scales)
        a, b, p, q = map(ir.tensor, "ABPQ", self.shapes(), types)
        c, acc = ir.tensor("C", (m, n), "float32"), ir.fragment("acc", (tm, tn), "float32")
        turn_a, turn_b = self.turns
        held = -(-k // tk) * tk // self.group  # with those behind the end, which are zeros
        left = ir.shared("left", _turned((tm, tk), turn_a), self.a)
        right = ir.shared("right", _turned((tk, tn), turn_b), self.b)
        rows = ir.shared("rows", (tm, held), self.scales)
        columns = ir.shared("columns", (tn, held), self.scales)

        def part(source: Any, tile: Any, at: tuple[Any, Any], is_turned: bool = False) -> Any:
            return ir.copy(ir.region(source, _turned(at, is_turned), tile.shape), tile)

        def product(ko: Any) -> Any:
            plain = ir.gemm(left, right, acc, transpose_a=turn_a, transpose_b=turn_b)
            return replace(
                plain, scale_a=whole(rows), scale_b=whole(columns), group_a=self.group,
                group_b=self.group, first_k=as_expr(ko) * tk,
            )  # fmt: skip

        def body(bx: Any, by: Any) -> Any:
            return [
                ir.alloc(acc, left, right, rows, columns), ir.fill(acc, 0),
                part(p, rows, (by * tm, 0)), part(q, columns, (bx * tn, 0)),
                ir.pipelined(ceildiv(k, tk), lambda ko: [
                    part(a, left, (by * tm, ko * tk), turn_a),
                    part(b, right, (ko * tk, bx * tn), turn_b),
                    product(ko),
                ]),
                ir.copy(acc, ir.region(c, (by * tm, bx * tn), (tm, tn))),
            ]  # fmt: skip

        grid = (ceildiv(n, tn), ceildiv(m, tm))
        return ir.kernel([a, b, p, q, c], grid, body, threads=self.threads)

    def inputs(self, rng: np.random.Generator) -> list[Array]:
        """Return small integers, scales, and a poisoned result."""
        a, b, p, q = self.shapes()
        scales = [_scales(rng, shape, self.scales) for shape in (p, q)]
        factors = [numbers(rng, a, self.a), numbers(rng, b, self.b)]
        return [*factors, *scales, poison(self.shape[:2], "float32")]

    def expected(self, a: Array, b: Array, p: Array, q: Array, c: Array) -> dict[int, Array]:
        """Return the exact product."""
        shapes, (turn_a, turn_b) = self.shapes(), self.turns
        left, right = logical(a, self.a, shapes[0]), logical(b, self.b, shapes[1])
        left, right = (left.T if turn_a else left), (right if turn_b else right.T)
        wide = [
            x.astype(np.float64)
            * logical(s, self.scales).astype(np.float64).repeat(self.group, axis=1)
            for x, s in ((left, p), (right, q))
        ]
        return {4: wide[0] @ wide[1].T}


def _scales(rng: np.random.Generator, shape: tuple[int, int], kind: str) -> Array:
    """Return scales whose products with small integers, and sums of these, are exact."""
    few = [0.25, 0.5, 1, 2, 4] if kind == POWER else [0.25, 0.75, 1, 1.5, 3.5]
    return pack(rng.choice(few, shape), dtype_of(kind))
