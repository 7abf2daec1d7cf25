"""The laws in the docstring of `Layout`, checked against tables of generated layouts."""

import math
import pickle

import numpy as np
from hypothesis import assume, given
from hypothesis import strategies as st

from tile_core.layout import Layout, from_strides, packed_panels, padded, row_major, simplify
from tile_core.layout.formulas import as_index, inputs

extents = st.sampled_from([1, 2, 3, 4, 6, 8])
shapes = st.lists(extents, min_size=1, max_size=3).map(tuple)


@st.composite
def bijections(draw, shape=None):
    """Coordinates cut into digits, digits shuffled, some exchanged by xor or rotation."""
    shape = draw(shapes) if shape is None else shape
    digits = []
    for x, extent in zip(inputs(len(shape)), shape, strict=True):
        cut = draw(st.sampled_from([c for c in (1, 2, 3, 4) if extent % c == 0]))
        digits += [(x % cut, cut), (x // cut, extent // cut)]
    digits = draw(st.permutations(digits))
    mixed = []
    for k, (digit, extent) in enumerate(digits):
        shift = as_index(0)
        for other, _ in digits[:k]:
            shift = shift + other * draw(st.integers(0, 2))
        kind = draw(st.sampled_from(["plain", "xor", "rotate"]))
        if kind == "xor" and extent & (extent - 1) == 0:
            digit = simplify(digit ^ shift % extent, shape)
        elif kind == "rotate":
            digit = simplify((digit + shift) % extent, shape)
        mixed.append((digit, extent))
    outputs, box = [], []
    for digit, extent in mixed:
        if outputs and draw(st.booleans()):
            outputs[-1], box[-1] = outputs[-1] * extent + digit, box[-1] * extent
        else:
            outputs.append(digit)
            box.append(extent)
    return Layout(shape, outputs, box)


@st.composite
def functions(draw):
    """Layouts of any kind: padded, broadcast, colliding ones too."""
    shape = draw(shapes)
    kind = draw(st.sampled_from(["bijection", "strided", "padded", "diagonal"]))
    if kind == "strided":
        return from_strides(shape, [draw(st.sampled_from([0, 1, 2, 3, 8])) for _ in shape])
    if kind == "padded":
        return padded(shape, draw(st.integers(0, 3)))
    if kind == "diagonal":
        return Layout(shape, lambda *x: [sum(x) % 4, x[0] // 2])
    return draw(bijections(shape))


def box_of(layout):
    return [tuple(map(int, x)) for x in np.ndindex(*layout.shape)]


@given(functions())
def test_the_tables_hold_what_the_layout_says(f):
    table, linear = f.table(), f.linear_table()
    for x in box_of(f):
        assert tuple(table[x]) == f(*x)
        assert linear[x] == f.address(*x)
        assert linear[x] == np.ravel_multi_index(f(*x), f.output_shape)


@given(functions())
def test_output_shape_is_the_exact_bound(f):
    tight = Layout(f.shape, f.outputs)
    assert tight.output_shape == tuple(
        int(n) + 1 for n in tight.table().reshape(-1, len(f.outputs)).max(0)
    )


@given(st.data())
def test_compose_is_function_composition(data):
    g = data.draw(functions())
    f = data.draw(bijections(g.output_shape))
    for x in box_of(g):
        assert f.compose(g)(*x) == f(*g(*x))


@given(st.data())
def test_compose_is_associative(data):
    h = data.draw(bijections())
    g = data.draw(bijections(h.output_shape))
    f = data.draw(bijections(g.output_shape))
    assert f.compose(g).compose(h).same_function(f.compose(g.compose(h)))


@given(bijections())
def test_every_shuffle_of_digits_is_bijective_and_inverted(f):
    """Pins `inverse` from below: these are the layouts that swizzles and panels are made of."""
    assert f.is_bijective()
    assert not f.is_padded()
    back = f.inverse()
    assert back.compose(f).same_function(row_major(f.shape))
    assert f.compose(back).same_function(row_major(f.output_shape))


@given(functions())
def test_injective_bijective_and_padded_are_what_counting_says(f):
    addresses = f.linear_table().reshape(-1).tolist()
    assert f.is_injective() == (len(set(addresses)) == len(addresses))
    assert f.is_padded() == (len(set(addresses)) < f.cosize)
    assert f.is_bijective() == (sorted(addresses) == list(range(f.cosize)))


@given(functions())
def test_inverse_table_finds_each_element(f):
    assume(f.is_injective())
    table = f.inverse_table()
    assert table[f.linear_table().reshape(-1)].tolist() == list(range(f.size))
    assert (table == -1).sum() == f.cosize - f.size


def test_padding_is_marked():
    found = Layout((2, 2), lambda i, j: i * 3 + j).inverse_table()
    assert found.tolist() == [0, 1, -1, 2, 3]


@given(functions(), st.randoms(use_true_random=False))
def test_reshape_keeps_addresses_in_order(f, random):
    rest, shape = f.size, []
    while rest > 1:
        factor = random.choice([d for d in range(2, rest + 1) if rest % d == 0])
        shape.append(factor)
        rest //= factor
    g = f.reshape(shape)
    assert g.linear_table().reshape(-1).tolist() == f.linear_table().reshape(-1).tolist()
    assert g.reshape(f.shape).same_function(f)


@given(functions(), st.sampled_from([2, 4]))
def test_narrow_elements_lie_inside_the_wide_one(f, parts):
    narrow = f.reshape((*f.shape[:-1], f.shape[-1] * parts), 8 * parts, 8)
    wide = f.linear_table()[..., None] * parts + np.arange(parts)
    assert narrow.linear_table().reshape(-1).tolist() == wide.reshape(-1).tolist()
    assert narrow.reshape(f.shape, 8, 8 * parts).same_function(f)


@given(functions(), st.randoms(use_true_random=False))
def test_permute_and_transpose_only_rename(f, random):
    order = random.sample(range(f.rank), f.rank)
    assert np.array_equal(f.permute(order).linear_table(), f.linear_table().transpose(order))
    assert f.transpose().transpose().same_function(f)


@given(functions(), st.data())
def test_slice_is_a_part_of_the_table(f, data):
    begins = [data.draw(st.integers(0, n - 1)) for n in f.shape]
    sizes = [data.draw(st.integers(1, n - b)) for n, b in zip(f.shape, begins, strict=True)]
    part = tuple(slice(b, b + s) for b, s in zip(begins, sizes, strict=True))
    assert np.array_equal(f.slice(begins, sizes).linear_table(), f.linear_table()[part])


@given(functions(), extents)
def test_expand_puts_dimensions_in_front(f, lead):
    g = f.expand((lead,))
    for x in box_of(f):
        assert g(lead - 1, *x) == (lead - 1, *f(*x))
    assert g.cosize == lead * f.cosize


@given(functions(), extents, st.data())
def test_repeat_is_copies_one_after_the_other(f, factor, data):
    dim = data.draw(st.integers(0, f.rank - 1))
    copies = [f.linear_table() + k * f.cosize for k in range(factor)]
    assert np.array_equal(f.repeat(dim, factor).linear_table(), np.concatenate(copies, dim))


@given(functions(), st.data())
def test_contiguity_is_the_longest_aligned_run(f, data):
    axis = data.draw(st.integers(0, f.rank - 1))
    lines = np.moveaxis(f.linear_table(), axis, -1).reshape(-1, f.shape[axis])

    def counts_up(v):
        groups = lines.reshape(lines.shape[0], -1, v)
        return bool((groups - groups[..., :1] == np.arange(v)).all())

    best = max(v for v in range(1, f.shape[axis] + 1) if f.shape[axis] % v == 0 and counts_up(v))
    assert f.contiguity(axis) == best
    width = f.vector_width(axis, 16)
    assert best % width == 0
    assert not (lines[:, ::width] % width).any()


@given(functions())
def test_affine_means_offset_and_strides(f):
    found = f.affine()
    table = f.linear_table()
    if found is not None:
        offset, strides = found
        assert all(table[x] == offset + np.dot(x, strides) for x in box_of(f))
    else:
        steps = [
            int(table[tuple(int(k == axis) for k in range(f.rank))] - table[(0,) * f.rank])
            if n > 1
            else 0
            for axis, n in enumerate(f.shape)
        ]
        assert any(table[x] != table[(0,) * f.rank] + np.dot(x, steps) for x in box_of(f))


@given(functions(), functions())
def test_same_function_and_first_difference_agree_with_the_tables(f, g):
    equal = (f.shape, f.output_shape) == (g.shape, g.output_shape) and np.array_equal(
        f.table(), g.table()
    )
    assert f.same_function(g) == equal
    if f == g:
        assert equal
        assert hash(f) == hash(g)
    if f.shape == g.shape:
        where = f.first_difference(g)
        differing = np.argwhere(f.linear_table() != g.linear_table()).tolist()
        assert where == (tuple(differing[0]) if differing else None)


@given(functions())
def test_printing_and_pickling_bring_the_layout_back(f):
    assert eval(repr(f), {"Layout": Layout}) == f
    again = pickle.loads(pickle.dumps(f))
    assert again == f
    assert hash(again) == hash(f)


panels = st.tuples(
    st.integers(1, 40),
    st.integers(1, 40),
    st.sampled_from([4, 8, 16]),
    st.sampled_from([1, 2, 4]),
    st.integers(0, 1),
)


@given(panels)
def test_packed_panels_are_arrays_of_panels(case):
    rows, cols, panel, group, axis = case
    f = packed_panels((rows, cols), panel, group, axis)
    n, k = (cols, rows) if axis == 1 else (rows, cols)
    assert f.output_shape == (math.ceil(n / panel), math.ceil(k / group), panel, group)
    storage = np.full(f.cosize, -1)
    matrix = np.arange(rows * cols).reshape(rows, cols)
    storage[f.linear_table()] = matrix
    by_kn = matrix if axis == 1 else matrix.T
    whole = np.full((math.ceil(k / group) * group, math.ceil(n / panel) * panel), -1)
    whole[:k, :n] = by_kn
    expected = whole.reshape(-1, group, math.ceil(n / panel), panel).transpose(2, 0, 3, 1)
    assert np.array_equal(storage.reshape(f.output_shape), expected)
    assert f.is_padded() == (n % panel != 0 or k % group != 0)
