"""Copies by instructions of whole waves: every element at its place, and why there are none."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from support.thread_machine import WAVES, GivenLayouts, agree, calls, poisoned, thread_program
from tile_core.dtypes import dtype_of
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import as_expr
from tile_core.ir.expr import Call, Const
from tile_core.ir.node import walk
from tile_core.ir.printer import print_stmt
from tile_core.ir.stmt import AnnotateSafeValue, For, If, Kernel, Launch
from tile_core.layout import Layout, padded, row_major, shared_operand, swizzled, widest_swizzle
from tile_core.ops.async_copy import CopyCommit, CopyWait
from tile_core.ops.control import Barrier
from tile_core.remarks import collected_remarks
from tile_core.simt.simplify import simplify_indices
from tile_core.testing.build_ir import alloc, copy, kernel, region, shared, symbol, tensor

WIDE = replace(WAVES, name="wide", features=WAVES.features | {"counted_load_16"})


def numbers(shape: tuple[int, ...], dtype: str) -> Any:
    return np.random.default_rng(0).integers(-6, 7, shape).astype(dtype_of(dtype).numpy())


def bits_of(dtype: str) -> int:
    return dtype_of(dtype).bits


def through_tile(
    source: Buffer, tile: Buffer, out: Buffer, starts: tuple[Any, ...], *before: Any,
    threads: int = 128, blocks: int = 2,
) -> Kernel:  # fmt: skip
    """Return a kernel that copies a part of a tensor to a tile, and the tile to another tensor."""

    def body(bx: Any) -> list[Any]:
        begin = [bx * s if k == 0 else s for k, s in enumerate(starts)]
        extents = (1,) * (source.rank - tile.rank) + tile.static_shape
        load = replace(copy(region(source, begin, extents), tile), is_async=True)
        whole = region(out, (bx, *(0,) * tile.rank), (1, *tile.static_shape))
        return [
            *alloc(tile), *before, load, CopyCommit(), CopyWait(0), Barrier(), copy(tile, whole)
        ]  # fmt: skip

    return kernel([source, out], blocks, body, threads=threads)


def check(
    tile: Buffer, layout: Layout, sizes: tuple[int, ...], starts: tuple[int, ...], threads: int,
    machine: Any = WAVES,
) -> list[tuple[str, int]]:  # fmt: skip
    """Run a copy in both ways; return the device calls of it."""
    dtype = str(tile.dtype)
    source, out = tensor("A", sizes, dtype), tensor("B", (2, *tile.static_shape), dtype)
    k = through_tile(source, tile, out, starts, threads=threads)
    given = GivenLayouts(threads, {tile: layout})
    args = [numbers(sizes, dtype), poisoned((2, *tile.static_shape), dtype)]
    return calls(agree(k, given, args, machine=machine))


LAYOUTS = {
    "rows": lambda shape, bits: row_major(shape),
    "operand": lambda shape, bits: shared_operand(shape, bits, allow_pad=False),
    "swizzled": lambda shape, bits: swizzled(shape, bits, widest_swizzle(shape[-1], bits)),
    "panels": lambda shape, bits: Layout(
        shape, lambda i, j: (j // 16, i, j % 16), (shape[1] // 16, shape[0], 16)
    ),
}


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("how", LAYOUTS)
@pytest.mark.parametrize("dtype", ["float16", "float32", "int8", "bfloat16", "float64"])
@pytest.mark.parametrize(("rows", "columns", "threads"), [(64, 32, 128), (32, 64, 256)])
def test_every_element_is_at_its_place(
    how: str, dtype: str, rows: int, columns: int, threads: int
) -> None:
    tile = shared("S", (rows, columns), dtype)
    layout = LAYOUTS[how]((rows, columns), bits_of(dtype))
    found = check(tile, layout, (2 * rows - 5, columns + 4), (rows, 4), threads)
    assert ("counted_load", 4) in found
    assert all(name != "async_copy" for name, _ in found)


def test_waves_without_words_in_the_last_round() -> None:
    tile = shared("S", (40, 32), "float16")
    check(tile, row_major((40, 32)), (80, 32), (40, 0), 256)


def test_words_of_sixteen_bytes() -> None:
    tile = shared("S", (64, 64), "float16")
    layout = swizzled((64, 64), 16, widest_swizzle(64, 16))
    assert ("counted_load", 16) in check(tile, layout, (120, 64), (64, 0), 128, WIDE)
    assert ("counted_load", 4) in check(
        tile, layout, (120, 68), (64, 4), 128, WIDE
    )  # rows of 136 B


def test_words_of_four_bytes_where_wide_ones_fill_no_wave() -> None:
    tile = shared("T", (16, 16), "float16")
    assert ("counted_load", 4) in check(tile, row_major((16, 16)), (64, 64), (16, 16), 64, WIDE)


def test_tensors_of_three_dimensions() -> None:
    tile = shared("S", (32, 32), "float16")
    source, out = tensor("A", (2, 40, 3, 32), "float16"), tensor("B", (2, 32, 32), "float16")

    def body(bx: Any) -> list[Any]:
        part = region(source, (bx, 8, 1, 0), (1, 32, 1, 32))
        whole = region(out, (bx, 0, 0), (1, 32, 32))
        load = replace(copy(part, tile), is_async=True)
        return [*alloc(tile), load, CopyCommit(), CopyWait(0), Barrier(), copy(tile, whole)]

    k = kernel([source, out], 2, body, threads=64)
    given = GivenLayouts(64, {tile: row_major((32, 32))})
    args = [numbers((2, 40, 3, 32), "float16"), poisoned((2, 32, 32), "float16")]
    assert ("counted_load", 4) in calls(agree(k, given, args, machine=WAVES))


def lowered(k: Kernel, given: GivenLayouts) -> Launch:
    (launch,) = (n for n in walk(k.body) if isinstance(n, Launch))
    made, ctx = thread_program(launch, given, machine=WAVES)
    return replace(made, body=simplify_indices(made.body, ctx.env))


def test_what_it_looks_like() -> None:
    tile = shared("S", (64, 32), "float16")
    source, out = tensor("A", (100, 64), "float16"), tensor("B", (2, 64, 32), "float16")
    k = through_tile(source, tile, out, (64, 32))
    layout = swizzled((64, 32), 16, widest_swizzle(32, 16))
    text = print_stmt(lowered(k, GivenLayouts(128, {tile: layout})).body)
    (line,) = [line.strip() for line in text.splitlines() if "counted_load" in line]
    assert line == (
        "eval device[int32] counted_load(4, "
        "&w S[(r * 128 + device[int32] uniform(tx // 64) * 64) * 2], &r A[bx * 4096 + 32], "
        "r * 512 + tx // 16 * 64 + (tx // 4 % 4 ^ tx // 32) * 8 + tx % 4 * 2, "
        "bx * 64 + r * 8 + tx // 16 < 100)"
    )


def test_strides_that_only_calls_tell_ask_for_a_branch() -> None:
    n = symbol("n")
    tile = shared("S", (64, 32), "float16")
    source = tensor("A", (128, n * 2), "float16")
    k = through_tile(source, tile, tensor("B", (2, 64, 32), "float16"), (64, 0))
    made = lowered(k, GivenLayouts(128, {tile: row_major((64, 32))}))
    (branch,) = (node for node in walk(made.body) if isinstance(node, If) and node.otherwise)
    near, far = (_index_of(side) for side in (branch.then, branch.otherwise))
    assert (str(near.dtype), str(far.dtype)) == ("int32", "int64")


def _index_of(side: Any) -> Any:
    (call,) = (n for n in walk(side) if isinstance(n, Call) and n.function == "device:counted_load")
    return call.args[3]


@pytest.mark.parametrize("count", [8, 64])
def test_rounds_are_written_out(count: int) -> None:
    tile = shared("S", (count, 128), "float32")
    source, out = tensor("A", (count * 2, 128), "float32"), tensor("B", (2, count, 128))
    made = lowered(through_tile(source, tile, out, (count, 0)), GivenLayouts(128, {}))
    (loop,) = (
        n for n in walk(made.body) if isinstance(n, For) and "counted_load" in str(print_stmt(n))
    )
    assert isinstance(loop.stop, Const)
    assert loop.stop.value == count


def reason(k: Kernel, given: GivenLayouts) -> str:
    """Return why a copy is not one of waves; it is one of threads then."""
    with collected_remarks() as said:
        made = lowered(k, given)
    assert not any(name == "counted_load" for name, _ in calls(made))
    (note,) = [r.message for r in said if r.kind == "missed"]
    return note.removeprefix("this copy is synchronous, by way of registers: ")


def a_copy(
    shape: tuple[int, int] = (64, 32),
    sizes: tuple[int, ...] = (100, 64),
    starts: tuple[Any, ...] = (64, 32),
    dtype: str = "float16",
    layout: Layout | None = None,
    *before: Any,
    threads: int = 128,
    into: str = "",
) -> tuple[Kernel, GivenLayouts]:
    tile = shared("S", shape, into or dtype)
    source, out = tensor("A", sizes, dtype), tensor("B", (2, *shape), into or dtype)
    told = [AnnotateSafeValue(source, value) for value in before]
    k = through_tile(source, tile, out, starts, *told, threads=threads)
    return k, GivenLayouts(threads, {} if layout is None else {tile: layout})


@pytest.mark.parametrize(
    ("made", "why"),
    [
        (a_copy(sizes=(100, 63)), "neighbours in the tensor are not known to begin at 4 bytes"),
        (a_copy(starts=(64, 31)), "neighbours in the tensor are not known to begin at 4 bytes"),
        (a_copy(into="float32"), "it converts elements"),
        (a_copy(dtype="bool"), "elements of bool are not what lanes copy"),
        (a_copy(threads=96), "96 threads are not whole waves of 64"),
        (a_copy((63, 6)), "756 bytes are not 4 for each lane of a wave"),
        (a_copy(layout=padded((64, 32), 8)), "the tile has gaps in memory"),
        (
            a_copy(layout=Layout((64, 32), lambda i, j: (j, i))),
            "neighbours in the tensor are no neighbours in the tile",
        ),
        (a_copy((64, 32), (100, 64), (64, 32), "float16", None, as_expr(1)),
         "what is outside of the tensor is not 0"),
    ],
)  # fmt: skip
def test_why_waves_do_not_copy(made: tuple[Kernel, GivenLayouts], why: str) -> None:
    assert reason(*made) == why


def test_a_part_of_a_tile() -> None:
    tile = shared("S", (64, 64), "float16")
    source, out = tensor("A", (64, 64), "float16"), tensor("B", (64, 64), "float16")
    part = copy(region(source, (0, 0), (64, 32)), region(tile, (0, 32), (64, 32)))
    k = kernel(
        [source, out], 1,
        lambda bx: [*alloc(tile), replace(part, is_async=True), copy(tile, out)],
        threads=128,
    )  # fmt: skip
    assert reason(k, GivenLayouts(128, {})) == "it fills a part of a tile"
