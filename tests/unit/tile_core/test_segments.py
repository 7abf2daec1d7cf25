"""Copies that are one stretch of bytes on both sides: which the engine makes so, and which not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from support.remarked import remarked
from tile_core.errors import UnsupportedOnTarget
from tile_core.ir.buffer import Buffer
from tile_core.ir.node import walk
from tile_core.ir.stmt import AnnotateLayout, Kernel, Stmt
from tile_core.layout import Layout, row_major
from tile_core.ops.atomic import AtomicKind, AtomicTile
from tile_core.ops.bulk_copy import BulkCopy
from tile_core.passes.lower_bulk_loads import lower_bulk_loads
from tile_core.passes.lower_bulk_reductions import lower_bulk_reductions
from tile_core.passes.lower_bulk_stores import lower_bulk_stores
from tile_core.testing import build_ir as ir
from tile_cuda.machine import machine

HOPPER = machine("sm_90a")


def kernel(make: Any, *params: Buffer, blocks: int = 4, cluster: tuple[int, ...] = ()) -> Kernel:
    made = ir.kernel(params, blocks, lambda bx: make(bx), threads=128)
    if not cluster:
        return made
    launch = next(n for n in walk(made.body) if hasattr(n, "cluster"))
    return replace(made, body=replace(launch, cluster=cluster))


def moved(made: Kernel) -> list[BulkCopy]:
    return [n for n in walk(made.body) if isinstance(n, BulkCopy)]


def stored(
    tensor: Buffer, tile: Buffer, *more: Stmt, step: int | None = None, **options: Any
) -> Kernel:
    """Return a kernel that stores a tile, at `step` elements of the first dimension per block."""
    shape = tile.static_shape or ()
    stride = shape[0] if step is None else step

    def body(bx: Any) -> list[Stmt]:
        where = ir.region(tensor, (bx * stride, *([0] * (len(shape) - 1))), shape)
        return [*ir.alloc(tile), ir.fill(tile, 1), *more, ir.copy(tile, where)]

    return kernel(body, tensor, **options)


ROW = ir.tensor("y", (1024,), "float16")
ROWS = ir.tensor("y", (32, 6))

STRETCHES = {
    "a row": (ROW, ir.shared("t", (256,), "float16")),
    "a row of many bytes": (ir.tensor("y", (4000,)), ir.shared("t", (1000,))),
    "16 bytes": (ir.tensor("y", (64,), "int8"), ir.shared("t", (16,), "int8")),
    "rows of 24 bytes": (ROWS, ir.shared("t", (8, 6))),
    "rows of 1200 bytes": (ir.tensor("y", (32, 300)), ir.shared("t", (8, 300))),
    "six dimensions": (
        ir.tensor("y", (8, 2, 2, 2, 2, 4)),
        ir.shared("t", (2, 2, 2, 2, 2, 4)),
    ),
}


@pytest.mark.parametrize("name", STRETCHES)
def test_bytes_side_by_side_need_no_map(name: str) -> None:
    tensor, tile = STRETCHES[name]
    (copy,) = moved(lower_bulk_stores(stored(tensor, tile), HOPPER))
    assert copy.is_1d
    assert remarked(lower_bulk_stores, stored(tensor, tile), HOPPER).notes == ()


@pytest.mark.parametrize(
    ("tensor", "tile"),
    [
        (ir.tensor("y", (1020,), "float16"), ir.shared("t", (256,), "float16")),  # leaves it
        (ir.tensor("y", (32, 64)), ir.shared("t", (8, 64))),  # chunks may be exchanged
        (ir.tensor("y", (32, 32)), ir.shared("t", (8, 12))),  # parts of rows
    ],
    ids=["outside", "wide rows", "parts of rows"],
)
def test_others_are_boxes(tensor: Buffer, tile: Buffer) -> None:
    (copy,) = moved(lower_bulk_stores(stored(tensor, tile), HOPPER))
    assert not copy.is_1d


def test_blocks_of_a_cluster_can_share_boxes() -> None:
    made = stored(ROW, STRETCHES["a row"][1], cluster=(2, 1, 1))
    (copy,) = moved(lower_bulk_stores(made, HOPPER))
    assert not copy.is_1d


LEFT = {
    "20 bytes": (
        stored(ir.tensor("y", (40,), "float16"), ir.shared("t", (10,), "float16")),
        "rows of 10 elements are no multiple of 16 bytes",
    ),
    "an odd place": (
        stored(ROWS, ir.shared("t", (8, 6)), step=1),
        "rows of 6 elements are no multiple of 16 bytes",
    ),
    "outside": (
        stored(ir.tensor("y", (31, 6)), ir.shared("t", (8, 6))),
        "rows of 6 elements are no multiple of 16 bytes",
    ),
    "rows longer than a box": (
        stored(ir.tensor("y", (15, 300)), ir.shared("t", (4, 300))),
        "rows of 300 elements are longer than the 256 of a box",
    ),
    "more rows than coordinates count": (
        stored(ir.tensor("y", ((1 << 31) + 8, 128)), ir.shared("t", (8, 64))),
        "'y' has 2147483656 elements along a dimension, more than 2^31",
    ),
    "rows far apart": (
        stored(ir.tensor("y", (32, 128), strides=(1 << 38, 1)), ir.shared("t", (8, 64))),
        "rows of 'y' are 2^40 bytes apart or more",
    ),
    "rows that begin between multiples of 128 bytes": (
        stored(ir.tensor("y", (1028, 16)), ir.shared("t", (514, 4))),
        "it is not made of boxes that begin at multiples of 128 bytes",
    ),
    "another type": (
        stored(ROW, ir.shared("t", (256,))),
        "it converts float32 to float16",
    ),
}


@pytest.mark.parametrize("name", LEFT)
def test_what_stays_with_the_threads_has_a_reason(name: str) -> None:
    made, why = LEFT[name]
    assert lower_bulk_stores(made, HOPPER) is made
    (note,) = remarked(lower_bulk_stores, made, HOPPER).notes
    assert note.message == f"'t' is stored by the threads: {why}"


@pytest.mark.parametrize(
    ("shape", "strides"), [((1 << 31, 128), None), ((32, 128), ((1 << 38) - 4, 1))]
)
def test_the_largest_tensors_are_still_copied_in_boxes(shape: Any, strides: Any) -> None:
    tensor = ir.tensor("y", shape, strides=strides)
    assert len(moved(lower_bulk_stores(stored(tensor, ir.shared("t", (8, 64))), HOPPER))) == 1


def test_layouts_of_users_and_of_products_are_left_alone() -> None:
    tile = ir.shared("t", (8, 6))
    other = ir.copy(ir.region(ROWS, (0, 0), (8, 6)), tile)
    assert moved(lower_bulk_stores(stored(ROWS, tile, other), HOPPER)) == []


def test_tiles_that_users_store_in_another_way_are_left_to_the_threads() -> None:
    """Every other row of this tile is empty."""
    tile, tensor = ir.shared("t", (8, 64)), ir.tensor("y", (32, 64))
    padded = AnnotateLayout(tile, Layout((8, 64), lambda i, j: i * 128 + j))
    made = stored(tensor, tile, padded)
    assert lower_bulk_stores(made, HOPPER) is made
    (note,) = remarked(lower_bulk_stores, made, HOPPER).notes
    assert note.message.startswith(
        "'t' is stored by the threads: its 8 rows of 256 bytes are not stored in boxes"
    )


@pytest.mark.parametrize("columns", [64, 6])
def test_users_may_say_that_rows_follow_each_other(columns: int) -> None:
    tile, tensor = ir.shared("t", (8, columns)), ir.tensor("y", (32, columns))
    plain = AnnotateLayout(tile, row_major((8, columns)))
    (copy,) = moved(lower_bulk_stores(stored(tensor, tile, plain), HOPPER))
    assert copy.is_1d == (columns == 6)


def test_machines_without_an_engine_have_nothing_to_say() -> None:
    assert remarked(lower_bulk_stores, LEFT["20 bytes"][0], machine("sm_80")).notes == ()
    assert remarked(lower_bulk_reductions, LEFT["20 bytes"][0], machine("sm_80")).notes == ()


@pytest.mark.parametrize(("count", "is_1d"), [(256, True), (250, None)])
def test_loads_that_ask_for_the_engine(count: int, is_1d: bool | None) -> None:
    x, tile = ir.tensor("x", (4 * count,), "float16"), ir.shared("t", (count,), "float16")

    def body(bx: Any) -> list[Stmt]:
        source = ir.region(x, (bx * count,), (count,))
        return [*ir.alloc(tile), replace(ir.copy(source, tile), prefer_instruction="tma")]

    if is_1d is None:
        with pytest.raises(UnsupportedOnTarget, match="rows of 250 elements are no multiple of 16"):
            lower_bulk_loads(kernel(body, x), HOPPER)
        return
    (copy,) = moved(lower_bulk_loads(kernel(body, x), HOPPER))
    assert copy.is_1d


@pytest.mark.parametrize(
    ("kind", "dtype", "count", "found"),
    [
        (AtomicKind.ADD, "float16", 256, True),
        (AtomicKind.MAX, "float16", 256, False),
        (
            AtomicKind.ADD,
            "float64",
            256,
            "the copy engine does not reduce elements of float64 this way",
        ),
        (AtomicKind.ADD, "float16", 250, "rows of 250 elements are no multiple of 16 bytes"),
    ],
    ids=str,
)
def test_updates(kind: AtomicKind, dtype: str, count: int, found: bool | str) -> None:
    """Stretches of bytes can be added; the least and the greatest are found in boxes."""
    y, tile = ir.tensor("y", (4 * count,), dtype), ir.shared("t", (count,), dtype)

    def body(bx: Any) -> list[Stmt]:
        target = ir.region(y, (bx * count,), (count,))
        return [*ir.alloc(tile), ir.fill(tile, 1), AtomicTile(kind, ir.operand(tile), target)]

    made = kernel(body, y)
    copies = moved(lower_bulk_reductions(made, HOPPER))
    notes = [note.message for note in remarked(lower_bulk_reductions, made, HOPPER).notes]
    if isinstance(found, str):
        assert copies == []
        assert notes == [f"'y' is updated by the threads: {found}"]
    else:
        assert [copy.is_1d for copy in copies] == [found]
        assert notes == []


@pytest.mark.parametrize("asked", [True, False])
def test_updates_by_registers_are_made_in_bulk_where_the_program_asks(*, asked: bool) -> None:
    y, tile = ir.tensor("y", (1024,), "float16"), ir.fragment("t", (256,), "float16")

    def body(bx: Any) -> list[Stmt]:
        target = ir.region(y, (bx * 256,), (256,))
        update = AtomicTile(AtomicKind.ADD, ir.operand(tile), target, use_bulk=asked)
        return [*ir.alloc(tile), ir.fill(tile, 1), update]

    made, said = remarked(lower_bulk_reductions, kernel(body, y), HOPPER)
    assert [copy.src.buffer.name for copy in moved(made)] == (["t_rows"] if asked else [])
    assert said == ()
