"""Scans by warps, and by what there is of one, against the meaning of the operator."""

from __future__ import annotations

import numpy as np
import pytest

from support.thread_machine import GivenLayouts, agree, poisoned
from tile_core.ir.buffer import Buffer
from tile_core.layout import Fragment
from tile_core.ops.control import Barrier
from tile_core.ops.reduce import ReduceKind
from tile_core.ops.scan import Scan
from tile_core.testing.build_ir import (
    alloc,
    copy,
    fragment,
    kernel,
    operand,
    region,
    shared,
    tensor,
)


def scanned(
    shape: tuple[int, ...],
    dim: int,
    threads: int,
    *,
    kind: ReduceKind = ReduceKind.SUM,
    reverse: bool = False,
    dtype: str = "int32",
    source: Buffer | None = None,
    tiles: dict[Buffer, Fragment] | None = None,
) -> None:
    """Scan a tile and compare every element."""
    a, b = tensor("A", shape, dtype), tensor("B", shape, dtype)
    x, y = source or shared("x", shape, dtype), shared("y", shape, dtype)
    k = kernel([a, b], 1, lambda bx: [
        alloc(x, y), copy(a, x), Barrier(),
        Scan(kind, operand(x), operand(y), dim, reverse), Barrier(), copy(y, b),
    ], threads=threads)  # fmt: skip
    values = np.random.default_rng(threads).integers(-9, 10, shape).astype(dtype)
    agree(k, GivenLayouts(threads, tiles or {}), [values, poisoned(shape, dtype)])


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("threads", [1, 3, 8, 20, 31, 32, 40, 48, 96, 128])
def test_blocks_of_any_size(threads: int) -> None:
    """Threads that do not fill a warp take part where they are all, and stand by elsewhere."""
    scanned((5, 70), 1, threads)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", [ReduceKind.SUM, ReduceKind.MAX])
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(
    ("shape", "dim"),
    [((70,), 0), ((33, 3), 0), ((3, 33), 1), ((2, 5, 3), 1), ((4, 1), 1), ((1, 64), 1)],
)
def test_any_dimension(shape: tuple[int, ...], dim: int, reverse: bool, kind: ReduceKind) -> None:
    scanned(shape, dim, 64, kind=kind, reverse=reverse)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32"])
def test_element_types(dtype: str) -> None:
    scanned((3, 40), 1, 64, dtype=dtype)


def test_register_tiles_of_any_layout() -> None:
    for thread in (lambda i, j: (j % 8 + i * 8, j // 8), lambda i, j: (i * 12 + j // 4, j % 4)):
        x = fragment("x", (4, 48), "int32")
        scanned((4, 48), 1, 64, source=x, tiles={x: Fragment((4, 48), thread, threads=64)})


def test_a_part_in_place() -> None:
    a, b = tensor("A", (6, 40), "int32"), tensor("B", (6, 40), "int32")
    x = shared("x", (6, 40), "int32")
    part = region(x, (1, 4), (3, 34))
    k = kernel([a, b], 1, lambda bx: [
        alloc(x), copy(a, x), Barrier(), Scan(ReduceKind.SUM, part, part, 1), Barrier(),
        copy(x, b),
    ], threads=48)  # fmt: skip
    values = np.arange(240, dtype=np.int32).reshape(6, 40)
    agree(k, GivenLayouts(48, {}), [values, poisoned((6, 40), "int32")])
