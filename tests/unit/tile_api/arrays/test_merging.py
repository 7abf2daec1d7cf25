"""Variables that become one, and tensors in shapes in which indices are plain."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tile_api as tile
from support.captured_arrays import filled
from tile_api.arrays.equations.expressions import (
    add,
    bound_of,
    compared,
    const,
    index,
    integer_part,
    make,
    multiply,
)
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.planning.reshaping import plain_form

SIZES = {"a": 3, "b": 4, "c": 6}
NUMBERS = st.sampled_from([1, 2, 3, 4, 6, 12])
INDICES = st.recursive(
    st.sampled_from([index(name, n) for name, n in SIZES.items()]) | st.integers(0, 13).map(const),
    lambda inner: (
        st.builds(add, inner, inner)
        | st.builds(multiply, NUMBERS.map(const), inner)
        | st.builds(integer_part, st.sampled_from(["floordiv", "mod"]), inner, NUMBERS.map(const))
    ),
    max_leaves=6,
)


def value(x, at):
    if x.op in ("const", "index"):
        return x.value if x.op == "const" else at[x.value[0]]
    one, other = (value(arg, at) for arg in x.args)
    return {
        "add": one + other, "multiply": one * other,
        "floordiv": one // (other or 1), "mod": one % (other or 1),
    }[x.op]  # fmt: skip


@given(INDICES, NUMBERS)
def test_quotients_and_remainders_are_simplified(x, n):
    for op in ("floordiv", "mod"):
        short, written = integer_part(op, x, const(n)), make(op, x, const(n))
        bound = bound_of(short)
        for numbers in itertools.product(*map(range, SIZES.values())):
            at = dict(zip(SIZES, numbers, strict=True))
            assert value(short, at) == value(written, at)
            assert bound is None or 0 <= value(short, at) < bound


@given(st.lists(st.sampled_from([2, 3, 4]), min_size=1, max_size=4), st.data())
def test_another_shape_has_the_same_elements(shape, data):
    indices = [data.draw(INDICES) for _ in shape]
    indices = [integer_part("mod", at, const(n)) for at, n in zip(indices, shape, strict=True)]
    other, plain = plain_form(tuple(shape), indices)
    elements = np.arange(np.prod(shape)).reshape(shape)
    for numbers in itertools.product(*map(range, SIZES.values())):
        at = dict(zip(SIZES, numbers, strict=True))
        mine = tuple(value(x, at) for x in indices)
        assert elements[mine] == elements.reshape(other)[tuple(value(x, at) for x in plain)]


def test_parts_of_an_index_are_one():
    r, g = index("r", 12), index("g", 5)
    rows, columns = (integer_part(op, r, const(4)) for op in ("floordiv", "mod"))
    assert plain_form((5, 3, 4), (g, rows, columns)) == ((5, 12), [g, r])
    assert plain_form((5, 4, 3), (g, rows, columns)) == ((5, 4, 3), [g, rows, columns])
    line = add(multiply(const(12), g), r)
    assert plain_form((60,), (line,)) == ((5, 12), [g, r])
    assert plain_form((61,), (line,)) == ((61,), [line])


def contracted_twice(x, y):
    return np.einsum("nchw,chwo->no", x, y)


def rows_of_images(x, y):
    return np.einsum("nchw,co->nhwo", x, y)


def two_axes(x):
    return x.sum(axis=(0, 2)), x.max(axis=(1, 2)), x.mean()


CASES = [
    (contracted_twice, [(5, 3, 4, 2), (3, 4, 2, 6)], ["T.reshape(y, (24, 6))", "T.gemm"]),
    (rows_of_images, [(2, 3, 4, 5), (3, 6)], ["T.reshape(x, (2, 3, 20))", "T.gemm"]),
    (two_axes, [(5, 6, 7)], ["T.reshape(x, (5, 42))", "T.reshape(x, (210,))"]),
]


@pytest.mark.parametrize(
    ("function", "shapes", "texts"), CASES, ids=lambda x: getattr(x, "__name__", "")
)
def test_variables_that_belong_together_are_one(function, shapes, texts):
    made = Function(function, target="cpu")
    arguments = [filled(shape, "float32", k, -2, 3) for k, shape in enumerate(shapes)]
    source = made.source(*arguments)
    assert [text for text in texts if text not in source] == []
    wanted = function(*arguments)
    found = made(*arguments)
    for got, right in zip(in_tuple(found), in_tuple(wanted), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-5, atol=1e-5)


def in_tuple(x):
    return x if isinstance(x, tuple) else (x,)


def test_reductions_of_few_elements_are_written_out():
    def folds(x):
        w = np.lib.stride_tricks.sliding_window_view(x, 3, axis=1)
        return w.sum(-1), w.mean(-1), w.max(-1), w.min(-1), w.prod(-1)

    x = filled((5, 9), "float32", 0, -2, 3)
    made = Function(folds, target="cpu")
    assert "T.reduce" not in made.source(x)
    for got, right in zip(made(x), folds(x), strict=True):
        np.testing.assert_allclose(got, right, rtol=1e-6)
    assert "T.reduce" in Function(lambda x: np.exp(x - x.max(-1, keepdims=True))).source(x)


@given(INDICES, st.integers(0, 30), st.sampled_from(["lt", "le"]))
def test_bounds_decide_comparisons(x, end, op):
    short = compared(op, x, const(end))
    for numbers in itertools.product(*map(range, SIZES.values())):
        at = value(x, dict(zip(SIZES, numbers, strict=True)))
        assert short.op == op or short.value == (at < end if op == "lt" else at <= end)


def test_what_is_read_otherwise_stays_apart():
    def causal_rows(x, y):
        s = np.einsum("hqd,kd->hqk", x, y)
        return np.where(np.arange(x.shape[1])[:, None] >= np.arange(y.shape[0]), s, 0)

    x, y = filled((3, 70, 8), "float32", 0, -2, 3), filled((70, 8), "float32", 1, -2, 3)
    made = Function(causal_rows, target="cpu")
    assert "T.reshape" not in made.source(x, y)
    np.testing.assert_allclose(made(x, y), causal_rows(x, y), rtol=1e-5)


@pytest.mark.parametrize(("height", "width"), [(56, 48), (512, 64)])
def test_tiles_of_windows_lie_along_rows_of_images(height, width):
    def convolution(x, weight):
        return tile.nn.conv2d(x, weight, padding=1)

    found = Function(convolution, target="cpu")
    x, weight = np.ones((2, 4, height, width), "float32"), np.ones((8, 4, 3, 3), "float32")
    shown = str(found.explain(x, weight))
    (columns,) = (line for line in shown.splitlines() if "columns: " in line)
    assert f" of {width * height}" in columns
    assert int(columns.split()[-1]) % width == 0
    assert f", {width}):" in found.source(x, weight)


def test_blocks_that_share_a_stream_read_and_write_other_shapes():
    def linear(x, y):
        return x @ y

    x, y = filled((2, 9, 40), "float32", 0, -2, 3), filled((40, 8), "float32", 1, -2, 3)
    made = Function(linear, target="cpu", blocks=Blocks(stream=8, parts=3))
    assert (
        made.source(x, y).count("T.reshape") == 2
    )  # x in the first kernel, the result in the last
    np.testing.assert_allclose(made(x, y), linear(x, y), rtol=1e-5)


def norm_of_channels(x, scale, before):
    mean = x.mean((0, 2))
    apart = x - mean[None, :, None]
    variance = (apart * apart).mean((0, 2))
    return apart * (scale / np.sqrt(variance + 1))[None, :, None], mean, before + variance


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a@sim"])
def test_results_of_the_rows_of_a_fold_are_written_beside_it(target):
    arguments = filled((3, 5, 4), "float32", 1), filled((5,), "float32"), filled((5,), "float32")
    function = Function(norm_of_channels, target=target, blocks=Blocks(rows=4, stream=8))
    first, second = function.explain(*arguments).kernels
    assert {"out1", "out2"} < {*first.outputs}
    assert second.outputs == ("out0",)
    for found, wanted in zip(function(*arguments), norm_of_channels(*arguments), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-5, atol=1e-5)


def test_what_another_result_reads_is_a_kernel_after_those_it_is_made_of():
    def places(x):
        mean = np.argmax(x, axis=0).mean()
        return np.minimum(mean, x), mean

    x = filled((33, 2), "float64", 0, -9, 10)
    function = Function(places, target="interpret")
    kernels = function.explain(x).kernels
    assert [k.outputs for k in kernels][-2:] == [("out1",), ("out0",)]
    for found, wanted in zip(function(x), places(x), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_kernels_that_read_each_other_in_turn_are_not_one():
    """The second least position is that of a value that is found by the first one."""

    def products(x):
        last = np.sort(x, axis=-1)[..., ::-1][..., :2]
        first = np.take_along_axis(last, np.argsort(last, axis=1, kind="stable"), axis=1)
        return first @ first.T

    x = filled((5, 20), "float32", 0, -9, 10)
    blocks = Blocks(resident=0, rows=4, stream=8, columns=8)
    made = {"x"}
    for kernel in Function(products, target="interpret", blocks=blocks).explain(x).kernels:
        assert {*kernel.inputs} <= made
        made |= {*kernel.outputs}


def test_the_text_of_a_written_out_extremum_is_as_long_as_its_parts():
    def least(x):
        x = np.clip(np.tril(x), 0, 3)
        return (x / np.sqrt((x * x).mean(axis=-2, keepdims=True) + 1e-5)).min()

    x = filled((33, 7), "float32", 0, -9, 10)
    blocks = Blocks(resident=0, rows=8, stream=16, columns=16)
    found = Function(least, target="interpret", blocks=blocks)(x)
    np.testing.assert_allclose(found, least(x), rtol=1e-5)


@pytest.mark.parametrize("function", [
    lambda x: (np.abs(x), np.abs(np.take(x, np.arange(8) // 2, axis=0))),
    lambda x: (np.abs(np.take(x, np.arange(8) // 2, axis=0)), np.abs(x)),
    lambda x: (np.abs(np.repeat(x[:4], 2, axis=0)), np.abs(np.repeat(x[:2], 4, axis=0))),
])  # fmt: skip
def test_results_of_one_shape_whose_indices_are_split_for_gradients(function) -> None:
    x = np.random.default_rng(0).integers(1, 9, (8, 6)).astype("float32")
    (first, second), pull = Function(function, target="interpret").vjp(x)
    np.testing.assert_array_equal(first, function(x)[0])
    np.testing.assert_array_equal(second, function(x)[1])
    found = pull(np.full((8, 6), 3, "float32"), np.ones((8, 6), "float32"))

    def weighed(x):  # linear in positive elements
        first, second = function(x)
        return 3 * first.sum() + second.sum()

    one = np.eye(48, dtype="float32").reshape(48, 8, 6)
    wanted = np.array([weighed(x + e) - weighed(x) for e in one]).reshape(8, 6)
    np.testing.assert_array_equal(np.asarray(found).reshape(8, 6), wanted)


def test_a_sum_that_is_the_same_for_all_remainders_is_computed_once() -> None:
    def repeated(x, w, scale):
        return np.repeat(x, 2, axis=0) @ w * scale[:, None]

    x, w, scale = (filled(n, "float32") for n in ((32, 48), (48, 64), (64,)))
    function = Function(repeated, target="cpu")
    told = str(function.explain(x, w, scale))
    rows = [line.split()[-1] for line in told.splitlines() if "  rows: " in line]
    assert rows == ["32", "64"]  # of the product, and of what is multiplied in the end
    np.testing.assert_array_equal(function(x, w, scale), repeated(x, w, scale))


def test_results_that_are_split_at_several_places_have_variables_of_their_own():
    def function(a, b):
        v = np.einsum("ij,kj->ik", np.einsum("ij,kj->ik", b, a) ** 2, a).reshape(-1)
        return np.kron(v, v)

    a, b = filled((3, 1), "float64", 1), filled((2, 3), "float64", 2)
    for target in ("interpret", "cpu"):
        np.testing.assert_array_equal(Function(function, target=target)(a, b), function(a, b))


def test_products_that_others_go_through_are_not_computed_again_for_each_part() -> None:
    """States of chunks, and what these hand on: two products, the first of which is read often."""

    def handed_on(x, b, decay):
        states = np.einsum("bclhn,bclhp->bchpn", b, x).transpose(0, 2, 1, 3, 4)
        return decay @ states.reshape(16, 5, 1024)

    x, b, decay = (filled(n, "float32", 0, -2, 3) for n in ((2, 5, 64, 8, 32),) * 2 + ((16, 5, 5),))
    function = Function(handed_on, target="cpu")
    assert len(function.explain(x, b, decay).kernels) == 2
    np.testing.assert_allclose(function(x, b, decay), handed_on(x, b, decay), rtol=1e-5, atol=1e-3)
