"""Reductions of every kind, scans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from tile_core.dtypes import FORMATS, dtype_of
from tile_core.interp.values import Array, settle
from tile_core.ir.buffer import Buffer, whole
from tile_core.ir.stmt import Kernel
from tile_core.ops.reduce import ReduceKind
from tile_core.ops.scan import Scan
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical, seeded_case
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
BITWISE = ("bitand", "bitor", "bitxor")
ONTO: dict[str, Function] = {
    "sum": np.add,
    "abssum": np.add,
    "max": np.maximum,
    "absmax": np.maximum,
    "min": np.minimum,
    "bitand": np.bitwise_and,
    "bitor": np.bitwise_or,
    "bitxor": np.bitwise_xor,
}
"""How the reduced elements meet the old contents: as they are."""
NO_SUMS = ("handle", "float8_e8m0fnu")
"""Types that results of reductions cannot have: addresses, and powers of two without a sign."""


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for source in FORMATS:
        if source != "handle":
            yield _every(source, _destinations(source), (4, 18), 1, clear=True)
    for dtype in ("float32", "float16", "bfloat16", "float64", "int32", "int64", "uint8"):
        kinds = ARITHMETIC if dtype_of(dtype).is_float else tuple(KINDS)
        yield _every(dtype, {dtype: kinds}, (6, 19), 0, clear=False)
    for shape, dim in (((1, 1), 1), ((7,), 0), ((3, 5, 7), 1), ((2, 64), 1), ((64, 2), 0)):
        yield _reduce("sum", "float32", shape, dim, clear=True)
        yield _reduce("max", "float32", shape, dim, clear=False)
    yield from (_kept(), _widening(), _nan(False), _nan(True), _running_nan())
    yield from (_scoped("shared"), _scoped("local"))
    for kind in ("sum", "max"):
        for dtype in ("float32", "int32", "int4", "float4_e2m1fn", "bool"):
            yield _scan(kind, dtype, 1, False)
            yield _scan(kind, dtype, 0, True)
    for scopes in (("shared", "fragment"), ("fragment", "shared"), ("fragment", "fragment")):
        yield from (_part(scopes, clear=True), _part(scopes, clear=False), _scanned_part(scopes))
        yield from (_of_nothing(scopes, clear=True), _of_nothing(scopes, clear=False))


def _destinations(source: str) -> dict[str, tuple[str, ...]]:
    """Return the types to which a tile of `source` is reduced, with the reductions.

    How elements are read depends on the source alone, how results are combined and stored on
    the destination: all types meet float32 and int32 from both sides, and themselves.
    """
    wanted = ("float32", "int32")
    chosen = FORMATS if source in wanted else dict.fromkeys((*wanted, source))
    return {d: _kinds(source, d) for d in chosen if d not in NO_SUMS}


def _kinds(source: str, destination: str) -> tuple[str, ...]:
    if destination == "float32":
        return ARITHMETIC
    if source == destination:
        return ("sum", "absmax")
    floats = any(dtype_of(d).is_float for d in (source, destination))
    return ("min",) if floats else ("min", *BITWISE)


def _tiles(scopes: tuple[str, ...], *shapes: tuple[int, ...]) -> list[Buffer]:
    make = {"shared": ir.shared, "fragment": ir.fragment}
    return [make[s](f"t{k}", n) for k, (s, n) in enumerate(zip(scopes, shapes, strict=True))]


def _part(scopes: tuple[str, ...], *, clear: bool) -> Case:
    """Reduce a part of a tile into a part of another one."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (16, 12)), ir.tensor("B", (10,))
        t, u = _tiles(scopes, (16, 12), (10,))
        reduced = ir.reduce(
            "sum", ir.region(t, (5, 2), (4, 9)), ir.region(u, (3,), (4,)), 1, clear=clear
        )
        steps = [ir.copy(a, t), ir.copy(b, u), reduced, ir.copy(u, b)]
        return ir.kernel([a, b], 1, lambda bx: [ir.alloc(t, u), *steps], threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        b[3:7] = a[5:9, 2:11].sum(1) + (0 if clear else b[3:7])
        return {1: b}

    name = f"reduce/part/float32/{scopes[0]}-{scopes[1]}-{'clear' if clear else 'onto'}"
    return seeded_case(name, build, expected, outputs=0)


def _of_nothing(scopes: tuple[str, ...], *, clear: bool) -> Case:
    """Run a sum along rows of a part without columns, and take their largest elements."""

    def build() -> Kernel:
        a, b, c = ir.tensor("A", (16, 12)), ir.tensor("B", (10,)), ir.tensor("C", (10,))
        t, u = _tiles(scopes, (16, 12), (10,))
        none = ir.region(t, (5, 2), (4, 0))
        steps = [
            ir.copy(a, t), ir.copy(b, u), Scan(ReduceKind.SUM, none, none, 1),
            ir.reduce("max", none, ir.region(u, (3,), (4,)), 1, clear=clear), ir.copy(u, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: [ir.alloc(t, u), *steps], threads=64)

    def expected(a: Array, b: Array, c: Array) -> dict[int, Array]:
        b[3:7] = -np.inf if clear else b[3:7]
        return {2: b}

    name = f"reduce/empty/float32/{scopes[0]}-{scopes[1]}-{'clear' if clear else 'onto'}"
    return seeded_case(name, build, expected)


def _scanned_part(scopes: tuple[str, ...]) -> Case:
    def build() -> Kernel:
        a, b = ir.tensor("A", (16, 12)), ir.tensor("B", (6, 11))
        t, u = _tiles(scopes, (16, 12), (6, 11))
        part = ir.region(t, (5, 2), (4, 9)), ir.region(u, (1, 2), (4, 9))
        steps = [ir.copy(a, t), ir.copy(b, u), Scan(ReduceKind.SUM, *part, 1), ir.copy(u, b)]
        return ir.kernel([a, b], 1, lambda bx: [ir.alloc(t, u), *steps], threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        b[1:5, 2:11] = a[5:9, 2:11].cumsum(1)
        return {1: b}

    return seeded_case(f"scan/part/float32/{scopes[0]}-{scopes[1]}", build, expected, outputs=0)


def _out_shape(shape: tuple[int, ...], dim: int) -> tuple[int, ...]:
    rest = tuple(n for k, n in enumerate(shape) if k != dim)
    return rest or (1,)


def _every(
    source: str,
    wanted: dict[str, tuple[str, ...]],
    shape: tuple[int, ...],
    dim: int,
    *,
    clear: bool,
) -> Case:
    """Reductions of one tile: an output for each type, in it a row for each kind.

    Onto an old result each reduces a copy of its own: tiles that hang together through one source
    and through rows of one tensor may be spread such that threads pick registers by their number.
    """
    rows = _out_shape(shape, dim)[0]
    shapes = [(len(kinds), rows) for kinds in wanted.values()]

    def build() -> Kernel:
        a, tile = ir.tensor("A", shape, source), ir.fragment("tile", shape, source)
        outputs = [ir.tensor(f"to_{d}", s, d) for d, s in zip(wanted, shapes, strict=True)]
        steps: list[Any] = [ir.alloc(tile), ir.copy(a, tile)] if clear else []
        for output, (dtype, kinds) in zip(outputs, wanted.items(), strict=True):
            for row, kind in enumerate(kinds):
                place = ir.region(output, (row, 0), (1, rows))
                total = ir.fragment(f"{kind}_{dtype}", (rows,), dtype)
                if not clear:
                    tile = ir.fragment(f"tile_{kind}_{dtype}", shape, source)
                    steps += [ir.alloc(tile), ir.copy(a, tile)]
                steps += [
                    ir.alloc(total), ir.copy(place, total),
                    ir.reduce(kind, tile, total, dim, clear=clear), ir.copy(total, place),
                ]  # fmt: skip
        return ir.kernel([a, *outputs], 1, lambda bx: steps, threads=32)

    def expected(a: Array, *old: Array) -> dict[int, Array]:
        found: dict[int, Array] = {}
        for position, (dtype, kinds) in enumerate(wanted.items()):
            x = _converted(logical(a, source, shape), source, dtype)
            totals = [_total(kind, x, dim, dtype) for kind in kinds]
            if not clear:
                was = logical(old[position], dtype, shapes[position])
                was = _converted(was, dtype, dtype)
                totals = [ONTO[k](t, row) for k, t, row in zip(kinds, totals, was, strict=True)]
            found[position + 1] = np.stack(totals)
        return found

    def inputs(rng: np.random.Generator) -> list[Array]:
        low = 1 if source == "float8_e8m0fnu" else -4  # these are positive
        old = [numbers(rng, s, d, -9, 10) for d, s in zip(wanted, shapes, strict=True)]
        return [numbers(rng, shape, source, low), *old]

    onto = "" if clear else "-onto"
    return Case(f"reduce/every{onto}/{source}/{label(shape)}@{dim}", build, inputs, expected)


def _converted(values: Array, source: str, destination: str) -> Array:
    """Return elements as the destination has them: integers wrap, floats saturate."""
    there = dtype_of(destination)
    if there.is_float:
        return settle(values.astype(np.float64), there).astype(np.float64)
    if dtype_of(source).is_float and there.kind.value == "uint":
        values = np.maximum(values, 0)
    return values != 0 if there.is_bool else settle(values.astype(np.int64), there)


def _total(kind: str, x: Array, dim: int, dtype: str) -> Array:
    """Return the reduction of converted elements; integers wrap, truth values stay such."""
    magnitudes = settle(np.abs(x), dtype_of(dtype)) if kind == "absmax" else x
    total: Array = KINDS["max" if kind == "absmax" else kind](magnitudes, dim)
    return total != 0 if dtype == "bool" else total


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
        result = np.asarray(KINDS[kind](logical(a, dtype), dim)).reshape(out)
        return {1: result if clear else ONTO[kind](result, logical(b, dtype))}

    name = f"reduce/{kind}{'' if clear else '-onto'}/{dtype}/{label(shape)}@{dim}"
    return seeded_case(name, build, expected, outputs=0, low=-9, high=10)


def _kept() -> Case:
    """Keep the reduced dimension, with extent one."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (4, 9)), ir.tensor("B", (4, 1))
        fa, fb = ir.fragment("fa", (4, 9)), ir.fragment("fb", (4, 1))
        steps = [
            ir.alloc(fa, fb), ir.copy(a, fa), ir.reduce("sum", fa, fb, 1), ir.copy(fb, b)
        ]  # fmt: skip
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    return seeded_case("reduce/sum/float32/kept", build, lambda a, b: {1: a.sum(1, keepdims=True)})


def _widening() -> Case:
    """Elements are converted to the destination's type before they are combined."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (4, 300), "int8"), ir.tensor("B", (4,), "int32")
        fa, fb = ir.fragment("fa", (4, 300), "int8"), ir.fragment("fb", (4,), "int32")
        steps = [
            ir.alloc(fa, fb), ir.copy(a, fa), ir.reduce("abssum", fa, fb, 1), ir.copy(fb, b)
        ]  # fmt: skip
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    return seeded_case(
        "reduce/abssum/int8-int32/4x300",
        build,
        lambda a, b: {1: np.abs(a.astype(np.int32)).sum(1)},
        low=-128,
        high=128,
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
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    wanted = np.array([np.nan, np.nan, 6] if propagate else [3, -5, 6])
    return Case(
        f"reduce/max-nan-{'propagates' if propagate else 'ignored'}/float16/3x3",
        build,
        lambda rng: [rows.copy(), poison((3,), "float16")],
        lambda a, b: {1: wanted},
    )


def _running_nan() -> Case:
    rows = np.array([[1, np.nan, 3, 0], [2, 4, 6, 5], [np.nan, -5, -7, np.inf]], np.float32)

    def build() -> Kernel:
        a, b = ir.tensor("A", (3, 4)), ir.tensor("B", (3, 4))
        s = ir.shared("s", (3, 4))
        scan = Scan(ReduceKind.MAX, whole(s), whole(s), 1, nan_propagate=True)
        steps = [ir.alloc(s), ir.copy(a, s), scan, ir.copy(s, b)]
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    return Case(
        "scan/max-nan-propagates/float32/3x4",
        build,
        lambda rng: [rows.copy(), poison((3, 4), "float32")],
        lambda a, b: {1: np.maximum.accumulate(rows, axis=1)},
    )


def _scoped(scope: str) -> Case:
    make = ir.shared if scope == "shared" else ir.local

    def build() -> Kernel:
        a, b = ir.tensor("A", (5, 8)), ir.tensor("B", (5,))
        s, t = make("s", (5, 8)), make("t", (5,))
        steps = [ir.alloc(s, t), ir.copy(a, s), ir.reduce("max", s, t, 1), ir.copy(t, b)]
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    return seeded_case(f"reduce/max/{scope}/5x8", build, lambda a, b: {1: a.max(1)})


def _scan(kind: str, dtype: str, dim: int, reverse: bool) -> Case:
    shape = (5, 12)

    def build() -> Kernel:
        a, b = ir.tensor("A", shape, dtype), ir.tensor("B", shape, dtype)
        s = ir.shared("s", shape, dtype)
        scan = Scan(ReduceKind(kind), whole(s), whole(s), dim, reverse)
        steps = [ir.alloc(s), ir.copy(a, s), scan, ir.copy(s, b)]
        return ir.kernel([a, b], 1, lambda bx: steps, threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        x = _converted(logical(a, dtype, shape), dtype, dtype)
        x = np.flip(x, dim) if reverse else x
        total = np.cumsum(x, axis=dim) if kind == "sum" else np.maximum.accumulate(x, axis=dim)
        total = np.flip(total, dim) if reverse else total
        return {1: total != 0 if dtype == "bool" else total}

    return seeded_case(
        f"scan/{kind}{'-reverse' if reverse else ''}/{dtype}/{label(shape)}@{dim}", build, expected
    )
