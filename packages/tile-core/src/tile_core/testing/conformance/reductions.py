"""Reductions of every kind, scans, reducers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.interp.values import Array
from tile_core.ir.buffer import Buffer, Scope, whole
from tile_core.ir.stmt import Kernel
from tile_core.ops.reduce import ReduceKind, ReducerFinalize, ReducerInit, ReducerUpdate, Scan
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical
from tile_core.testing.oracle import numbers, poison

Function = Callable[..., Array]

KINDS: dict[str, Function] = {
    "sum": lambda x, axis: x.sum(axis),
    "max": lambda x, axis: x.max(axis),
    "min": lambda x, axis: x.min(axis),
    "abssum": lambda x, axis: np.abs(x).sum(axis),
    "absmax": lambda x, axis: np.abs(x).max(axis),
    "bitand": lambda x, axis: np.bitwise_and.reduce(x, axis=axis),
    "bitor": lambda x, axis: np.bitwise_or.reduce(x, axis=axis),
    "bitxor": lambda x, axis: np.bitwise_xor.reduce(x, axis=axis),
}
ARITHMETIC = ("sum", "max", "min", "abssum", "absmax")
ONTO: dict[str, Function] = {
    "sum": np.add,
    "abssum": np.add,
    "max": np.maximum,
    "absmax": np.maximum,
    "min": np.minimum,
}
"""How the reduced elements meet the old contents: as they are."""


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for dtype in ("float32", "float16", "bfloat16", "float64", "int32", "int64"):
        for kind in ARITHMETIC:
            yield _reduce(kind, dtype, (6, 19), 1, clear=True)
            yield _reduce(kind, dtype, (6, 19), 0, clear=False)
    for dtype in ("int32", "uint8", "int64"):
        for kind in ("bitand", "bitor", "bitxor"):
            yield _reduce(kind, dtype, (6, 19), 1, clear=True)
    for shape, dim in (((1, 1), 1), ((7,), 0), ((3, 5, 7), 1), ((2, 64), 1), ((64, 2), 0)):
        yield _reduce("sum", "float32", shape, dim, clear=True)
        yield _reduce("max", "float32", shape, dim, clear=False)
    yield from (_kept(), _widening(), _nan(False), _nan(True), _scoped("shared"), _scoped("local"))
    for kind in ("sum", "max"):
        for dtype in ("float32", "int32"):
            yield _scan(kind, dtype, 1, False)
            yield _scan(kind, dtype, 0, True)
    yield from (_reducer("sum"), _reducer("max"), _reducer_without_init())


def _out_shape(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    rest = tuple(n for k, n in enumerate(shape) if k != dim)
    return rest or (1,)


def _reduce(kind: str, dtype: str, shape: tuple[int, ...], dim: int, *, clear: bool) -> Case:
    out = _out_shape(shape, dim)

    def build() -> Kernel:
        a, b = ir.tensor("A", shape, dtype), ir.tensor("B", out, dtype)
        fa, fb = ir.fragment("fa", shape, dtype), ir.fragment("fb", out, dtype)
        steps = [
            ir.alloc(fa, fb), ir.copy(a, fa), ir.copy(b, fb),
            ir.reduce(kind, fa, fb, dim, clear=clear), ir.copy(fb, b),
        ]  # fmt: skip
        return ir.kernel([a, b], 1, lambda bx: steps, threads=32)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        x, old = logical(a, dtype), logical(b, dtype)
        if x.dtype.kind == "f":
            x, old = x.astype(np.float64), old.astype(np.float64)
        result = np.asarray(KINDS[kind](x, dim)).reshape(out)
        return {1: result if clear else ONTO[kind](result, old)}

    return Case(
        f"reduce/{kind}{'' if clear else '-onto'}/{dtype}/{label(shape)}@{dim}",
        build,
        lambda rng: [numbers(rng, shape, dtype, -9, 10), numbers(rng, out, dtype, -9, 10)],
        expected,
    )


def _kept() -> Case:
    """Keep the reduced dimension, with extent one."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (4, 9)), ir.tensor("B", (4, 1))
        fa, fb = ir.fragment("fa", (4, 9)), ir.fragment("fb", (4, 1))
        steps = [
            ir.alloc(fa, fb), ir.copy(a, fa), ir.reduce("sum", fa, fb, 1), ir.copy(fb, b)
        ]  # fmt: skip
        return ir.kernel([a, b], 1, lambda bx: steps)

    return Case(
        "reduce/sum/float32/kept",
        build,
        lambda rng: [numbers(rng, (4, 9), "float32"), poison((4, 1), "float32")],
        lambda a, b: {1: a.sum(1, keepdims=True)},
    )


def _widening() -> Case:
    """Elements are converted to the destination's type before they are combined."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (4, 300), "int8"), ir.tensor("B", (4,), "int32")
        fa, fb = ir.fragment("fa", (4, 300), "int8"), ir.fragment("fb", (4,), "int32")
        steps = [
            ir.alloc(fa, fb), ir.copy(a, fa), ir.reduce("abssum", fa, fb, 1), ir.copy(fb, b)
        ]  # fmt: skip
        return ir.kernel([a, b], 1, lambda bx: steps)

    return Case(
        "reduce/abssum/int8-int32/4x300",
        build,
        lambda rng: [numbers(rng, (4, 300), "int8", -128, 128), poison((4,), "int32")],
        lambda a, b: {1: np.abs(a.astype(np.int32)).sum(1)},
    )


def _nan(propagate: bool) -> Case:
    rows = np.array([[1, np.nan, 3], [np.nan, -5, -7], [2, 4, 6]], np.float16)

    def build() -> Kernel:
        a, b = ir.tensor("A", (3, 3), "float16"), ir.tensor("B", (3,), "float16")
        fa, fb = ir.fragment("fa", (3, 3), "float16"), ir.fragment("fb", (3,), "float16")
        steps = [
            ir.alloc(fa, fb), ir.copy(a, fa),
            ir.reduce("max", fa, fb, 1, nan_propagate=propagate), ir.copy(fb, b),
        ]  # fmt: skip
        return ir.kernel([a, b], 1, lambda bx: steps)

    wanted = np.array([np.nan, np.nan, 6] if propagate else [3, -5, 6])
    return Case(
        f"reduce/max-nan-{'propagates' if propagate else 'ignored'}/float16/3x3",
        build,
        lambda rng: [rows.copy(), poison((3,), "float16")],
        lambda a, b: {1: wanted},
    )


def _scoped(scope: str) -> Case:
    make = ir.shared if scope == "shared" else ir.local

    def build() -> Kernel:
        a, b = ir.tensor("A", (5, 8)), ir.tensor("B", (5,))
        s, t = make("s", (5, 8)), make("t", (5,))
        steps = [ir.alloc(s, t), ir.copy(a, s), ir.reduce("max", s, t, 1), ir.copy(t, b)]
        return ir.kernel([a, b], 1, lambda bx: steps)

    return Case(
        f"reduce/max/{scope}/5x8",
        build,
        lambda rng: [numbers(rng, (5, 8), "float32"), poison((5,), "float32")],
        lambda a, b: {1: a.max(1)},
    )


def _scan(kind: str, dtype: str, dim: int, reverse: bool) -> Case:
    shape = (5, 11)

    def build() -> Kernel:
        a, b, s = (
            ir.tensor("A", shape, dtype),
            ir.tensor("B", shape, dtype),
            ir.shared("s", shape, dtype),
        )
        scan = Scan(ReduceKind(kind), whole(s), whole(s), dim, reverse)
        steps = [ir.alloc(s), ir.copy(a, s), scan, ir.copy(s, b)]
        return ir.kernel([a, b], 1, lambda bx: steps)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        x = np.flip(a, dim) if reverse else a
        total = np.cumsum(x, axis=dim) if kind == "sum" else np.maximum.accumulate(x, axis=dim)
        return {1: np.flip(total, dim) if reverse else total}

    return Case(
        f"scan/{kind}{'-reverse' if reverse else ''}/{dtype}/{label(shape)}@{dim}",
        build,
        lambda rng: [numbers(rng, shape, dtype), poison(shape, dtype)],
        expected,
    )


def _reducer(kind: str) -> Case:
    """Every iteration counts once; the start value counts once per element."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (6, 13), "int32"), ir.tensor("B", (6,), "int32")
        acc = Buffer("acc", (6,), dtype_of("int32"), Scope.REDUCER)
        out = ir.fragment("out", (6,), "int32")
        k = ReduceKind(kind)

        def body(bx: Any) -> Any:
            return [
                ir.alloc(acc, out),
                ReducerInit(acc, k, ir.value(-2)),
                ir.parallel((6, 13), lambda i, j: ReducerUpdate(acc, k, (i,), ir.load(a, i, j))),
                ReducerFinalize(acc, k, whole(out)),
                ir.copy(out, b),
            ]

        return ir.kernel([a, b], 1, body)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        return {1: a.sum(1) - 2 if kind == "sum" else np.maximum(a.max(1), -2)}

    return Case(
        f"reducer/{kind}/int32/6x13",
        build,
        lambda rng: [numbers(rng, (6, 13), "int32", -9, 10), poison((6,), "int32")],
        expected,
    )


def _reducer_without_init() -> Case:
    """Without a start value the epoch starts at the identity, and may be opened again."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (3, 4, 5), "int32"), ir.tensor("B", (3, 4), "int32")
        acc = Buffer("acc", (4,), dtype_of("int32"), Scope.REDUCER)
        out = ir.fragment("out", (4,), "int32")

        def body(bx: Any) -> Any:
            return [
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

        return ir.kernel([a, b], 1, body)

    return Case(
        "reducer/min/int32/reopened",
        build,
        lambda rng: [numbers(rng, (3, 4, 5), "int32", -9, 10), poison((3, 4), "int32")],
        lambda a, b: {1: a.min(2)},
    )
