"""Layout inference on machines of many threads: tiles in registers and parallel loops."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import numpy as np
import pytest

from support.thread_machine import MACHINE, RULES, agree, poisoned
from tile_core.errors import LayoutConflict, LayoutUnknown
from tile_core.ir.buffer import Buffer
from tile_core.ir.build_expr import binary, const, select
from tile_core.ir.expr import BinaryOp
from tile_core.ir.stmt import AnnotateLayout, Kernel, Parallel
from tile_core.layout import Fragment, Layout, Swizzle, fully_replicated, swizzled
from tile_core.layout.preimages import reduced_fragment
from tile_core.ops.copy import Fill
from tile_core.ops.gemm import Gemm
from tile_core.ops.rule import InferLevel, LayoutMap, Rule
from tile_core.passes.infer_layouts import Layouts, infer_layouts
from tile_core.passes.inference.free_layouts import _goes_through_memory
from tile_core.target import parse_target_spec
from tile_core.testing import build_ir as ir

TARGET = parse_target_spec("cuda:sm_80")
ATOM = Fragment((8, 8), lambda i, j: (4 * i + j // 2, j % 2))
SUMS = ATOM.repeat((2, 1)).repeat((4, 1), repeat_on_thread=True).repeat((1, 8))
"""A 64x64 accumulator of four warps, as matrix instructions leave it."""


def fixed(op: Gemm, ctx: Any, level: InferLevel) -> LayoutMap:
    """Demand what matrix instructions demand of the sums."""
    return {op.c.buffer: SUMS} if level is InferLevel.STRICT else {}


def infer(kernel: Kernel, rules: Sequence[Rule[Any]] = RULES) -> Layouts:
    gemm = Rule(name="gemm", op=Gemm, lower=lambda op, ctx: None, infer_layout=fixed)
    return infer_layouts(kernel, TARGET, (*rules, gemm), simt=MACHINE)


def make(params: Sequence[Buffer], tiles: Sequence[Buffer], *body: Any, threads: int = 128) -> Any:
    return ir.kernel(params, 1, lambda bx: [*ir.alloc(*tiles), *body], threads=threads)


def integers(shape: tuple[int, ...], dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.random.default_rng(7).integers(-8, 8, shape).astype(dtype)


def held(layouts: Layouts, tile: Buffer) -> Fragment:
    found = layouts.layout_of(tile)
    assert isinstance(found, Fragment)
    return found


def loop(layouts: Layouts, number: int) -> Any:
    node = list(layouts.found.nests)[number]
    return layouts.loop_of(node)


# What follows from a product -----------------------------------------------------------------


def product(*after: Any) -> tuple[list[Buffer], list[Any]]:
    a, b = ir.shared("a", (64, 16), "float16"), ir.shared("b", (16, 64), "float16")
    c = ir.fragment("c", (64, 64))
    return [a, b, c], [ir.fill(c, 0), ir.gemm(a, b, c)]


def test_a_bias_is_held_by_the_threads_of_its_column() -> None:
    """The paper's figure 7: each row of C is held by several threads, and so is the bias."""
    tensor, tiles = ir.tensor("D", (64,)), product()[0]
    c, bias = tiles[2], ir.fragment("bias", (64,))
    add = ir.parallel(
        (64, 64), lambda i, j: ir.store(c, (i, j), ir.load(c, i, j) + ir.load(bias, j))
    )
    kernel = make([tensor], [*tiles, bias], ir.copy(tensor, bias), ir.fill(c, 0),
                  ir.gemm(*tiles), add)  # fmt: skip
    layouts = infer(kernel)
    assert held(layouts, c) == SUMS
    assert held(layouts, bias).replication == 32
    assert held(layouts, bias).slots == 16
    for j in (0, 1, 17, 63):
        holders = {t for i in range(64) for t in SUMS.owners(i, j)}
        assert set(held(layouts, bias).owners(j)) == holders
    assert layouts.reasons[c].who == "gemm"
    assert layouts.reasons[bias].who == "T.Parallel"


def test_demands_travel_through_copies_and_loops_to_what_nobody_else_determines() -> None:
    out, tiles = ir.tensor("O", (64, 64), "float16"), product()[0]
    c, half, scaled = tiles[2], ir.fragment("half", (64, 64), "float16"), ir.fragment("s", (64, 64))
    scale = ir.parallel((64, 64), lambda i, j: ir.store(scaled, (i, j), ir.load(c, i, j) * 2.0))
    kernel = make([out], [*tiles, half, scaled], ir.gemm(*tiles), scale,
                  ir.copy(scaled, half), ir.copy(half, out))  # fmt: skip
    layouts = infer(kernel)
    for tile in (scaled, half):
        for point in ((0, 0), (9, 3), (63, 62)):
            assert held(layouts, tile).owners(*point) == SUMS.owners(*point)
    stores = loop(layouts, 2)
    assert stores.vector == 2
    assert not stores.is_replicated


def test_a_rule_that_knows_a_neighbour_is_asked_again() -> None:
    """A reduction answers once its source is known: rows of C are held by quads of lanes."""
    tiles, row = product()[0], ir.fragment("row", (64,))
    use = ir.parallel((64,), lambda i: ir.store(row, i, ir.load(row, i) + 1.0))

    def reduced(op: Fill, ctx: Any, level: InferLevel) -> LayoutMap:
        source = ctx.layout_of(tiles[2])
        if op.dst.buffer is not row or source is None or ctx.layout_of(row) is not None:
            return {}
        assert ctx.threads == 128
        assert ctx.machine is MACHINE
        return {row: reduced_fragment(source, 1)}

    rules = tuple(r for r in RULES if r.op is not Fill)
    fill = Rule(name="f", op=Fill, lower=lambda op, ctx: None, infer_layout=reduced)
    kernel = make([], [*tiles, row], ir.fill(row, 0), ir.gemm(*tiles), use)
    layouts = infer(kernel, (*rules, fill))
    assert held(layouts, row).owners(9) == (4, 5, 6, 7)
    assert loop(layouts, 1).fragment.replication == 4


# Free choices --------------------------------------------------------------------------------


def test_element_wise_work_is_dealt_out_in_wide_accesses() -> None:
    a, b = ir.tensor("A", (64, 64), "float16"), ir.tensor("B", (64, 64), "float16")
    x, y = ir.fragment("x", (64, 64), "float16"), ir.fragment("y", (64, 64))
    twice = ir.parallel((64, 64), lambda i, j: ir.store(y, (i, j), ir.load(x, i, j) * 2.0))
    kernel = make([a, b], [x, y], ir.fill(y, 0), ir.copy(a, x), twice, ir.copy(y, b))
    layouts = infer(kernel)
    assert held(layouts, x) == held(layouts, y)
    assert held(layouts, x).slots == 32
    assert [loop(layouts, k).vector for k in (1, 3)] == [8, 8]
    lanes = loop(layouts, 1)
    assert [lanes.coords_at(t, 0, 0) for t in (0, 1, 8)] == [(0, 0), (0, 8), (1, 0)]
    agree(kernel, layouts, [integers((64, 64), "float16"), poisoned((64, 64), "float16")])


def test_a_broadcast_costs_registers_rather_than_scattered_accesses() -> None:
    """Following the row vector would give each thread a row of B: the other way is cheaper."""
    a, b, c = ir.tensor("A", (64,)), ir.tensor("B", (64, 64)), ir.tensor("C", (64, 64))
    x, y = ir.fragment("x", (64,)), ir.fragment("y", (64, 64))
    mul = ir.parallel((64, 64), lambda i, j: ir.store(y, (i, j), ir.load(b, i, j) * ir.load(x, i)))
    kernel = make([a, b, c], [x, y], ir.copy(a, x), mul, ir.copy(y, c), threads=64)
    layouts = infer(kernel)
    assert loop(layouts, 1).vector == 4
    assert held(layouts, y).slots == 64
    assert held(layouts, x).replication == 16
    agree(kernel, layouts, [integers((64,)), integers((64, 64)), poisoned((64, 64))])


def test_a_small_tile_is_held_several_times_and_stored_once() -> None:
    a, b = ir.tensor("A", (32,)), ir.tensor("B", (32,))
    x = ir.fragment("x", (32,))
    kernel = make([a, b], [x], ir.copy(a, x), ir.copy(x, b))
    layouts = infer(kernel)
    assert held(layouts, x).replication == 4
    assert held(layouts, x).slots == 1
    agree(kernel, layouts, [integers((32,)), poisoned((32,))])


@pytest.mark.parametrize(
    ("shape", "threads", "slots"),
    [((128, 80), 128, 80), ((3, 192), 128, 8), ((64, 576), 256, 144), ((7, 9), 32, 2),
     ((128, 30), 96, 40), ((5,), 128, 1), ((192,), 128, 2)],
    ids=str,
)  # fmt: skip
def test_sizes_that_do_not_divide(shape: tuple[int, ...], threads: int, slots: int) -> None:
    a, b, x = ir.tensor("A", shape), ir.tensor("B", shape), ir.fragment("x", shape)
    names = ("i", "j")[: len(shape)]
    double = ir.parallel(shape, lambda *at: ir.store(x, at, ir.load(x, *at) * 2.0))
    assert len(names) == len(double.vars)
    kernel = make([a, b], [x], ir.copy(a, x), double, ir.copy(x, b), threads=threads)
    layouts = infer(kernel)
    assert held(layouts, x).slots == slots
    assert not any(found is None or found.searched for found in layouts.loops.values())
    agree(kernel, layouts, [integers(shape), poisoned(shape)])


# Index maps ----------------------------------------------------------------------------------


def through(body: Any, shape: tuple[int, ...], other: tuple[int, ...]) -> tuple[Kernel, list[Any]]:
    """Return a kernel that loads x of `shape`, runs a loop, and stores y of `other`."""
    a, b = ir.tensor("A", shape), ir.tensor("B", other)
    x, y = ir.fragment("x", shape), ir.fragment("y", other)
    kernel = make([a, b], [x, y], ir.copy(a, x), ir.fill(y, 1), body(x, y), ir.copy(y, b),
                  threads=32)  # fmt: skip
    return kernel, [integers(shape), poisoned(other)]


MAPS: dict[str, Any] = {
    "transposed": ((16, 24), (24, 16), lambda x, y: ir.parallel(
        (24, 16), lambda i, j: ir.store(y, (i, j), ir.load(x, j, i)))),
    "row": ((16,), (16, 24), lambda x, y: ir.parallel(
        (16, 24), lambda i, j: ir.store(y, (i, j), ir.load(x, i)))),
    "column": ((24,), (16, 24), lambda x, y: ir.parallel(
        (16, 24), lambda i, j: ir.store(y, (i, j), ir.load(x, j)))),
    "halved": ((8, 24), (16, 24), lambda x, y: ir.parallel(
        (16, 24), lambda i, j: ir.store(y, (i, j), ir.load(x, i // 2, j)))),
    "grouped": ((16, 3), (16, 24), lambda x, y: ir.parallel(
        (16, 24), lambda i, j: ir.store(y, (i, j), ir.load(x, i, j // 8)))),
    "flattened": ((384,), (16, 24), lambda x, y: ir.parallel(
        (16, 24), lambda i, j: ir.store(y, (i, j), ir.load(x, i * 24 + j)))),
    "one element": ((1,), (16, 24), lambda x, y: ir.parallel(
        (16, 24), lambda i, j: ir.store(y, (i, j), ir.load(x, 0)))),
    "partial": ((16, 24), (16, 24), lambda x, y: ir.parallel(
        (3, 24), lambda i, j: ir.store(y, (i, j), ir.load(x, i, j)))),
    "shifted": ((16, 24), (16, 24), lambda x, y: ir.parallel(
        (5, 24), lambda i, j: ir.store(y, (i + 4, j), ir.load(x, i + 4, j)))),
    "whole rows": ((16, 6), (16,), lambda x, y: ir.parallel(
        (16,), lambda i: ir.serial(6, lambda s: ir.store(y, i, ir.load(y, i) + ir.load(x, i, s))))),
    "extent of one": ((16, 1), (16,), lambda x, y: ir.parallel(
        (16,), lambda i: ir.store(y, i, ir.load(x, i, 0)))),
}  # fmt: skip


@pytest.mark.parametrize("name", MAPS)
def test_index_maps(name: str) -> None:
    shape, other, body = MAPS[name]
    kernel, args = through(body, shape, other)
    agree(kernel, infer(kernel), args)


def test_the_thread_of_a_row_that_is_walked_holds_all_of_it() -> None:
    shape, other, body = MAPS["whole rows"]
    kernel, _ = through(body, shape, other)
    layouts = infer(kernel)
    x = next(tile for tile in layouts.known if tile.name == "x")
    assert all(len({held(layouts, x).owners(i, s) for s in range(6)}) == 1 for i in range(16))


def test_an_element_chosen_at_run_time_may_be_any() -> None:
    """Every thread that might need the element holds it."""
    a, at, b = ir.tensor("A", (8,)), ir.tensor("at", (64,), "int32"), ir.tensor("B", (64,))
    x, y = ir.fragment("x", (8,)), ir.fragment("y", (64,))
    pick = ir.parallel((64,), lambda i: ir.store(y, i, ir.load(x, ir.load(at, i))))
    kernel = make([a, at, b], [x, y], ir.copy(a, x), pick, ir.copy(y, b), threads=32)
    layouts = infer(kernel)
    assert held(layouts, x).is_fully_replicated()
    index = np.random.default_rng(3).integers(0, 8, 64).astype("int32")
    agree(kernel, layouts, [integers((8,)), index, poisoned((64,))])


def test_replicas_of_a_row_share_out_its_columns() -> None:
    """A loop over a row vector held by quads: each lane of a quad takes columns of its own."""
    tiles, out = product()[0], ir.tensor("O", (64, 64))
    row = ir.fragment("row", (64,))
    fix = ir.parallel((64, 64), lambda i, j: ir.store(tiles[2], (i, j), ir.load(row, i)))
    spread = ir.parallel((64, 64), lambda i, j: ir.store(out, (i, j), ir.load(row, i)))
    kernel = make([out], [*tiles, row], ir.gemm(*tiles), fix, spread)
    layouts = infer(kernel)
    assert held(layouts, row).replication == 4
    shared = loop(layouts, 1)
    assert not shared.is_replicated
    assert shared.vector == 4
    assert shared.slots == 32


def test_extents_known_at_run_time_are_bounded_by_the_tile() -> None:
    n = ir.symbol("n")
    a, b, x = ir.tensor("A", (n,)), ir.tensor("B", (48,)), ir.fragment("x", (48,))
    count = ir.parallel((n,), lambda i: ir.store(x, i, ir.load(a, i)))
    kernel = make([a, b], [x], ir.fill(x, 0), count, ir.copy(x, b), threads=16)
    agree(kernel, infer(kernel), [integers((37,)), poisoned((48,))])


# Scalars, exchanges, wishes ------------------------------------------------------------------


def test_statements_of_every_thread_reach_tiles_that_every_thread_holds() -> None:
    a, b, x = ir.tensor("A", (4,)), ir.tensor("B", (4,)), ir.fragment("x", (4,))
    scalar = ir.when(ir.load(x, 2) > 0.0, ir.fill(x, 5))
    kernel = make([a, b], [x], ir.copy(a, x), scalar, ir.copy(x, b), threads=32)
    layouts = infer(kernel)
    assert held(layouts, x).is_fully_replicated()
    for third in (1.0, -1.0):
        agree(kernel, layouts, [np.array([1, 2, third, 4], "float32"), poisoned((4,))])


def test_a_copy_between_threads_goes_through_memory() -> None:
    a, b = ir.tensor("A", (16, 16)), ir.tensor("B", (16, 16))
    x, y = ir.fragment("x", (16, 16)), ir.fragment("y", (16, 16))
    rows = Fragment((16, 16), lambda i, j: (i, j), threads=32)
    columns = Fragment((16, 16), lambda i, j: (j, i), threads=32)
    kernel = make([a, b], [x, y], AnnotateLayout(x, rows), AnnotateLayout(y, columns),
                  ir.copy(a, x), ir.copy(x, y), ir.copy(y, b), threads=32)  # fmt: skip
    layouts = infer(kernel)
    exchanged = [n for n in layouts.found.nests if layouts.is_exchanged(n)]
    assert [n.src.buffer.name for n in exchanged] == ["x"]
    agree(kernel, layouts, [integers((16, 16)), poisoned((16, 16))])


def test_a_copy_adapts_to_who_uses_the_second_tile() -> None:
    """What a message advises: a second fragment has the layout of the loop that reads it."""
    a, b, x, y = (ir.tensor("A", (16, 16)), ir.tensor("B", (16, 16)),
                  ir.fragment("x", (16, 16)), ir.fragment("y", (16, 16)))  # fmt: skip
    second = ir.fragment("second", (16, 16))
    rows = Fragment((16, 16), lambda i, j: (i, j), threads=32)
    columns = Fragment((16, 16), lambda i, j: (j, i), threads=32)
    add = ir.parallel(
        (16, 16), lambda i, j: ir.store(y, (i, j), ir.load(y, i, j) + ir.load(second, i, j))
    )
    kernel = make([a, b], [x, y, second], AnnotateLayout(x, rows), AnnotateLayout(y, columns),
                  ir.copy(a, x), ir.fill(y, 1), ir.copy(x, second), add, ir.copy(y, b),
                  threads=32)  # fmt: skip
    layouts = infer(kernel)
    assert held(layouts, second).owners(3, 5) == (5,)
    assert held(layouts, second).slots == 16
    agree(kernel, layouts, [integers((16, 16)), poisoned((16, 16))])


def test_the_user_fixes_who_runs_a_loop() -> None:
    a, x = ir.tensor("A", (16, 16)), ir.fragment("x", (16, 16))
    wish = Fragment((16, 16), lambda i, j: (j, i), threads=32)
    body = ir.parallel((16, 16), lambda i, j: ir.store(x, (i, j), ir.load(a, i, j)))
    given = Parallel(body.vars, body.extents, body.body, loop_layout=wish)
    b = ir.tensor("B", (16, 16))
    kernel = make([a, b], [x], given, ir.copy(x, b), threads=32)
    layouts = infer(kernel)
    assert loop(layouts, 0).fragment == wish
    assert held(layouts, x).owners(3, 5) == (5,)
    agree(kernel, layouts, [integers((16, 16)), poisoned((16, 16))])


def test_the_user_fixes_the_width_of_accesses() -> None:
    a, b = ir.tensor("A", (64, 64), "float16"), ir.tensor("B", (64, 64), "float16")
    body = ir.parallel((64, 64), lambda i, j: ir.store(b, (i, j), ir.load(a, i, j)))
    given = Parallel(body.vars, body.extents, body.body, coalesced_width=2)
    assert loop(infer(make([a, b], [], given)), 0).vector == 2
    assert loop(infer(make([a, b], [], body)), 0).vector == 8


@pytest.mark.parametrize(
    ("width", "index"),
    [(4, lambda i, j: (i, j)), (2, lambda i, j: (i, j + 2)), (1, lambda i, j: (i, j + 1)),
     (1, lambda i, j: (j, i)), (1, lambda i, j: (i, j * 2))],
)  # fmt: skip
def test_accesses_are_as_wide_as_they_are_aligned(width: int, index: Any) -> None:
    a, b = ir.tensor("A", (64, 128)), ir.tensor("B", (64, 128))
    body = ir.parallel((32, 32), lambda i, j: ir.store(b, (i, j), ir.load(a, *index(i, j))))
    assert loop(infer(make([a, b], [], body)), 0).vector == width


@pytest.mark.parametrize(
    ("width", "index"),
    [(4, lambda i, j: (i, j // 32)), (2, lambda i, j: (i, (i * 32 + j) // 2)),
     (4, lambda i, j: (i, (j + 4) // 8)), (2, lambda i, j: (i, (j + 2) // 4)),
     (1, lambda i, j: (i, j // 3)), (1, lambda i, j: (i, (j + 1) // 4)),
     (4, lambda i, j: (i, j % 4)), (4, lambda i, j: (j // 4, j)),
     (2, lambda i, j: (i, j % 6)), (1, lambda i, j: (i, (j + 1) % 4)),
     (4, lambda i, j: ((i * 32 + j) // 24, (i * 32 + j) % 24)),
     (2, lambda i, j: ((i * 32 + j) // 30, (i * 32 + j) % 30)),
     (1, lambda i, j: ((i * 32 + j) // 27, (i * 32 + j) % 27))],
)  # fmt: skip
def test_elements_that_all_of_a_vector_read_do_not_make_it_narrower(width: int, index: Any) -> None:
    a, b = ir.tensor("A", (64, 2048)), ir.tensor("B", (64, 128))
    body = ir.parallel((32, 32), lambda i, j: ir.store(b, (i, j), ir.load(a, *index(i, j))))
    kernel = make([a, b], [], body)
    layouts = infer(kernel)
    assert loop(layouts, 0).vector == width


@pytest.mark.parametrize(("width", "reads_apart"), [(4, False), (1, True)])
def test_choices_of_registers_do_not_make_it_narrower(width: int, reads_apart: bool) -> None:
    a, b, x = ir.tensor("A", (32, 32)), ir.tensor("B", (32, 32)), ir.fragment("x", (32, 32))

    def positive(i: Any, j: Any) -> Any:
        held = ir.load(x, i, j)
        other = ir.load(a, i, j) if reads_apart else held
        zero = const(0.0, held.dtype)
        return ir.store(b, (i, j), select(binary(BinaryOp.LT, held, zero), zero, other))

    layouts = infer(make([a, b], [x], ir.copy(a, x), ir.parallel((32, 32), positive)))
    assert loop(layouts, 1).vector == width


# Firm and soft demands -----------------------------------------------------------------------


def test_a_soft_layout_gives_way_to_one_that_covers_it() -> None:
    """Asked first, a rule puts x where threads 0 to 15 hold it; the product needs it in 128."""
    tiles, x = product()[0], ir.fragment("x", (64,))

    def early(op: Fill, ctx: Any, level: InferLevel) -> LayoutMap:
        narrow = Fragment((64,), lambda i: (i // 16 * 32 + i % 8 * 4, i // 8 % 2), threads=128)
        return {x: narrow} if op.dst.buffer is x and level is InferLevel.COMMON else {}

    rules = tuple(r for r in RULES if r.op is not Fill)
    fill = Rule(name="f", op=Fill, lower=lambda op, ctx: None, infer_layout=early)
    use = ir.parallel((64, 64), lambda i, j: ir.store(tiles[2], (i, j), ir.load(x, i)))
    kernel = make([], [*tiles, x], ir.fill(x, 0), ir.gemm(*tiles), use)
    layouts = infer(kernel, (*rules, fill))
    assert held(layouts, x).replication == 4
    assert held(layouts, x).owners(9) == (4, 5, 6, 7)


def test_two_swizzles_of_one_tile_become_the_narrower() -> None:
    tile = ir.shared("t", (64, 64), "float16")
    wide, narrow = (swizzled((64, 64), 16, s) for s in (Swizzle.FULL, Swizzle.HALF))

    def wants(op: Fill, ctx: Any, level: InferLevel) -> LayoutMap:
        if level is not InferLevel.STRICT:
            return {}
        return {tile: wide if float(op.value.value) == 0 else narrow}  # type: ignore[attr-defined]

    fill = Rule(name="f", op=Fill, lower=lambda op, ctx: None, infer_layout=wants)
    for values in ((0, 1), (1, 0)):
        kernel = make([], [tile], *(ir.fill(tile, v) for v in values))
        assert infer(kernel, (fill,)).layout_of(tile) == narrow


def test_a_machine_of_one_thread_spreads_nothing() -> None:
    a, x = ir.tensor("A", (8, 8)), ir.fragment("x", (8, 8))
    kernel = make([a], [x], ir.copy(a, x))
    layouts = infer_layouts(kernel, TARGET, RULES)
    assert isinstance(layouts.layout_of(x), Layout)
    assert not layouts.found.nests


def test_the_report_names_tiles_and_loops() -> None:
    a, b, x = ir.tensor("A", (8, 8)), ir.tensor("B", (8, 8)), ir.fragment("x", (8, 8))
    report = infer(make([a, b], [x], ir.copy(a, x), ir.copy(x, b), threads=16)).report()
    fragment = "Fragment((8, 8), lambda i, j: (i * 2 + j // 4, j % 4))"
    assert str(report).splitlines() == [
        f"x: float32, {fragment}, by copy",
        *[f"copy: 8x8 in 1 iterations of 4, {fragment}"] * 2,
    ]
    assert "0" in report["x"].draw()
    assert report["x"].to_svg().startswith("<svg")


# Refusals ------------------------------------------------------------------------------------


def test_a_loop_that_nothing_bounds_cannot_touch_registers() -> None:
    n, x = ir.symbol("n"), ir.fragment("x", (64,))
    a = ir.tensor("A", (n,))
    body = ir.parallel((n,), lambda i: ir.store(x, i % 64, ir.load(a, i)))
    with pytest.raises(LayoutUnknown, match="nothing bounds"):
        infer(make([a], [x], body))


def test_scalars_cannot_reach_what_is_spread_over_threads() -> None:
    tiles, b = product()[0], ir.tensor("B", (1,))
    kernel = make([b], tiles, ir.gemm(*tiles), ir.store(b, 0, ir.load(tiles[2], 0, 0)))
    with pytest.raises(LayoutConflict, match="is spread over the threads"):
        infer(kernel)


def test_what_a_choice_widens_is_paid_for() -> None:
    """A loop may not spread its sums in its own way at the cost of those that a product fixed."""
    tiles, total, log = product()[0], ir.fragment("total", (64,)), ir.fragment("log", (64,))
    scale, last = ir.shared("scale", (64,)), ir.shared("last", (64,))

    def added(i: Any) -> Any:
        return ir.store(log, (i,), ir.load(log, i) * ir.load(scale, i) + ir.load(total, i))

    scaled = ir.parallel((64,), lambda i: ir.store(log, (i,), ir.load(log, i) * ir.load(scale, i)))
    kernel = make([], [*tiles, total, log, scale, last], ir.gemm(*tiles), ir.fill(log, 0),
                  ir.reduce("sum", tiles[2], total, 1), ir.parallel((64,), added), scaled,
                  ir.copy(log, last))  # fmt: skip
    layouts = infer(kernel)
    assert held(layouts, total) == reduced_fragment(SUMS, 1)
    assert held(layouts, log).slots <= 2


@pytest.mark.filterwarnings("ignore:'x' is whole in each thread")
def test_everyone_is_the_last_resort() -> None:
    """Both orders of indices at once: nothing but a tile that every thread holds suits."""
    x, y = ir.fragment("x", (8, 8)), ir.fragment("y", (8, 8))
    a, b = ir.tensor("A", (8, 8)), ir.tensor("B", (8, 8))
    both = ir.parallel(
        (8, 8), lambda i, j: ir.store(y, (i, j), ir.load(x, i, j) + ir.load(x, j, i))
    )
    kernel = make([a, b], [x, y], ir.copy(a, x), both, ir.copy(y, b), threads=16)
    layouts = infer(kernel)
    agree(kernel, layouts, [integers((8, 8)), poisoned((8, 8))])
    assert held(layouts, x) == fully_replicated((8, 8), 16)


@pytest.mark.parametrize(
    ("held", "mixed"),
    [
        (Fragment((4, 4), lambda i, j: (i, j)), False),  # a thread for each row
        (Fragment((4, 4), lambda i, j: (0, (i + j) % 4 * 4 + j)), False),  # one holds all
        (Fragment((4, 4), lambda i, j: ((i + j) % 4, j)), True),  # a register, several rows
    ],
)
def test_rows_that_threads_cannot_add_up_go_through_memory(held: Fragment, *, mixed: bool) -> None:
    x, y = ir.fragment("x", (4, 4)), ir.fragment("y", (4,))
    layouts = cast(Any, SimpleNamespace(known={x: held}))
    op = ir.reduce("sum", x, y, dim=1)
    assert _goes_through_memory(layouts, op) == mixed
