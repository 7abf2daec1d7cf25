"""Matrix products: element types, transposes, operand scopes, odd extents, accumulation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tile_core.interp.values import Array
from tile_core.ir.build_expr import ceildiv
from tile_core.ir.stmt import Kernel
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, logical, seeded_case
from tile_core.testing.oracle import numbers, poison

TYPES = (
    ("float32", "float32"), ("float16", "float32"), ("float16", "float16"),
    ("bfloat16", "float32"), ("float64", "float64"), ("int8", "int32"), ("uint8", "int32"),
    ("int32", "int32"), ("int16", "int64"), ("float8_e4m3fn", "float32"),
    ("float8_e5m2", "float32"), ("int4", "int32"),
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for factor, total in TYPES:
        yield _tiled(factor, total, 24, 20, 18)
    for m, n, k in ((1, 1, 1), (1, 16, 32), (16, 1, 7), (13, 17, 11), (33, 31, 64), (64, 64, 64)):
        yield _tiled("float32", "float32", m, n, k)
    for flags in ((False, True), (True, False), (True, True)):
        for factor, total in (("float32", "float32"), ("int8", "int32"), ("bfloat16", "float32")):
            yield _transposed(factor, total, *flags)
    yield from (_mixed("int8", "uint8"), _mixed("uint8", "int8"))
    yield from (_operands("fragment", "shared"), _operands("fragment", "fragment"))
    yield from (_clears(True), _clears(False), _sliced(), _nothing())
    yield _tiled("float32", "float32", 37, 19, 23, dynamic=True)
    for m, n, k in ((0, 8, 8), (8, 0, 8), (8, 8, 0), (0, 0, 0)):
        yield from (_empty(m, n, k, clear=True), _empty(m, n, k, clear=False))


def _tiled(factor: str, total: str, m: int, n: int, k: int, *, dynamic: bool = False) -> Case:
    """Multiply in tiles of 16×16×8, pipelined, with overhanging blocks."""

    def build() -> Kernel:
        rows, columns, depth = (ir.symbol(s) for s in "mnk") if dynamic else (m, n, k)
        a, b = ir.tensor("A", (rows, depth), factor), ir.tensor("B", (depth, columns), factor)
        c, acc = ir.tensor("C", (rows, columns), total), ir.fragment("acc", (16, 16), total)
        sa, sb = ir.shared("sa", (16, 8), factor), ir.shared("sb", (8, 16), factor)

        def body(bx: Any, by: Any) -> Any:
            return [
                ir.alloc(sa, sb, acc),
                ir.fill(acc, 0),
                ir.pipelined(ceildiv(depth, 8), lambda ko: [
                    ir.copy(ir.region(a, (by * 16, ko * 8), (16, 8)), sa),
                    ir.copy(ir.region(b, (ko * 8, bx * 16), (8, 16)), sb),
                    ir.gemm(sa, sb, acc),
                ]),
                ir.copy(acc, ir.region(c, (by * 16, bx * 16), (16, 16))),
            ]  # fmt: skip

        grid, threads = (ceildiv(columns, 16), ceildiv(rows, 16)), 64 if dynamic else 128
        return ir.kernel([a, b, c], grid, body, threads=threads)

    kind = f"dynamic/{factor}" if dynamic else f"tiled/{factor}-{total}"
    return Case(
        f"gemm/{kind}/{m}x{n}x{k}",
        build,
        lambda rng: [
            numbers(rng, (m, k), factor), numbers(rng, (k, n), factor), poison((m, n), total)
        ],
        lambda a, b, c: {2: _product(logical(a, factor, (m, k)), logical(b, factor, (k, n)))},
    )  # fmt: skip


def _product(a: Array, b: Array) -> Array:
    wide = np.float64 if a.dtype.kind == "f" else np.int64
    result: Array = a.astype(wide) @ b.astype(wide)
    return result


def _transposed(factor: str, total: str, first: bool, second: bool) -> Case:
    m, n, k = 9, 12, 16
    shape_a, shape_b = (k, m) if first else (m, k), (n, k) if second else (k, n)

    def build() -> Kernel:
        a, b = ir.tensor("A", shape_a, factor), ir.tensor("B", shape_b, factor)
        c, acc = ir.tensor("C", (m, n), total), ir.fragment("acc", (m, n), total)
        sa, sb = ir.shared("sa", shape_a, factor), ir.shared("sb", shape_b, factor)
        steps = [
            ir.alloc(sa, sb, acc), ir.fill(acc, 0), ir.copy(a, sa), ir.copy(b, sb),
            ir.gemm(sa, sb, acc, transpose_a=first, transpose_b=second), ir.copy(acc, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    def expected(a: Array, b: Array, c: Array) -> dict[int, Array]:
        x, y = logical(a, factor), logical(b, factor)
        return {2: _product(x.T if first else x, y.T if second else y)}

    letters = ("T" if first else "N") + ("T" if second else "N")
    return seeded_case(f"gemm/{letters}/{factor}-{total}/{m}x{n}x{k}", build, expected)


def _mixed(left: str, right: str) -> Case:
    """Signed times unsigned, at the ends of their ranges."""
    m, n, k = 8, 16, 12

    def build() -> Kernel:
        a, b = ir.tensor("A", (m, k), left), ir.tensor("B", (k, n), right)
        sa, sb = ir.shared("sa", (m, k), left), ir.shared("sb", (k, n), right)
        c, acc = ir.tensor("C", (m, n), "int32"), ir.fragment("acc", (m, n), "int32")
        steps = [
            ir.alloc(sa, sb, acc), ir.copy(a, sa), ir.copy(b, sb),
            ir.gemm(sa, sb, acc, clear=True), ir.copy(acc, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    name = f"gemm/mixed/{left}-{right}/{m}x{n}x{k}"
    return seeded_case(name, build, lambda a, b, c: {2: _product(a, b)}, low=-128, high=256)


def _operands(first: str, second: str) -> Case:
    m, n, k = 16, 16, 16
    make = {"shared": ir.shared, "fragment": ir.fragment}

    def build() -> Kernel:
        a, b, c = (ir.tensor(name, (16, 16)) for name in "ABC")
        x, y = make[first]("x", (m, k)), make[second]("y", (k, n))
        acc = ir.fragment("acc", (m, n))
        steps = [
            ir.alloc(x, y, acc), ir.copy(a, x), ir.copy(b, y), ir.fill(acc, 0),
            ir.parallel((m, k), lambda i, j: ir.store(x, (i, j), ir.load(x, i, j) * 2.0)),
            ir.gemm(x, y, acc), ir.copy(acc, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    return seeded_case(
        f"gemm/{first}-{second}/float32/16x16x16", build, lambda a, b, c: {2: 2 * (a @ b)}
    )


def _clears(always: bool) -> Case:
    """`clear_accum` as a constant, and as a condition on the loop index."""

    def build() -> Kernel:
        a, b, c = ir.tensor("A", (3, 8, 8)), ir.tensor("B", (3, 8, 8)), ir.tensor("C", (8, 8))
        sa, sb, acc = ir.shared("sa", (8, 8)), ir.shared("sb", (8, 8)), ir.fragment("acc", (8, 8))
        steps = [
            ir.alloc(sa, sb, acc),
            ir.serial(3, lambda s: [
                ir.copy(ir.region(a, (s, 0, 0), (1, 8, 8)), sa),
                ir.copy(ir.region(b, (s, 0, 0), (1, 8, 8)), sb),
                ir.gemm(sa, sb, acc, clear=True if always else s < 1),
            ]),
            ir.copy(acc, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    def expected(a: Array, b: Array, c: Array) -> dict[int, Array]:
        return {2: a[2] @ b[2] if always else (a @ b).sum(0)}

    return seeded_case(
        f"gemm/clear-{'always' if always else 'first'}/float32/8x8x8", build, expected
    )


def _sliced() -> Case:
    """Operands that are regions of larger tiles, with leading extents of one."""

    def build() -> Kernel:
        a, b, c = ir.tensor("A", (2, 8, 16)), ir.tensor("B", (2, 16, 8)), ir.tensor("C", (8, 8))
        sa, sb = ir.shared("sa", (2, 8, 16)), ir.shared("sb", (2, 16, 8))
        acc = ir.fragment("acc", (8, 8))
        steps = [
            ir.alloc(sa, sb, acc), ir.copy(a, sa), ir.copy(b, sb), ir.fill(acc, 0),
            ir.serial(2, lambda s: ir.gemm(
                ir.region(sa, (s, 0, 4), (1, 8, 8)),
                ir.region(sb, (1, s * 8, 0), (1, 8, 8)),
                acc,
            )),
            ir.copy(acc, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    return seeded_case(
        "gemm/regions/float32/8x8x8",
        build,
        lambda a, b, c: {2: sum(a[s, :, 4:12] @ b[1, s * 8 : s * 8 + 8] for s in range(2))},
    )


def _nothing() -> Case:
    """Multiply over K = 0, which gives zeros."""

    def build() -> Kernel:
        k = ir.symbol("k")
        a, b, c = ir.tensor("A", (8, k)), ir.tensor("B", (k, 8)), ir.tensor("C", (8, 8))
        sa, sb, acc = ir.shared("sa", (8, 8)), ir.shared("sb", (8, 8)), ir.fragment("acc", (8, 8))
        steps = [
            ir.alloc(sa, sb, acc), ir.fill(acc, 0),
            ir.pipelined(ceildiv(k, 8), lambda ko: [
                ir.copy(ir.region(a, (0, ko * 8), (8, 8)), sa),
                ir.copy(ir.region(b, (ko * 8, 0), (8, 8)), sb),
                ir.gemm(sa, sb, acc),
            ], stages=3),
            ir.copy(acc, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    return Case(
        "gemm/dynamic/float32/8x8x0",
        build,
        lambda rng: [
            np.zeros((8, 0), np.float32), np.zeros((0, 8), np.float32), poison((8, 8), "float32")
        ],
        lambda a, b, c: {2: np.zeros((8, 8))},
    )  # fmt: skip


def _empty(m: int, n: int, k: int, *, clear: bool) -> Case:
    """Multiply parts of tiles without rows, columns or both, or over K = 0, among others' sums."""

    def build() -> Kernel:
        a, b, c = (ir.tensor(name, (16, 16)) for name in "ABC")
        sa, sb, acc = (ir.shared(name, (16, 16)) for name in ("sa", "sb", "acc"))
        product = ir.gemm(
            ir.region(sa, (4, 0), (m, k)),
            ir.region(sb, (0, 4), (k, n)),
            ir.region(acc, (4, 4), (m, n)),
            clear=clear,
        )
        steps = [
            ir.alloc(sa, sb, acc), ir.copy(a, sa), ir.copy(b, sb), ir.fill(acc, 3), product,
            ir.copy(acc, c),
        ]  # fmt: skip
        return ir.kernel([a, b, c], 1, lambda bx: steps, threads=64)

    def expected(a: Array, b: Array, c: Array) -> dict[int, Array]:
        sums = np.full((16, 16), 3.0)
        if clear:
            sums[4 : 4 + m, 4 : 4 + n] = 0
        return {2: sums}

    return seeded_case(f"gemm/empty/float32/{m}x{n}x{k}{'/clear' * clear}", build, expected)
