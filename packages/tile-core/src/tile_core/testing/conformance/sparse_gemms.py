"""Products of tiles without their zeros: element types, metadata, transposes, odd extents."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from tile_core.dtypes import dtype_of
from tile_core.interp.values import Array
from tile_core.ir.buffer import whole
from tile_core.ir.build_expr import ceildiv
from tile_core.ir.stmt import Kernel
from tile_core.ops.sparse_tiles import NIBBLE, described_by, group_of, with_zeros
from tile_core.testing import build_ir as ir
from tile_core.testing.conformance.case import Case, label, logical
from tile_core.testing.oracle import numbers, poison
from tile_launch.errors import Span

TYPES = (
    ("float16", "float32", "int16"), ("float16", "float16", "int32"),
    ("bfloat16", "float32", "uint16"), ("int8", "int32", "int32"), ("uint8", "int32", "uint8"),
    ("float8_e4m3fn", "float32", "int32"), ("float8_e5m2", "float32", "uint32"),
    ("float32", "float32", "int16"), ("int16", "int32", "int8"),
)  # fmt: skip
"""Factors, sums, metadata."""

Shape = tuple[int, int, int]
_PLACE = Span("a sparse tile", 1, 0, 1)
"""Proofs of barriers tell what statements write by their kind and place: no other stands here."""


def cases() -> Iterator[Case]:
    """Yield the cases of this family."""
    for factor, total, meta in TYPES:
        yield _tiled(factor, total, meta, (24, 20, 96), (16, 16, 32))
    turns = ((False, False, True), (False, True, False), (True, False, False), (True, True, True))
    for flags in turns:
        yield _tiled("float16", "float32", "int16", (19, 13, 80), (16, 16, 32), flags)
    yield _tiled("int8", "int32", "int32", (9, 21, 192), (16, 8, 64), (True, True, True))
    yield _tiled("float32", "float32", "int16", (7, 5, 24), (7, 5, 8), (True, False, True))
    for shape in ((1, 1, 4), (33, 1, 100), (17, 31, 44)):
        yield _tiled("float16", "float32", "int8", shape, (16, 16, 32))


def _turned(shape: tuple[Any, Any], is_turned: bool) -> tuple[Any, Any]:
    return (shape[1], shape[0]) if is_turned else shape


def _tiled(
    factor: str,
    total: str,
    meta: str,
    shape: Shape,
    tile: Shape,
    flags: tuple[bool, bool, bool] = (False, False, False),
) -> Case:
    """Multiply in tiles, pipelined; blocks and the last iteration may overhang."""
    (m, n, k), (tm, tn, tk), (turn_a, turn_e, turn_b) = shape, tile, flags
    each = described_by(dtype_of(meta), dtype_of(factor))
    types = (factor, meta, factor)
    whole_ones = ((m, k // 2), (m, -(-k // each)), (k, n))
    shapes = tuple(_turned(s, turns) for s, turns in zip(whole_ones, flags, strict=True))

    def build() -> Kernel:
        a, e, b = (ir.tensor(*made) for made in zip("AEB", shapes, types, strict=True))
        c, acc = ir.tensor("C", (m, n), total), ir.fragment("acc", (tm, tn), total)
        kept = ir.shared("kept", _turned((tm, tk // 2), turn_a), factor)
        words = ir.shared("words", _turned((tm, tk // each), turn_e), meta)
        dense = ir.shared("dense", _turned((tm, tk), turn_a), factor)
        right = ir.shared("right", _turned((tk, tn), turn_b), factor)

        def body(bx: Any, by: Any) -> Any:
            def part(source: Any, tile: Any, at: tuple[Any, Any], is_turned: bool) -> Any:
                return ir.copy(ir.region(source, _turned(at, is_turned), tile.shape), tile)

            return [
                ir.alloc(acc), ir.fill(acc, 0),
                ir.pipelined(ceildiv(k, tk), lambda ko: [
                    ir.alloc(kept, words, dense, right),
                    part(a, kept, (by * tm, ko * (tk // 2)), turn_a),
                    part(e, words, (by * tm, ko * (tk // each)), turn_e),
                    part(b, right, (ko * tk, bx * tn), turn_b),
                    with_zeros(whole(kept), whole(words), dense,
                               transposed=turn_a, transposed_meta=turn_e, span=_PLACE),
                    ir.gemm(dense, right, acc, transpose_a=turn_a, transpose_b=turn_b),
                ]),
                ir.copy(acc, ir.region(c, (by * tm, bx * tn), (tm, tn))),
            ]  # fmt: skip

        return ir.kernel([a, e, b, c], (ceildiv(n, tn), ceildiv(m, tm)), body, threads=64)

    def expected(a: Array, e: Array, b: Array, c: Array) -> dict[int, Array]:
        left, right = _turn(logical(a, factor), turn_a), _turn(logical(b, factor), turn_b)
        dense = _written_out(left, _turn(e, turn_e), group_of(dtype_of(factor)))
        wide = np.float64 if dense.dtype.kind == "f" else np.int64
        return {3: dense.astype(wide) @ right.astype(wide)}

    letters = "".join("T" if flag else "N" for flag in flags)
    return Case(
        f"gemm/sparse/{factor}-{total}/{meta}-{letters}-{label(shape)}",
        build,
        lambda rng: [
            numbers(rng, shapes[0], factor),
            np.ascontiguousarray(_turn(_words(rng, m, k, meta, factor), turn_e)),
            numbers(rng, shapes[2], factor), poison((m, n), total),
        ],
        expected,
    )  # fmt: skip


def _turn(array: Array, is_turned: bool) -> Array:
    return array.T if is_turned else array


def _words(rng: np.random.Generator, rows: int, depth: int, meta: str, factor: str) -> Array:
    """Return metadata that keep any half of each group; zeros tell of what is behind the end."""
    group, bits = group_of(dtype_of(factor)), dtype_of(meta).bits
    if group == 2:
        codes = rng.choice([0b0100, 0b1110], (rows, depth // group))
    else:
        pairs = [first | second << 2 for second in range(4) for first in range(second)]
        codes = rng.choice(pairs, (rows, depth // group))
    missing = -codes.shape[1] % (bits // NIBBLE)
    codes = np.pad(codes, ((0, 0), (0, missing))).astype(np.uint64)
    shifts = np.arange(bits // NIBBLE, dtype=np.uint64) * np.uint64(NIBBLE)
    words = codes.reshape(rows, -1, bits // NIBBLE) << shifts
    stored = np.bitwise_or.reduce(words, axis=2).astype(f"u{meta.lstrip('u')}")
    result: Array = stored.view(meta)
    return result


def _written_out(kept: Array, words: Array, group: int) -> Array:
    """Return rows with their zeros."""
    rows, half = kept.shape
    bits = words.dtype.itemsize * 8
    shifts = np.arange(bits // NIBBLE, dtype=np.uint64) * np.uint64(NIBBLE)
    unsigned = np.ascontiguousarray(words).view(f"u{words.dtype.itemsize}").astype(np.uint64)
    codes = ((unsigned[..., None] >> shifts) & np.uint64(15)).reshape(rows, -1).astype(int)
    dense = np.zeros((rows, 2 * half), kept.dtype)
    at, each = np.arange(rows), group // 2
    for number in range(2 * half // group):
        code = codes[:, number]
        places = (code >> 1 & 1,) if group == 2 else (code & 3, code >> 2)
        for position, place in enumerate(places):
            dense[at, number * group + place] = kept[:, number * each + position]
    return dense
