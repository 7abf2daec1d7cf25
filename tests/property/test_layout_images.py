"""The laws of fragments seen through index maps, and of loops over them, against enumeration."""

import math

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tile_core.layout import Fragment, evaluate, fully_replicated
from tile_core.layout.formulas import as_index, inputs
from tile_core.layout.loop_layout import planned
from tile_core.layout.loop_layout_inverse import loop_over, loop_through
from tile_core.layout.preimages import pulled_back, pushed_forward, reduced_fragment, shared_out

EXTENTS = st.sampled_from([1, 2, 3, 4, 6, 8, 12])


@st.composite
def dealt(draw):
    """A tile dealt out to threads, evenly or not, or held by all of them."""
    shape = draw(st.lists(EXTENTS, min_size=1, max_size=2).map(tuple))
    threads = draw(st.sampled_from([1, 4, 6, 8, 32]))
    if draw(st.booleans()) and draw(st.booleans()):
        return fully_replicated(shape, threads)
    vector = draw(st.sampled_from([1, 2, 4]))
    return planned(shape, threads, vector, holds_tiles=draw(st.booleans())).fragment


@st.composite
def maps(draw, box):
    """An index map over `box` whose indices are digits of different coordinates."""
    indices, shape = [], []
    for axis in draw(st.permutations(range(len(box)))):
        x, extent = inputs(len(box))[axis], box[axis]
        match draw(st.sampled_from(["all", "part", "none", "zero"])):
            case "all":
                indices.append(x)
                shape.append(extent)
            case "part":
                cut = draw(st.sampled_from([c for c in (1, 2, 3, 4) if extent % c == 0]))
                indices.append(x // cut)
                shape.append(extent // cut)
            case "zero":
                indices.append(as_index(0))
                shape.append(draw(st.sampled_from([1, 2])))
    return (indices or [as_index(0)]), tuple(shape or [1])


def points(box):
    return [tuple(map(int, x)) for x in np.ndindex(*box)]


def at(indices, x):
    return tuple(int(evaluate(e, x)) for e in indices)


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_tile_is_held_by_all_who_use_it(data):
    run = data.draw(dealt())
    indices, shape = data.draw(maps(run.shape))
    held = pushed_forward(run, indices, shape)
    users = {}
    for x in points(run.shape):
        users.setdefault(at(indices, x), set()).update(run.owners(*x))
    for element, threads in users.items():
        assert set(held.owners(*element)) == threads
    assert held.is_injective()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_loop_is_run_by_the_holders_of_what_it_touches(data):
    box = data.draw(st.lists(EXTENTS, min_size=1, max_size=2).map(tuple))
    indices, shape = data.draw(maps(box))
    threads = data.draw(st.sampled_from([1, 4, 8, 32]))
    held = planned(shape, threads, 2, holds_tiles=True).fragment
    run = pulled_back(held, indices, box)
    for x in points(box):
        assert set(run.owners(*x)) == set(held.owners(*at(indices, x)))
    assert run.is_injective()


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_holders_of_one_element_share_out_its_points(data):
    box = data.draw(st.lists(EXTENTS, min_size=2, max_size=2).map(tuple))
    axis = data.draw(st.sampled_from([0, 1]))
    held = planned((box[axis],), 64, holds_tiles=True).fragment
    run = shared_out(held, [inputs(2)[axis]], box, data.draw(st.sampled_from([1, 2, 4])))
    if box[1 - axis] == 1:
        assert run is None
        return
    for x in points(box):
        (thread,) = run.owners(*x)
        assert thread in held.owners(x[axis])
    assert run.is_injective()


@given(dealt(), st.data())
@settings(max_examples=60, deadline=None)
def test_a_reduced_tile_is_held_by_all_who_hold_a_part_of_its_row(tile, data):
    dim = data.draw(st.integers(0, tile.rank - 1))
    keepdim = data.draw(st.booleans())
    row = reduced_fragment(tile, dim, keepdim)
    kept = [n for axis, n in enumerate(tile.shape) if axis != dim]
    wanted = list(tile.shape)
    wanted[dim] = 1
    assert row.shape == tuple(wanted if keepdim else kept or [1])
    for element in points(row.shape):
        outer = [x for axis, x in enumerate(element) if axis != dim] if keepdim else list(element)
        outer = outer[: tile.rank - 1]
        holders = set()
        for k in range(tile.shape[dim]):
            holders.update(tile.owners(*outer[:dim], k, *outer[dim:]))
        assert set(row.owners(*element)) == holders


def test_rows_of_one_thread_beside_rows_of_two_are_reduced() -> None:
    """Nine elements, four for each thread: the first row has one owner, the second has two."""
    tile = planned((3, 3), 4, 4, holds_tiles=False).fragment
    assert [set(tile.owners(0, k)) for k in range(3)] == [{0}] * 3
    row = reduced_fragment(tile, 1)
    assert [set(row.owners(k)) for k in range(3)] == [{0}, {0, 1}, {1, 2}]


def runs(loop):
    """What each thread runs, by calling the loop: (thread, slot) -> (point, replica)."""
    found = {}
    for thread in range(loop.threads):
        for turn in range(loop.rounds):
            for lane in range(loop.vector):
                x = tuple(map(int, loop.coords_at(thread, turn, lane)))
                if all(0 <= a < n for a, n in zip(x, loop.extents, strict=True)):
                    replica = int(loop.replica_at(thread, turn, lane))
                    found[thread, turn * loop.vector + lane] = (x, replica)
                else:
                    assert loop.ragged
    return found


def check_loop(loop):
    """Every replica of every point is run once, by the thread and in the slot of the fragment."""
    found = runs(loop)
    fragment = loop.fragment
    if loop.searched:
        return
    assert len(set(found.values())) == len(found) == fragment.size * fragment.replication
    for (thread, slot), (x, replica) in found.items():
        assert fragment.forward_thread(*x, rep=replica) == thread
        assert int(fragment.slot_table()[x]) == slot
    for turn in range(loop.rounds):
        first = loop.coords_at(0, turn, 0)
        for lane in range(loop.vector if loop.extents else 0):
            x = loop.coords_at(0, turn, lane)
            if loop.extents[-1] % loop.vector == 0:
                assert x == (*first[:-1], first[-1] + lane)


@given(
    st.lists(EXTENTS, max_size=3).map(tuple),
    st.sampled_from([1, 4, 6, 32, 96]),
    st.sampled_from([1, 2, 4, 8]),
    st.booleans(),
)
@settings(max_examples=80, deadline=None)
def test_a_plan_runs_every_point_once(box, threads, vector, holds_tiles):
    loop = planned(box, threads, vector, holds_tiles=holds_tiles)
    check_loop(loop)
    assert loop.threads <= threads
    assert loop.vector <= vector
    if math.prod(box) % (threads * vector) == 0:
        assert not loop.ragged
        assert loop.slots == math.prod(box) // threads


@given(dealt(), st.sampled_from([1, 2, 4]))
@settings(max_examples=80, deadline=None)
def test_a_loop_over_a_fragment_runs_what_the_fragment_says(fragment, vector):
    check_loop(loop_over(fragment, vector))


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_a_loop_over_a_part_of_a_tile_runs_that_part(data):
    tile = data.draw(dealt())
    start = [data.draw(st.integers(0, n - 1)) for n in tile.shape]
    box = tuple(data.draw(st.integers(1, n - s)) for n, s in zip(tile.shape, start, strict=True))
    indices = [x + s for x, s in zip(inputs(len(box)), start, strict=True)]
    whole = loop_over(tile, 4)
    if whole.searched:
        whole = planned(tile.shape, 8, 4)
    part = pulled_back(whole.fragment, indices, box)
    moves = tuple((axis, s) for axis, s in enumerate(start))
    loop = loop_through(whole, part, moves, 4)
    found = runs(loop)
    expected = {(t, x) for x in points(box) for t in part.owners(*x)}
    assert {(thread, x) for (thread, _), (x, _) in found.items()} == expected


def test_the_accumulator_of_a_matrix_product_gives_the_known_layouts():
    """The fragments of ``mma.m16n8k16``: rows of C belong to quads of lanes."""
    base = Fragment((8, 8), lambda i, j: (4 * i + j // 2, j % 2))
    c = base.repeat((2, 1)).repeat((4, 1), repeat_on_thread=True).repeat((1, 8))
    row = reduced_fragment(c, 1)
    assert row.replication == 4
    assert row.slots == 2
    assert row.owners(9) == (4, 5, 6, 7)
    column = pushed_forward(c, [inputs(2)[1]], (64,))
    assert column.replication == 32
    assert column.slots == 16
    loop = loop_over(c, 8)
    assert loop.vector == 2
    assert not loop.ragged
    assert not loop.searched
