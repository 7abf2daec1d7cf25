"""Reducers: every iteration counts once, whichever threads run it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.interp.values import Array
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.stmt import Kernel
from tile_core.ops.reduce import ReduceKind
from tile_core.ops.reducer import ReducerFinalize, ReducerInit, ReducerUpdate
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical, seeded_case

SHAPES = ((1,), (3,), (8,), (100,), (2, 3), (4, 8), (3, 64))
"""Of fragments: those with fewer elements than a block has threads are held more than once."""


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    yield from (_reducer("sum"), _reducer("max"), _reducer("max", "int4"), _reducer_without_init())
    for shape in SHAPES:
        for scope in ("fragment", "shared"):
            yield _of_tile(shape, scope, keeps_rows=False)
            if len(shape) == 2:
                yield _of_tile(shape, scope, keeps_rows=True)


def _of_tile(shape: tuple[int, ...], scope: str, *, keeps_rows: bool) -> Case:
    """Count an element that several threads hold once, and the start value once."""
    kept = shape[:1] if keeps_rows else (1,)

    def build() -> Kernel:
        a, b = ir.tensor("A", shape, "int32"), ir.tensor("B", kept, "int32")
        tile = (ir.fragment if scope == "fragment" else ir.shared)("tile", shape, "int32")
        acc = Buffer("acc", kept, dtype_of("int32"), Scope.REDUCER)
        out = ir.fragment("out", kept, "int32")

        def update(*index: Any) -> ReducerUpdate:
            at = (index[0],) if keeps_rows else (ir.value(0),)
            return ReducerUpdate(acc, ReduceKind.SUM, at, ir.load(tile, *index))

        steps = [
            ir.alloc(tile, acc, out),
            ir.copy(a, tile),
            ReducerInit(acc, ReduceKind.SUM, ir.value(5)),
            ir.parallel(shape, update),
            ReducerFinalize(acc, ReduceKind.SUM, whole(out)),
            ir.copy(out, b),
        ]
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        return {1: 5 + (a.sum(1) if keeps_rows else a.sum().reshape(1))}

    name = f"reducer/sum/int32/in-{scope}{'-rows' if keeps_rows else ''}/{label(shape)}"
    return seeded_case(name, build, expected, low=-9, high=10)


def _reducer(kind: str, dtype: str = "int32") -> Case:
    """Every iteration counts once; the start value counts once per element."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (6, 14), dtype), ir.tensor("B", (6,), dtype)
        acc = Buffer("acc", (6,), dtype_of(dtype), Scope.REDUCER)
        out = ir.fragment("out", (6,), dtype)
        k = ReduceKind(kind)
        steps = [
            ir.alloc(acc, out),
            ReducerInit(acc, k, ir.value(-2)),
            ir.parallel((6, 14), lambda i, j: ReducerUpdate(acc, k, (i,), ir.load(a, i, j))),
            ReducerFinalize(acc, k, whole(out)),
            ir.copy(out, b),
        ]
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        x = logical(a, dtype, (6, 14)).astype(np.int64)
        return {1: x.sum(1) - 2 if kind == "sum" else np.maximum(x.max(1), -2)}

    return seeded_case(f"reducer/{kind}/{dtype}/6x14", build, expected, low=-9, high=10)


def _reducer_without_init() -> Case:
    """Without a start value the epoch starts at the identity, and may be opened again."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (3, 4, 5), "int32"), ir.tensor("B", (3, 4), "int32")
        acc = Buffer("acc", (4,), dtype_of("int32"), Scope.REDUCER)
        out = ir.fragment("out", (4,), "int32")
        steps = [
            ir.alloc(acc, out),
            ir.serial(3, lambda s: [
                ReducerInit(acc, ReduceKind.MIN),
                ir.parallel((4, 5), lambda i, j: ReducerUpdate(
                    acc, ReduceKind.MIN, (i,), ir.load(a, s, i, j)
                )),
                ReducerFinalize(acc, ReduceKind.MIN, whole(out)),
                ir.copy(out, ir.region(b, (s, 0), (1, 4))),
            ]),
        ]  # fmt: skip
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    return seeded_case(
        "reducer/min/int32/reopened", build, lambda a, b: {1: a.min(2)}, low=-9, high=10
    )
