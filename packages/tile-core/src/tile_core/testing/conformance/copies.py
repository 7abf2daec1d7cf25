"""Copies: every scope and element type, tails, pairings, casts, transposes, patches."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np

from tile_core.interp.values import Array
from tile_core.ir.buffer import Buffer, Region, whole
from tile_core.ir.build_expr import ceildiv
from tile_core.ir.stmt import AnnotateSafeValue, Kernel
from tile_core.ops.copy import Transpose
from tile_core.ops.im2col import Im2col
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical, seeded_case
from tile_core.testing.oracle import numbers, poison

DTYPES = (
    "float32", "float16", "bfloat16", "float64", "int8", "uint8", "int16", "uint16", "int32",
    "uint32", "int64", "uint64", "bool", "float8_e4m3fn", "float8_e5m2", "int4", "uint4",
    "float4_e2m1fn",
)  # fmt: skip


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for dtype in DTYPES:
        yield _through(dtype, (5, 14), (4, 8))
    for shape, tile in (((1,), (1,)), ((7,), (4,)), ((16, 8), (16, 8)), ((13, 17), (8, 8)),
                        ((3, 5, 7), (2, 5, 4)), ((2, 3, 4, 5), (1, 2, 4, 5))):  # fmt: skip
        yield _through("float32", shape, tile)
    for scopes in (("fragment", "shared"), ("shared", "local"), ("local", "fragment")):
        yield _chain(scopes)
    for source, target in (
        ("float32", "float16"), ("float32", "bfloat16"), ("float16", "float32"),
        ("bfloat16", "float32"), ("int32", "float32"), ("float32", "int32"), ("int8", "int32"),
        ("int32", "int8"), ("float32", "float8_e4m3fn"), ("float8_e5m2", "float16"),
        ("int4", "float32"), ("float32", "int4"), ("float4_e2m1fn", "float32"),
        ("uint8", "float16"), ("bool", "float32"), ("float32", "bool"), ("int64", "float32"),
    ):  # fmt: skip
        yield _cast(source, target)
    yield from (_row_to_column(), _element_head(), _safe_value(), _negative_start())
    for a, b in product(("shared", "fragment"), repeat=2):
        yield from (_part((a, b), extents) for extents in (None, (1, 1), (1, 3), (2, 1)))
    yield from (_transpose((5, 7)), _transpose((2, 3, 5)))
    yield from (_im2col(1, 1, 0), _im2col(2, 1, 1), _im2col(1, 2, 2))
    yield from (_dynamic(13, 9), _dynamic(1, 1), _strided())


def _through(dtype: str, shape: tuple[int, ...], tile: tuple[int, ...]) -> Case:
    """Copy a tensor block by block through shared memory; the last blocks overhang."""

    def build() -> Kernel:
        a, b = ir.tensor("A", shape, dtype), ir.tensor("B", shape, dtype)
        t = ir.shared("t", tile, dtype)
        grid = tuple(ceildiv(n, m) for n, m in zip(shape, tile, strict=True))

        def body(bx: Any) -> Any:
            starts, rest = [], bx
            for extent, step in reversed(list(zip(grid, tile, strict=True))):
                starts.append(rest % extent * step)
                rest = rest // extent
            starts.reverse()
            return [
                ir.alloc(t),
                ir.copy(ir.region(a, starts, tile), t),
                ir.copy(t, ir.region(b, starts, tile)),
            ]

        return ir.kernel([a, b], int(np.prod(grid)), body, threads=32)

    return seeded_case(
        f"copy/shared/{dtype}/{label(shape)}", build, lambda a, b: {1: logical(a, dtype, shape)}
    )


def _chain(scopes: tuple[str, str]) -> Case:
    def build() -> Kernel:
        a, b = ir.tensor("A", (6, 10)), ir.tensor("B", (6, 10))
        make = {"shared": ir.shared, "fragment": ir.fragment, "local": ir.local}
        first, second = (make[s](f"t{k}", (6, 10)) for k, s in enumerate(scopes))
        steps = [ir.copy(a, first), ir.copy(first, second), ir.copy(second, b)]
        return ir.kernel([a, b], 1, lambda bx: [ir.alloc(first, second), *steps], threads=64)

    return seeded_case(f"copy/{scopes[0]}-{scopes[1]}/float32/6x10", build, lambda a, b: {1: a})


def _cast(source: str, target: str) -> Case:
    shape = (3, 14)

    def build() -> Kernel:
        a, b = ir.tensor("A", shape, source), ir.tensor("B", shape, target)
        t = ir.fragment("t", shape, target)
        return ir.kernel(
            [a, b], 1, lambda bx: [ir.alloc(t), ir.copy(a, t), ir.copy(t, b)], threads=64
        )

    def expected(a: Array, b: Array) -> dict[int, Array]:
        values = logical(a, source, shape)
        return {1: values != 0 if target == "bool" else values}

    low = 0 if "u" in source[:1] or "u" in target[:1] else -4
    return seeded_case(f"copy/cast/{source}-{target}/{label(shape)}", build, expected, low=low)


def _row_to_column() -> Case:
    """Extents other than one are matched in order: a row becomes a column."""

    def build() -> Kernel:
        a, b = ir.tensor("A", (4, 6)), ir.tensor("B", (6, 3))
        t = ir.shared("t", (6,))
        steps = [ir.copy(ir.region(a, (2, 0), (1, 6)), t), ir.copy(t, ir.region(b, (0, 1), (6, 1)))]
        return ir.kernel([a, b], 1, lambda bx: [ir.alloc(t), *steps], threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        b[:, 1] = a[2]
        return {1: b}

    return seeded_case("copy/pairing/float32/row-column", build, expected)


def _element_head() -> Case:
    """Take an element as the head of a tile whose extents the other side gives."""

    def at(buffer: Buffer, *index: int) -> Region:
        return Region(buffer, index, (1,) * len(index), is_element=True)

    def build() -> Kernel:
        a, b, t = ir.tensor("A", (4, 6)), ir.tensor("B", (4, 6)), ir.shared("t", (2, 3))
        steps = [ir.copy(at(a, 1, 2), t), ir.copy(t, at(b, 3, 4))]
        return ir.kernel([a, b], 1, lambda bx: [ir.alloc(t), *steps], threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        b[3, 4:] = a[1, 2:4]
        return {1: b}

    return seeded_case("copy/element/float32/2x3", build, expected)


def _part(scopes: tuple[str, str], extents: tuple[int, int] | None) -> Case:
    """Copy a part of a tile into one of another: an element (None), or a box of `extents`."""
    name = "element" if extents is None else label(extents)
    rows, columns = extents or (1, 1)

    def at(buffer: Buffer, *index: int) -> Region:
        return Region(buffer, index, extents or (1, 1), is_element=extents is None)

    def build() -> Kernel:
        a, b = ir.tensor("A", (5, 6)), ir.tensor("B", (16, 3))
        make = {"shared": ir.shared, "fragment": ir.fragment}
        t, u = make[scopes[0]]("t", (5, 6)), make[scopes[1]]("u", (16, 3))
        steps = [ir.copy(a, t), ir.copy(b, u), ir.copy(at(t, 3, 2), at(u, 9, 0)), ir.copy(u, b)]
        body = [ir.alloc(t, u), *steps]
        return ir.kernel([a, b], 1, lambda bx: body, threads=128)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        b[9 : 9 + rows, 0:columns] = a[3 : 3 + rows, 2 : 2 + columns]
        return {1: b}

    return seeded_case(
        f"copy/part/float32/{scopes[0]}-{scopes[1]}-{name}", build, expected, outputs=0
    )


def _safe_value() -> Case:
    def build() -> Kernel:
        a, b, t = ir.tensor("A", (5,)), ir.tensor("B", (8,)), ir.shared("t", (8,))

        def body(bx: Any) -> Any:
            inner = [ir.copy(ir.region(a, (0,), (8,)), t), ir.copy(t, b)]
            return ir.seq(AnnotateSafeValue(a, ir.value(-1.5, "float32")), ir.alloc(t), inner)

        return ir.kernel([a, b], 1, body, threads=64)

    return seeded_case(
        "copy/safe-value/float32/5",
        build,
        lambda a, b: {1: np.concatenate([a, np.full(3, -1.5, np.float32)])},
    )


def _negative_start() -> Case:
    """Begin regions before their tensors: read zeros there, write nothing."""

    def build() -> Kernel:
        a, b, t = ir.tensor("A", (6,)), ir.tensor("B", (6,)), ir.shared("t", (6,))

        def body(bx: Any) -> Any:
            return [
                ir.alloc(t),
                ir.copy(ir.region(a, (bx - 2,), (6,)), t),
                ir.copy(t, ir.region(b, (bx - 1,), (6,))),
            ]

        return ir.kernel([a, b], 1, body, threads=64)

    def expected(a: Array, b: Array) -> dict[int, Array]:
        b[:5] = np.concatenate([np.zeros(1, np.float32), a[:4]])
        return {1: b}

    return seeded_case("copy/before-start/float32/6", build, expected)


def _transpose(shape: tuple[int, ...]) -> Case:
    flipped = (*shape[:-2], shape[-1], shape[-2])

    def build() -> Kernel:
        a, b = ir.tensor("A", shape), ir.tensor("B", flipped)
        s, t = ir.shared("s", shape), ir.shared("t", flipped)
        steps = [ir.copy(a, s), Transpose(whole(s), whole(t)), ir.copy(t, b)]
        return ir.kernel([a, b], 1, lambda bx: [ir.alloc(s, t), *steps], threads=64)

    return seeded_case(
        f"copy/transpose/float32/{label(shape)}", build, lambda a, b: {1: a.swapaxes(-1, -2)}
    )


def _im2col(stride: int, dilation: int, pad: int) -> Case:
    batch, size, channels, kernel = 2, 7, 2, 3
    out = (size + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    rows, cols = batch * out * out, kernel * kernel * channels

    def build() -> Kernel:
        image = ir.tensor("I", (batch, size, size, channels))
        matrix = ir.tensor("M", (rows, cols))
        t = ir.shared("t", (8, 6))

        def body(bx: Any, by: Any) -> Any:
            return [
                ir.alloc(t),
                Im2col(image, whole(t), by, bx, kernel, stride, dilation, pad),
                ir.copy(t, ir.region(matrix, (by * 8, bx * 6), (8, 6))),
            ]

        return ir.kernel([image, matrix], (3, ceildiv(rows, 8)), body, threads=64)

    def expected(image: Array, matrix: Array) -> dict[int, Array]:
        padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
        reach = dilation * (kernel - 1) + 1
        patches = [
            padded[n, h : h + reach : dilation, w : w + reach : dilation].ravel()
            for n in range(batch)
            for h in range(0, out * stride, stride)
            for w in range(0, out * stride, stride)
        ]
        return {1: np.stack(patches)}

    return seeded_case(f"copy/im2col/float32/s{stride}d{dilation}p{pad}", build, expected)


def _dynamic(m: int, n: int) -> Case:
    def build() -> Kernel:
        rows, cols = ir.symbol("m"), ir.symbol("n")
        a, b = ir.tensor("A", (rows, cols)), ir.tensor("B", (rows, cols))
        t = ir.shared("t", (4, 8))

        def body(bx: Any, by: Any) -> Any:
            here = (by * 4, bx * 8)
            return [
                ir.alloc(t),
                ir.copy(ir.region(a, here, (4, 8)), t),
                ir.copy(t, ir.region(b, here, (4, 8))),
            ]

        return ir.kernel([a, b], (ceildiv(cols, 8), ceildiv(rows, 4)), body, threads=64)

    return Case(
        f"copy/dynamic/float32/{m}x{n}",
        build,
        lambda rng: [numbers(rng, (m, n), "float32"), poison((m, n), "float32")],
        lambda a, b: {1: a},
    )


def _strided() -> Case:
    """Follow the caller's strides and touch nothing between the rows."""

    def build() -> Kernel:
        s = ir.symbol("s")
        a, b = ir.tensor("A", (5, 6), strides=(s, 1)), ir.tensor("B", (5, 6))
        return ir.kernel([a, b], 1, lambda bx: ir.copy(a, b), threads=64)

    def inputs(rng: np.random.Generator) -> list[Array]:
        return [numbers(rng, (5, 9), "float32")[:, :6], poison((5, 6), "float32")]

    return Case("copy/strided/float32/5x6", build, inputs, lambda a, b: {1: a})
