"""Layout inference: levels, consequences, conflicts and the fallback."""

from __future__ import annotations

from typing import Any

import pytest

from tile_core.errors import LayoutConflict
from tile_core.ir.buffer import Buffer
from tile_core.ir.stmt import AnnotateLayout, Kernel
from tile_core.layout import Layout, padded, row_major
from tile_core.ops.copy import Copy
from tile_core.ops.fill import Fill
from tile_core.ops.operator import InferLevel, LayoutMap
from tile_core.ops.rule import Rule
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


def test_every_operator_is_asked_few_times() -> None:
    questions: list[InferLevel] = []

    def counting(op: Any, ctx: Any, level: InferLevel) -> LayoutMap:
        questions.append(level)
        return follow(op, ctx, level)

    kernel, _ = chain()
    infer_layouts(kernel, TARGET, rules(demand(InferLevel.FREE, PADDED), counting))
    assert len(questions) <= 3 * 2 + 6
