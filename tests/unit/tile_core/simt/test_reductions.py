"""Reductions among threads, on layouts made by hand, against the meaning of the operator."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from support.thread_machine import GivenLayouts, agree, calls, poisoned
from tile_core.errors import ShapeMismatch
from tile_core.ir.buffer import Buffer
from tile_core.ir.expr import Call
from tile_core.ir.node import walk
from tile_core.ir.stmt import Launch
from tile_core.layout import Fragment, fully_replicated
from tile_core.layout.preimages import reduced_fragment
from tile_core.ops.control import Barrier
from tile_core.testing.build_ir import (
    alloc,
    copy,
    fill,
    fragment,
    kernel,
    load,
    local,
    parallel,
    reduce,
    region,
    shared,
    store,
    symbol,
    tensor,
)

NUMBERS = ("sum", "max", "min", "abssum", "absmax")
BITS = ("bitand", "bitor", "bitxor")
AROUND = 2
"""Barriers of the kernels themselves."""


def drawn(shape: tuple[int, ...], dtype: str) -> np.ndarray[Any, Any]:
    return np.random.default_rng(sum(shape)).integers(-9, 10, shape).astype(dtype)


def reduced(
    kind: str,
    source: Fragment,
    dim: int,
    threads: int,
    *,
    dtype: str = "int32",
    target: Fragment | None = None,
    into: str = "fragment",
    clear: bool = True,
) -> Launch:
    """Reduce a tile that `source` spreads; the result goes through `into` to a tensor."""
    shape = source.shape
    rows = (*shape[:dim], *shape[dim + 1 :]) or (1,)
    a, b = tensor("A", shape, dtype), tensor("B", rows, dtype)
    x = fragment("x", shape, dtype)
    y: Buffer = (shared if into == "shared" else fragment)("y", rows, dtype)
    k = kernel([a, b], 1, lambda bx: [
        alloc(x, y), copy(a, x), fill(y, 3), Barrier(),
        reduce(kind, x, y, dim, clear=clear), Barrier(), copy(y, b),
    ], threads=threads)  # fmt: skip
    tiles: dict[Buffer, Any] = {x: source}
    if into == "fragment":
        tiles[y] = target or reduced_fragment(source, dim).reshape(rows)
    return agree(k, GivenLayouts(threads, tiles), [drawn(shape, dtype), poisoned(rows, dtype)])


def shuffles(launch: Launch) -> int:
    return sum(isinstance(n, Call) and n.function == "shfl_xor" for n in walk(launch.body))


def barriers(launch: Launch) -> int:
    return sum(name == "sync" for name, _ in calls(launch))


LANES = Fragment((4, 8), lambda i, j: (i * 8 + j, 0))
COLUMNS = Fragment((8, 4), lambda i, j: (i * 4 + j, 0))
WARPS = Fragment((4, 96), lambda i, j: (j, i))  # three warps share a row
ALTERNATE = Fragment((2, 64), lambda i, j: (i * 32 + j % 32 + j // 32 * 64, 0))
TWICE = Fragment((4, 8), lambda i, j, rep: (rep * 32 + i * 8 + j, 0), replicate=2)
IRREGULAR = Fragment((8, 12), lambda i, j: (i * 12 + j, 0))
MIXED = Fragment((8, 24), lambda i, j: (j % 4 + i % 4 * 8, j // 4 + i // 4 * 6))

LAYOUTS = {
    "lanes": (LANES, 32), "warps": (WARPS, 96), "alternate": (ALTERNATE, 128),
    "twice": (TWICE, 64), "irregular": (IRREGULAR, 96),
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("kind", [*NUMBERS, *BITS])
def test_every_kind(kind: str, name: str) -> None:
    source, threads = LAYOUTS[name]
    reduced(kind, source, 1, threads)


@pytest.mark.parametrize("kind", NUMBERS)
def test_floats_old_values_and_memory(kind: str) -> None:
    for into in ("fragment", "shared"):
        reduced(kind, WARPS, 1, 96, dtype="float32", clear=False, into=into)
        reduced(kind, IRREGULAR, 1, 96, dtype="float16", clear=False, into=into)


def test_how_the_parts_come_together() -> None:
    in_lanes = reduced("sum", LANES, 1, 32)
    assert (shuffles(in_lanes), barriers(in_lanes)) == (3, 0 + AROUND)
    in_warps = reduced("sum", WARPS, 1, 96)
    assert (shuffles(in_warps), barriers(in_warps)) == (5, 2 + AROUND)
    in_memory = reduced("sum", IRREGULAR, 1, 96)
    assert (shuffles(in_memory), barriers(in_memory)) == (0, 2 + AROUND)


@pytest.mark.parametrize("dim", [0, 1])
def test_tiles_of_fewer_threads_than_the_block(dim: int) -> None:
    reduced("sum", LANES, dim, 96)
    reduced("max", WARPS, dim, 128)
    reduced("sum", MIXED, dim, 64)


def test_lanes_that_would_ask_beyond_the_block() -> None:
    """The last warp has 16 threads; lanes 4 bits apart would exchange with nobody."""
    wide = Fragment((8, 32), lambda i, j: (j, i))
    launch = reduced("sum", wide, 1, 48)
    assert (shuffles(launch), barriers(launch)) == (0, 2 + AROUND)
    narrow = Fragment((6, 8), lambda i, j: (i * 8 + j, 0))
    assert shuffles(reduced("sum", narrow, 1, 48)) == 3


def test_results_that_others_hold() -> None:
    """The eight lanes of a row meet first, unless no formula tells who wants its total."""
    everywhere = fully_replicated((4,), 32)
    assert shuffles(reduced("sum", LANES, 1, 32, target=everywhere)) == 3
    elsewhere = Fragment((4,), lambda i: (31 - i, 0), threads=32)
    assert shuffles(reduced("max", LANES, 1, 32, target=elsewhere)) == 0


@pytest.mark.parametrize("clear", [True, False])
def test_results_whose_registers_are_padded(clear: bool) -> None:
    """Six rows in eight registers: the last two belong to no row, nor to memory of the parts."""
    by_warps = Fragment((6, 32), lambda i, j: (i * 32 + j, 0))
    padded = Fragment((6,), lambda i: (i % 4, i // 4), threads=4)
    launch = reduced("sum", by_warps, 1, 192, target=padded, clear=clear)
    assert (shuffles(launch), barriers(launch)) == (5, 2 + AROUND)


def test_a_whole_tile_to_one_number() -> None:
    reduced("sum", Fragment((96,), lambda i: (i, 0)), 0, 96)
    reduced("absmax", Fragment((64,), lambda i: (i % 32, i // 32)), 0, 32)


@pytest.mark.parametrize(
    ("source", "dim", "start", "extents"),
    [
        (LANES, 1, (0, 2), (4, 1)),
        (Fragment((8, 4), lambda i, j: (i * 4 + j, 0)), 0, (1, 0), (1, 4)),
    ],
)
def test_into_a_part_of_a_tensor(
    source: Fragment, dim: int, start: tuple[int, int], extents: tuple[int, int]
) -> None:
    a, b = tensor("A", source.shape, "int32"), tensor("B", (4, 4), "int32")
    x = fragment("x", source.shape, "int32")
    k = kernel([a, b], 1, lambda bx: [
        alloc(x), copy(a, x), reduce("sum", x, region(b, start, extents), dim),
    ], threads=32)  # fmt: skip
    old = np.arange(16, dtype=np.int32).reshape(4, 4)
    agree(k, GivenLayouts(32, {x: source}), [drawn(source.shape, "int32"), old])


def test_each_thread_into_its_own() -> None:
    a, b = tensor("A", (4, 8), "int32"), tensor("B", (32, 4), "int32")
    x, mine = fragment("x", (4, 8), "int32"), local("mine", (4,), "int32")
    k = kernel([a, b], 1, lambda bx, tx, ty, tz: [
        alloc(x, mine), copy(a, x), reduce("sum", x, mine, 1),
        [store(b, (tx, i), load(mine, i)) for i in range(4)],
    ], threads=32, thread_indices=True)  # fmt: skip
    agree(k, GivenLayouts(32, {x: LANES}), [drawn((4, 8), "int32"), poisoned((32, 4), "int32")])


def test_registers_of_unknown_extent() -> None:
    n = symbol("n")
    a, x, y = tensor("A", (n,), "int32"), fragment("x", (4, 8), "int32"), shared("y", (4,), "int32")
    k = kernel([a, n], 1, lambda bx: [
        alloc(x, y), parallel((4, 8), lambda i, j: store(x, (i, j), 1)),
        reduce("sum", region(x, (0, 0), (4, n)), y, 1),
    ], threads=32)  # fmt: skip
    with pytest.raises(ShapeMismatch) as caught:
        agree(k, GivenLayouts(32, {x: LANES}), [np.zeros(8, np.int32), 8])
    assert caught.value.hint == "reduce a tile of fixed extents"
