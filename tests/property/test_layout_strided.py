"""The laws in the docstring of `Strided`, checked on generated layouts."""

import itertools
import math

import numpy as np
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from tile_core.errors import LayoutError
from tile_core.layout.strided import Strided, compact, from_modes, from_values, nested

extents = st.sampled_from([1, 2, 3, 4, 8])
strides = st.sampled_from([0, 1, 2, 3, 4, 8, 16, 32])
layouts = st.lists(st.tuples(extents, strides), max_size=4).map(from_modes)

partial = settings(suppress_health_check=[HealthCheck.filter_too_much])  # few pairs compose


@st.composite
def permuted(draw):
    """Compact layouts with the modes in any order: bijections."""
    shape = draw(st.lists(extents, max_size=4))
    order = draw(st.permutations(range(len(shape))))
    modes, step = {}, 1
    for k in order:
        modes[k] = (shape[k], step)
        step *= shape[k]
    return from_modes(modes[k] for k in range(len(shape)))


def values(layout):
    return [layout(i) for i in range(layout.size)]


def attempt(operation, *operands):
    """Apply, or tell Hypothesis that the operands are outside the domain."""
    try:
        return operation(*operands)
    except LayoutError:
        assume(False)


@given(layouts)
def test_the_table_holds_the_offsets(a):
    assert a.table().tolist() == values(a)
    assert max(values(a)) + 1 == a.cosize


@partial
@given(layouts, layouts)
def test_compose_is_function_composition(a, b):
    assert values(attempt(a.compose, b)) == [a(j) for j in values(b)]


@partial
@given(layouts, layouts, layouts)
def test_compose_is_associative(a, b, c):
    left = attempt(attempt(a.compose, b).compose, c)
    assert left == attempt(a.compose, attempt(b.compose, c))


@partial
@given(layouts, layouts)
def test_compose_refuses_only_what_no_layout_can_be(a, b):
    """Pins the domain from below, by trying every shape with the only possible strides."""
    assume(b.cosize <= a.size and b.size <= 64)
    wanted = [a(j) for j in values(b)]
    try:
        result = a.compose(b)
    except LayoutError:
        result = None
    assert (result is not None) == is_strided(wanted)


def is_strided(wanted):
    """Whether some shape has these values: its strides are the values at the unit points."""
    if wanted[0] != 0:
        return False
    for shape in factorisations(len(wanted)):
        units = [math.prod(shape[:k]) for k in range(len(shape))]
        steps = tuple(wanted[unit] for unit in units)
        if values(Strided(shape, steps)) == wanted:
            return True
    return False


def factorisations(n):
    if n == 1:
        yield ()
    for first in range(2, n + 1):
        if n % first == 0:
            yield from ((first, *rest) for rest in factorisations(n // first))


@given(st.integers(1, 9), st.integers(1, 9), st.integers(1, 9), st.integers(1, 4))
def test_compose_accepts_what_stays_inside_one_mode(k, step, d, room):
    n = (k - 1) * step + room
    assert (
        Strided((n,), (d,)).compose(Strided((k,), (step,))) == Strided((k,), (step * d,)).coalesce()
    )


@given(layouts)
def test_identity_is_neutral(a):
    assert a.compose(compact(a.size)) == a.coalesce()


@given(layouts, layouts)
def test_coalesce_is_canonical(a, b):
    assert values(a.coalesce()) == values(a)
    assert (a.coalesce() == b.coalesce()) == (values(a) == values(b))


@given(layouts)
def test_a_layout_is_found_again_from_its_values(a):
    assert from_values(a.table()) == a.coalesce()


@given(permuted(), st.data())
def test_a_part_of_a_bijection_has_a_complement(whole, data):
    """Pins `complement` from below: every choice of modes leaves a complement."""
    chosen = [m for m in whole.modes if data.draw(st.booleans())]
    part = from_modes(chosen)
    both = part.followed_by(part.complement(whole.size))
    assert sorted(values(both)) == list(range(whole.size))


@partial
@given(layouts, st.sampled_from([1, 6, 8, 24, 64, 96]))
def test_a_complement_completes(a, n):
    both = a.followed_by(attempt(a.complement, n))
    assert sorted(values(both)) == list(range(n))


@given(permuted())
def test_inverse_gives_the_index_back(a):
    assert [a.inverse()(j) for j in values(a)] == list(range(a.size))
    assert a.inverse().inverse() == a.coalesce()


@given(layouts)
def test_inverse_refuses_exactly_what_is_no_bijection(a):
    try:
        a.inverse()
        found = True
    except LayoutError:
        found = False
    assert found == (sorted(values(a)) == list(range(a.size)))


@partial
@given(layouts, layouts)
def test_divide_reorders(a, tile):
    divided = attempt(a.divide, tile)
    assert sorted(values(divided)) == sorted(values(a))
    assert values(divided)[: tile.size] == [a(j) for j in values(tile)]


@given(permuted(), extents)
def test_product_repeats(a, n):
    assert a.product(n) == a.product(compact(n))
    tiles = np.array(values(a.product(n))).reshape(n, a.size)
    assert tiles.tolist() == [[k * a.size + x for x in values(a)] for k in range(n)]


@given(st.lists(st.tuples(extents, strides), min_size=2, max_size=4))
def test_nesting_changes_no_value(modes):
    (s, d), *rest = modes
    tree = nested((s, [t for t, _ in rest]), (d, [e for _, e in rest]))
    expected = [
        sum(x * stride for x, (_, stride) in zip(reversed(at), modes, strict=True))
        for at in itertools.product(*(range(extent) for extent, _ in reversed(modes)))
    ]
    assert values(tree) == expected
