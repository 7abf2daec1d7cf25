"""Layout inference: levels, consequences, conflicts and the fallback."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tile_core.errors import FrontendValueError, LayoutConflict
from tile_core.ir.buffer import Buffer
from tile_core.ir.stmt import AnnotateLayout, Kernel
from tile_core.layout import Fragment, Layout, padded, row_major
from tile_core.ops.copy import Copy, Fill
from tile_core.ops.rule import InferLevel, LayoutMap, Rule
from tile_core.passes.infer_layouts import infer_layouts
from tile_core.target import Target
from tile_core.testing import build_ir as ir

TARGET = Target("toy")
PADDED = padded((4, 8), 2)
SWAPPED = Layout((4, 8), lambda i, j: (j, i))


def demand(level: InferLevel, layout: Layout) -> Any:
    """Return an inference function: `layout` for what is written, at `level` only."""

    def infer(op: Any, ctx: Any, asked: InferLevel) -> LayoutMap:
        buffer = op.writes()[0].buffer
        if asked is not level or ctx.layout_of(buffer) is not None:
            return {}
        return {buffer: layout}

    return infer


def follow(op: Copy, ctx: Any, level: InferLevel) -> LayoutMap:
    """Give both sides of a copy the layout of the side that has one."""
    src, dst = op.src.buffer, op.dst.buffer
    known = ctx.layout_of(src) or ctx.layout_of(dst)
    if known is None or level is InferLevel.STRICT:
        return {}
    return {b: known for b in (src, dst) if not b.scope.is_global}


def rules(fill: Any, copy: Any = follow) -> tuple[Rule[Any], ...]:
    def lower(op: Any, ctx: Any) -> None:
        return None

    return (
        Rule(name="fill", op=Fill, lower=lower, infer_layout=fill),
        Rule(name="copy", op=Copy, lower=lower, infer_layout=copy),
    )


def chain(*annotations: AnnotateLayout) -> tuple[Kernel, list[Buffer]]:
    """Return a kernel that copies t0 to t1 to t2 and then fills t0."""
    tiles = [ir.shared(f"t{k}", (4, 8)) for k in range(3)]
    body = [
        *ir.alloc(*tiles),
        *annotations,
        ir.copy(tiles[0], tiles[1]),
        ir.copy(tiles[1], tiles[2]),
        ir.fill(tiles[0], 0),
    ]
    return ir.kernel([ir.tensor("A", (4, 8))], 1, lambda bx: body), tiles


@pytest.mark.parametrize("level", list(InferLevel))
def test_a_demand_travels_along_copies(level: InferLevel) -> None:
    kernel, tiles = chain()
    found = infer_layouts(kernel, TARGET, rules(demand(level, PADDED)))
    for tile in tiles:
        assert found.layout_of(tile).same_function(PADDED)
    assert found.reasons[tiles[0]].who == "fill"
    assert found.reasons[tiles[2]].who == "copy"


def test_what_nobody_wants_is_stored_by_rows() -> None:
    kernel, tiles = chain()
    found = infer_layouts(kernel, TARGET, rules(lambda op, ctx, level: {}))
    assert all(found.layout_of(t).same_function(row_major((4, 8))) for t in tiles)
    assert found.reasons[tiles[0]].who == "nobody"


def test_annotations_hold_from_the_start() -> None:
    kernel, tiles = chain()
    annotated = ir.shared("t", (4, 8))
    body = [*ir.alloc(annotated), AnnotateLayout(annotated, SWAPPED), ir.fill(annotated, 0)]
    kernel = ir.kernel([ir.tensor("A", (4, 8))], 1, lambda bx: body)
    found = infer_layouts(kernel, TARGET, rules(demand(InferLevel.STRICT, PADDED)))
    assert found.layout_of(annotated).same_function(SWAPPED)


def test_views_see_the_layout_of_their_storage() -> None:
    tile = ir.shared("t", (4, 8))
    flat = ir.view(tile, (32,))
    body = [*ir.alloc(tile), ir.fill(flat, 0)]
    kernel = ir.kernel([ir.tensor("A", (4, 8))], 1, lambda bx: body)
    wanted = Layout((32,), lambda i: (i ^ 1,))
    found = infer_layouts(kernel, TARGET, rules(demand(InferLevel.COMMON, wanted)))
    assert found.layout_of(tile).address(1, 2) == 11
    assert found.layout_of(flat).address(10) == 11


def test_a_conflict_names_both_sides_and_the_element() -> None:
    def stubborn(op: Fill, ctx: Any, level: InferLevel) -> LayoutMap:
        return {op.dst.buffer: SWAPPED} if level is InferLevel.FREE else {}

    def eager(op: Copy, ctx: Any, level: InferLevel) -> LayoutMap:
        return {op.src.buffer: PADDED} if level is InferLevel.STRICT else {}

    kernel, _ = chain()
    with pytest.raises(LayoutConflict) as caught:
        infer_layouts(kernel, TARGET, rules(stubborn, eager))
    text = str(caught.value)
    assert "'t0' cannot be stored as both copy and fill demand" in text
    assert "element (0, 1) would lie at 1 for copy and at 4 for fill" in text
    assert "hint: copy it into a second buffer" in text


def test_an_annotation_that_the_machine_does_not_admit_is_left_out() -> None:
    tile = ir.shared("t", (4, 8))
    body = [*ir.alloc(tile), AnnotateLayout(tile, SWAPPED)]
    kernel = ir.kernel([ir.tensor("A", (4, 8))], 1, lambda bx: body)
    asked: list[tuple[Buffer, Layout]] = []

    def refuses(buffer: Buffer, layout: Layout) -> bool:
        asked.append((buffer, layout))
        return False

    found = infer_layouts(kernel, TARGET, (), refuses)
    assert asked == [(tile, SWAPPED)]
    assert found.layout_of(tile).same_function(row_major((4, 8)))


def test_fragments_do_not_say_where_memory_is() -> None:
    tile = ir.fragment("t", (4, 8))
    threads = Fragment((4, 8), lambda i, j: (i * 8 + j, 0))
    body = [*ir.alloc(tile), AnnotateLayout(tile, threads)]
    kernel = ir.kernel([ir.tensor("A", (4, 8))], 1, lambda bx: body)
    found = infer_layouts(kernel, TARGET, ())
    assert found.layout_of(tile).same_function(row_major((4, 8)))


def test_a_view_of_wider_elements_keeps_their_parts_together() -> None:
    tile = ir.shared("t", (4, 8))
    pairs = ir.view(tile, (4, 4), "float64")
    body = [*ir.alloc(tile), ir.fill(pairs, 0), ir.fill(tile, 0)]
    kernel = ir.kernel([ir.tensor("A", (4, 8))], 1, lambda bx: body)

    def swap(op: Fill, ctx: Any, level: InferLevel) -> LayoutMap:
        return {tile: SWAPPED} if op.dst.buffer is tile and level is InferLevel.FREE else {}

    with pytest.raises(LayoutConflict) as caught:
        infer_layouts(kernel, TARGET, rules(swap))
    assert "'t' cannot be stored as fill demands: a view of it is in the way" in str(caught.value)


def test_equal_places_are_no_conflict_and_room_at_the_end_is_kept() -> None:
    def narrow(op: Fill, ctx: Any, level: InferLevel) -> LayoutMap:
        return {op.dst.buffer: row_major((4, 8))} if level is InferLevel.STRICT else {}

    def roomy(op: Copy, ctx: Any, level: InferLevel) -> LayoutMap:
        if level is not InferLevel.FREE:
            return {}
        return {op.src.buffer: Layout((4, 8), lambda i, j: (i * 8 + j,), (48,))}

    kernel, tiles = chain()
    found = infer_layouts(kernel, TARGET, rules(narrow, roomy))
    assert found.layout_of(tiles[0]).cosize == 48


def test_the_report_names_who_asked_and_draws() -> None:
    kernel, _ = chain()
    report = infer_layouts(kernel, TARGET, rules(demand(InferLevel.FREE, SWAPPED))).report()
    assert [tile.buffer.name for tile in report] == ["t0", "t1", "t2"]
    assert str(report["t0"]) == "t0: float32, Layout((4, 8), lambda i, j: (j, i)), by fill"
    assert report["t1"].reason.who == "copy"
    rows = report["t0"].draw().splitlines()
    assert rows[0].split() == ["|", *map(str, range(8))]
    assert rows[3].split() == ["1", "|", "1", "5", "9", "13", "17", "21", "25", "29"]
    with pytest.raises(FrontendValueError, match="no tile is called 'x'") as caught:
        report["x"]
    assert caught.value.hint == "after all passes there are: t0, t1, t2"
    with pytest.raises(FrontendValueError) as caught:
        replace(report, tiles=())["x"]
    assert caught.value.hint == "after all passes there are: none"


@pytest.mark.parametrize("length", [4, 64])
def test_the_number_of_questions_is_linear(length: int) -> None:
    questions: list[InferLevel] = []

    def counting(op: Any, ctx: Any, level: InferLevel) -> LayoutMap:
        questions.append(level)
        return follow(op, ctx, level)

    tiles = [ir.shared(f"t{k}", (4, 8)) for k in range(length + 1)]
    copies = [ir.copy(a, b) for a, b in pairwise(tiles)]
    # The one who knows comes last, and what follows from it travels against program order.
    body = [*ir.alloc(*tiles), *copies, ir.fill(tiles[-1], 0)]
    kernel = ir.kernel([ir.tensor("A", (4, 8))], 1, lambda bx: body)
    found = infer_layouts(kernel, TARGET, rules(demand(InferLevel.FREE, PADDED), counting))
    assert found.layout_of(tiles[0]).same_function(PADDED)
    assert len(questions) <= 3 * length + 2 * length


PROGRAM = """
from tests.unit.tile_core.test_infer_layouts import *
kernel, _ = chain()
print(infer_layouts(kernel, TARGET, rules(demand(InferLevel.COMMON, SWAPPED))).report())
"""


def test_layouts_do_not_depend_on_the_seed_of_hashes() -> None:
    texts = set()
    for seed in ("0", "1", "77"):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        )
        texts.add(done.stdout)
    assert len(texts) == 1
    assert "by copy" in texts.pop()
