"""The laws in the docstring of `Fragment`, checked against tables of generated fragments."""

import pickle

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from tile_core.layout import Fragment, fully_replicated, same_expr
from tile_core.layout.formulas import as_index, inputs

extents = st.sampled_from([1, 2, 4, 6, 8])
copies = st.sampled_from([1, 2, 3, 4])


@st.composite
def fragments(draw):
    """Some digits of the coordinates and of the replica number choose the thread."""
    shape = draw(st.lists(extents, min_size=1, max_size=2).map(tuple))
    replicate = draw(copies)
    digits = []
    for x, extent in zip(inputs(len(shape)), shape, strict=True):
        cut = draw(st.sampled_from([c for c in (1, 2, 3, 4) if extent % c == 0]))
        digits += [(x % cut, cut), (x // cut, extent // cut)]
    if replicate > 1:
        rep = inputs(len(shape) + 1)[-1]
        cut = draw(st.sampled_from([c for c in (1, 2, 3) if replicate % c == 0]))
        digits += [(rep % cut, cut), (rep // cut, replicate // cut)]
    chosen = [d for d in draw(st.permutations(digits)) if draw(st.booleans())]
    thread = as_index(0)
    for digit, extent in chosen:
        thread = thread * extent + digit
    return Fragment(shape, forward_thread_fn=thread, replicate=replicate)


def box_of(fragment):
    return [tuple(map(int, x)) for x in np.ndindex(*fragment.shape)]


def holders(fragment):
    """The threads and the slot of each element, by calling the fragment."""
    return {x: (fragment.owners(*x), int(fragment.slot_table()[x])) for x in box_of(fragment)}


@given(fragments())
def test_the_tables_hold_what_the_fragment_says(f):
    threads, slots = f.thread_table(), f.slot_table()
    for x in box_of(f):
        for r in range(f.replication):
            assert threads[(*x, r)] == f.forward_thread(*x, rep=r) < f.thread_extent
        assert slots[x] == np.ravel_multi_index(f.forward_index(*x), f.index_shape) < f.slots


@given(fragments())
def test_a_derived_index_gives_every_element_its_own_register(f):
    seen = {}
    for x, (threads, slot) in holders(f).items():
        for thread in threads:
            assert seen.setdefault((thread, slot), x) == x
    assert f.is_injective()


@given(fragments())
def test_a_derived_index_wastes_no_register(f):
    """Pins the derivation from below: one slot per element of the tile is not an answer."""
    held = {(t, s) for threads, s in holders(f).values() for t in threads}
    used = {t for t, _ in held}
    assert len(held) == len(used) * f.slots


@given(fragments(), copies)
def test_replicate_adds_copies_in_further_threads(f, count):
    many = f.replicate(count)
    for x, (threads, slot) in holders(f).items():
        expected = sorted(t + f.thread_extent * k for t in threads for k in range(count))
        assert many.owners(*x) == tuple(expected)
        assert many.slot_table()[x] == slot
    assert many.thread_extent == f.thread_extent * count


@given(fragments(), st.booleans(), st.booleans(), st.data())
def test_repeat_tiles_the_fragment(f, on_thread, lower_dim_first, data):
    factors = [data.draw(st.integers(1, 3)) for _ in f.shape]
    many = f.repeat(factors, on_thread, lower_dim_first)
    order = "C" if lower_dim_first else "F"
    one = holders(f)
    for x, (threads, slot) in holders(many).items():
        inner = tuple(a % s for a, s in zip(x, f.shape, strict=True))
        tile = tuple(a // s for a, s in zip(x, f.shape, strict=True))
        number = int(np.ravel_multi_index(tile, factors, order=order))
        base_threads, base_slot = one[inner]
        if on_thread:
            assert (threads, slot) == (
                tuple(t + number * f.thread_extent for t in base_threads),
                base_slot,
            )
        else:
            assert (threads, slot) == (base_threads, base_slot + number * f.slots)
    assert many.is_injective()


@given(fragments())
def test_condensing_keeps_the_holders_and_leaves_no_idle_replica(f):
    small = f.condense_replication()
    assert holders(small) == holders(f)
    assert small.same_function(f)
    for x in box_of(small):
        assert len(small.owners(*x)) == small.replication


@given(fragments(), fragments())
def test_same_function_and_covers_are_about_holders(f, g):
    if f.shape != g.shape:
        assert not f.same_function(g)
        assert not f.covers(g)
        return
    mine, other = holders(f), holders(g)
    assert f.same_function(g) == (
        mine == other and (f.thread_extent, f.slots) == (g.thread_extent, g.slots)
    )
    assert f.covers(g) == all(set(other[x][0]) <= set(mine[x][0]) for x in mine)


@given(fragments())
def test_full_replication_covers_everything(f):
    full = fully_replicated(f.shape, f.thread_extent)
    assert full.is_fully_replicated()
    assert full.is_injective()
    assert full.covers(f)
    assert f.is_fully_replicated() == f.covers(full)


@given(fragments())
def test_the_layout_of_a_condensed_fragment_finds_each_element(f):
    small = f.condense_replication()
    layout = small.as_layout()
    assert layout.is_injective()
    if not layout.is_padded():
        back = layout.inverse()
        for x in box_of(small):
            for r in range(small.replication):
                assert back(small.forward_thread(*x, rep=r), *small.forward_index(*x)) == (*x, r)


@given(fragments())
def test_reshaping_keeps_holders_in_order(f):
    flat = f.reshape((f.size,))
    assert list(holders(flat).values()) == list(holders(f).values())


@given(fragments())
def test_printing_and_pickling_bring_the_fragment_back(f):
    again = eval(repr(f), {"Fragment": Fragment})
    assert again == f
    assert same_expr(again.thread, f.thread)
    assert hash(pickle.loads(pickle.dumps(f))) == hash(f)
