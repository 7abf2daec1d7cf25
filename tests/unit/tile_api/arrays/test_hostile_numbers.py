"""What kernels give for NaN, infinities, large means, ties and integers that wrap: NumPy's."""

from __future__ import annotations

import numpy as np
import pytest

from fuzz.arrays.reference import Right
from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")
NAN, INF = np.nan, np.inf
SMALL = Blocks(rows=4, stream=4, columns=4, resident=0)
ROWS = np.array(
    [[1, 2, 3, 4, 5, 6, 7], [NAN, 2, 3, 4, 5, 6, 7], [1, 2, 3, 4, 5, 6, NAN], [-INF] * 7,
     [INF, 1, 2, 3, 4, 5, 6], [INF, -INF, 1, 1, 1, 1, 1], [-0.0, 0, 0, 0, 0, -0.0, 0],
     [2, 2, 1, 2, 0, 2, 1], [1e-40, -1e-40, 0, 0, 0, 0, 1e-42], [1e30, -1e30, 1e30, 1, 1, 1, 1]],
    "float32",
)  # fmt: skip


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def no_number(x):
    return np.exp(x - x.max(axis=-1, keepdims=True)).max(axis=-1)


def sums_of_exponentials(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    apart = np.exp(x.min(axis=-1, keepdims=True) - x)
    mine = np.where(x[:, 1] > 1, e.mean(axis=-1), 0)
    return e.sum(axis=-1), np.log(e.sum(axis=-1)) + x.max(axis=-1), mine, apart.sum(axis=-1)


FUNCTIONS = [
    lambda x: x.max(axis=-1), lambda x: x.min(axis=-1), lambda x: np.argmax(x, axis=-1),
    lambda x: np.argmin(x, axis=-1), lambda x: x.mean(axis=-1), lambda x: x.var(axis=-1),
    lambda x: (x.mean(axis=-1), x.var(axis=-1)), lambda x: x - x.max(axis=-1, keepdims=True),
    lambda x: np.maximum(x, 0), lambda x: np.minimum(x, 2), lambda x: np.clip(x, 0, 3),
    lambda x: np.maximum(x, x[::-1]), lambda x: np.max(x, axis=-1, initial=1), softmax,
    lambda x: np.logaddexp.reduce(x, axis=-1), lambda x: np.ptp(x, axis=-1), no_number,
    lambda x: np.where(x > 1, x, -np.inf).max(axis=-1), lambda x: x.prod(axis=-1),
    lambda x: np.nanmax(np.where(x > 0, x, 0), axis=-1), lambda x: np.exp2(x), lambda x: np.cbrt(x),
    lambda x: (softmax(x), np.argmax(x, axis=-1)), lambda x: (softmax(-x), np.argmin(x, axis=-1)),
    lambda x: np.max(x > 0, axis=-1, where=x < 0, initial=-1), sums_of_exponentials,
    lambda x: sums_of_exponentials(-x),
]  # fmt: skip


def check(function, *arrays, blocks=SMALL, target="interpret") -> None:
    found = Function(function, target=target, blocks=blocks)(*arrays)
    narrow = function(*arrays)
    wide = function(*(x.astype("float64") if x.dtype.kind == "f" else x for x in arrays))
    several = [x if isinstance(x, tuple) else (x,) for x in (found, narrow, wide)]
    for got, near, right in zip(*several, strict=True):
        near, right = np.asarray(near), np.asarray(right)
        assert Right(near.dtype, near.shape, right, (near,)).wrong(np.asarray(got)) is None


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("blocks", [Blocks(), SMALL], ids=["resident", "streamed"])
@pytest.mark.parametrize("function", FUNCTIONS)
def test_hostile_rows(function, blocks):
    check(function, ROWS, blocks=blocks)


@pytest.mark.parametrize("blocks", [Blocks(), SMALL], ids=["resident", "streamed"])
def test_a_large_mean_leaves_the_variance(blocks):
    x = (np.random.default_rng(0).standard_normal((6, 70)) + 1e4).astype("float32")
    mean, variance = Function(
        lambda x: (x.mean(axis=-1), x.var(axis=-1)), target="interpret", blocks=blocks
    )(x)
    wide = x.astype("float64")
    assert np.abs(variance / wide.var(axis=-1) - 1).max() < 2e-6  # the mean is off by 5e-4
    assert np.abs(mean / wide.mean(axis=-1) - 1).max() < 1.2e-7


INTEGERS = [
    lambda x: x + x, lambda x: x * x, lambda x: np.sqrt(np.abs(x) + 1), lambda x: -x,
    lambda x: (x + 1) > x, lambda x: np.square(x).sum(), lambda x: ~x, lambda x: x << 1,
    lambda x: np.abs(x), lambda x: (x * x) // 3, lambda x: x**3, lambda x: np.max(x - 1),
]  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "int64"])
@pytest.mark.parametrize("function", INTEGERS)
def test_integers_wrap(function, dtype):
    limits = np.iinfo(dtype)
    x = np.array([[limits.min, limits.min + 1, 0, 1, 5], [limits.max, limits.max - 1, 2, 3, 7]])
    check(function, x.astype(dtype))


KNOWN = [
    lambda n: ~n, lambda n: -(n | 1), lambda n: (n | 1) << 31, lambda n: np.gcd(n, 12) * 30000000,
    lambda n: (n - 5) // 2, lambda n: (n ^ 3) * 5000000000, lambda n: np.ldexp(1.5, n - 3),
    lambda n: (np.maximum(n, 1023) << 52) + (np.minimum(n, 3) + 7 << 40), lambda n: 7 // (n % 3),
]  # fmt: skip
"""Of numbers that no element changes, though nothing folds them."""


def row_of_largest(x):
    """Return the row of the largest of one row: 0."""
    return np.unravel_index(np.argmax(x), x.shape)[0]


@pytest.mark.parametrize("dtype", ["uint8", "int8", "int32", "uint32", "float32"])
@pytest.mark.parametrize("function", KNOWN)
def test_integers_that_are_known_wrap(function, dtype):
    x = np.zeros((1, 3), "float32")
    check(lambda x: function(row_of_largest(x)).astype(dtype), x)
    check(lambda x: function(x.argmax(0)).astype(dtype), x)


def test_a_column_that_a_product_divides_by_is_computed_apart():
    def f(a, b):
        return a @ (b / np.abs(b).max(axis=0))

    random = np.random.default_rng(0)
    a, b = (random.standard_normal(s).astype("float32") for s in ((7, 9), (9, 5)))
    check(f, a, b, blocks=Blocks())


def test_a_column_along_the_stream_is_not_read_by_rows():
    x = np.arange(25, dtype="float32").reshape(5, 5) % 7
    for blocks in (Blocks(), SMALL):  # square: a transposed tile would fit
        check(lambda x: np.argmax(x, axis=0), x, blocks=blocks)
        check(lambda x: x - x.max(axis=0), x, blocks=blocks)


def test_sums_that_only_look_like_products():
    x = np.arange(12, dtype="float32").reshape(3, 4) - 5
    check(lambda x, y: np.einsum("ij,jk->k", x, y), x, x.T.copy())
    check(lambda x, y: np.einsum("ij,kj->ik", x, y), x, x[:, :1].copy())
    check(lambda x: np.any(np.argmax(x - x.mean(axis=1, keepdims=True), axis=0)), x)
    check(lambda x: (x @ x.T).prod(axis=-1), x)


def test_infinite_factors_beyond_the_end():
    x = np.arange(14, dtype="float32").reshape(2, 7) + 1
    check(lambda x: np.log(x) @ np.log(x).T, x)


def test_what_does_not_change_along_a_row_is_added_for_each_element():
    x = np.full((1, 1), 0.5, "float32")
    check(lambda x: np.concatenate([np.tanh(x)] * 2).sum(axis=0), x, blocks=Blocks())


def test_masks_do_not_shorten_a_mean():
    x = np.arange(36, dtype="float32").reshape(6, 6)
    check(lambda x: (x - np.tril(x).mean(axis=-1, keepdims=True)) ** 2, x)
    check(lambda x: np.tril(x).mean(axis=-1), x)
    check(lambda x: np.tril(x).var(axis=-1), x)


def test_parts_of_a_stream_keep_what_is_left_of_means():
    x = (np.random.default_rng(0).standard_normal((3, 1000)) + 1e4).astype("float32")
    blocks = Blocks(rows=4, stream=16, resident=0, parts=4)
    f = Function(lambda x: (x.mean(axis=-1), x.var(axis=-1)), target="interpret", blocks=blocks)
    mean, variance = f(x)
    wide = x.astype("float64")
    assert len(f.explain(x).kernels) > 1
    assert np.abs(variance / wide.var(axis=-1) - 1).max() < 2e-6
    assert np.abs(mean / wide.mean(axis=-1) - 1).max() < 2e-7
    check(lambda x: x.mean(axis=-1), x, blocks=blocks)


def test_a_variance_over_a_batch_of_products():
    x = np.random.default_rng(0).standard_normal((5, 6, 3)).astype("float32")
    check(lambda x: (x @ np.swapaxes(x, -1, -2)).var(axis=0), x)
    check(lambda x: (x @ np.swapaxes(x, -1, -2)).mean(axis=0), x)
    check(lambda x: (x @ np.swapaxes(x, -1, -2)).max(axis=0), x)


def test_a_constant_condition_is_none():
    def f(x):
        empty = x[:, :0]
        return np.nansum(empty, axis=-1), np.where(np.zeros(3) < 0, x[:, :3], 1)

    check(f, np.ones((2, 4), "float32"))


def test_plain_exponentials_are_as_right_as_those_of_numpy():
    x = -np.linspace(0, 80, 500, dtype="float32")[None]
    check(lambda x: np.exp(x), x, target="cpu")
    check(lambda x: np.exp(x), x)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_zero_times_nan_is_nan(target):
    x = np.array([[1, NAN, INF, -INF] * 8], "float32")
    check(lambda x: 0.0 * x, x, target=target)


def test_operands_of_products_are_computed_with_in_float32():
    b = np.random.default_rng(0).standard_normal((5, 40)).astype("float16")
    check(lambda b: (b @ b.T, b + np.float32(0.5)), b, blocks=Blocks())


def test_the_interpreter_adds_up_as_numpy_does():
    x = (np.random.default_rng(0).standard_normal((3, 64)) + 1e4).astype("float32")
    found = Function(lambda x: x.var(axis=-1)).interpret(x)
    assert np.abs(found / x.astype("float64").var(axis=-1) - 1).max() < 2e-6


def test_a_reciprocal_by_itself_is_one():
    x = np.random.default_rng(0).standard_normal((129, 5)).astype("float32")
    for f in (lambda x: (1 / x) / (1 / x), lambda x: np.argmax((1 / x) / (1 / x), axis=0)):
        check(f, x)
        np.testing.assert_array_equal(Function(f).interpret(x), f(x))


def test_bytes_that_become_negative_count_from_the_end():
    i, x = np.array([200, 255, 1], "uint8"), np.arange(90, dtype="float32")
    check(lambda x, i: x[i.astype("int8")], x, i)


def test_running_sums_less_their_mean():
    x = np.random.default_rng(0).integers(1, 9, (5, 8)).astype("float32")
    check(lambda x: np.cumsum(x[0]) - np.cumsum(x[0]).mean(axis=0, keepdims=True), x)
    check(lambda x: np.cumsum(x, -1) / np.cumsum(x, -1).max(axis=-1, keepdims=True), x)


def test_running_sums_at_running_places():
    x = np.random.default_rng(0).integers(0, 3, (5, 8)).astype("float32")
    check(lambda x: np.cumsum(x, 1)[np.cumsum(np.argmin(x, 1)) % 5].sum(axis=-1), x)


def test_rows_of_infinities_that_blocks_share():
    check(sums_of_exponentials, ROWS, blocks=Blocks(rows=4, stream=2, resident=0, parts=2))


def log_of_sums(x):
    return np.logaddexp.reduce(x, axis=-1)


def running_maxima(x):
    y = x * np.where(x > 6, np.nan, 1)
    return np.maximum.accumulate(y, -1), np.maximum.accumulate(y[:, ::-1], -1)[:, -1]


def extrema_of_running_sums(x):
    y = np.cumsum(np.where(x > 5, -np.inf, x), axis=0)
    return np.ptp(y, axis=-1), y.max(axis=-1), np.where(y[:, :1] < 9, y, -np.inf).max(axis=-1)


@pytest.mark.parametrize("blocks", [Blocks(), Blocks(rows=4, stream=4, resident=0)])
@pytest.mark.parametrize("function", [running_maxima, extrema_of_running_sums])
def test_hostile_rows_of_recurrences(function, blocks):
    check(function, ROWS, blocks=blocks)


def weighted(x):
    """Attention: a quotient of two sums."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e @ x[:7] / e.sum(axis=-1, keepdims=True)


def test_only_results_that_tell_it_are_corrected():
    made = [softmax, log_of_sums, weighted, sums_of_exponentials]
    texts = [Function(f, target="interpret", blocks=SMALL).source(ROWS) for f in made]
    assert [text.count("T.exp2((highest[i] + T.infinity") for text in texts] == [0, 0, 0, 2]


def largest(y, axis):
    return y == y.max(axis=axis, keepdims=True)


LARGEST = {
    "of shares of a row": lambda x: largest(x / np.abs(x).sum(axis=-1, keepdims=True), 0),
    "of shares of a column": lambda x: largest(x / np.abs(x).sum(axis=0, keepdims=True), -1),
    "of products": lambda x: largest(x.T @ x, 0),
    "of quotients": lambda x: largest(np.tanh(x) * np.exp(x) / 3, 0),
}


@pytest.mark.parametrize("name", LARGEST)
def test_each_row_has_a_largest_element(name):
    """Its elements are computed in one way, whatever kernel compares them."""
    x = np.random.default_rng(0).standard_normal((24, 70)).astype("float32")
    found = Function(LARGEST[name], target="interpret")(x)
    wanted = LARGEST[name](x)
    assert found.sum() == wanted.sum()


def test_what_a_mask_leaves_may_be_no_number():
    def function(x):
        y = np.where(np.arange(8)[:, None] >= np.arange(12), x, -np.inf)
        return (y - y).max(axis=-1), np.exp(y - 2 * y).sum(axis=-1)

    check(function, np.ones((8, 12), "float32"))


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_numbers_divided_by_zero_are_infinite_or_none(target):
    """Beside a mask, and where an element of a row is asked for, all that is left is numbers."""

    def greatest(x):
        x = np.tril(x)
        parts = x / x, 1 / x, x / np.abs(x), np.floor(3 / (x * x))
        return [np.sort(part, axis=-1)[:, ::-1][:, :2] for part in parts]

    x = np.array([[2.0, 6.0]], "float32")
    found = Function(greatest, target=target, blocks=Blocks(resident=0))(x)
    with np.errstate(all="ignore"):
        for got, wanted in zip(found, greatest(x), strict=True):
            np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_a_masked_infinity_less_itself_is_no_number(target):
    def differences(x):
        masked = np.where(np.arange(7)[:, None] - np.arange(1) < 5, x, -np.inf)
        return masked - masked, masked / masked

    x = np.ones((2, 7, 1), "float32")
    found = Function(differences, target=target)(x)
    with np.errstate(all="ignore"):
        for got, wanted in zip(found, differences(x), strict=True):
            np.testing.assert_array_equal(got, wanted)


def test_factors_that_do_not_keep_orders_stay_within_extrema():
    def extrema(x):
        return (x * 2).max(axis=-1), (x * 3).min(axis=-1)

    x = np.array([[100, -128, 3, -5], [1, 2, 3, 64]], "int8")
    check(extrema, x)
    check(extrema, x.astype("int32") << 24)
    with np.errstate(all="ignore"):
        check(lambda x: (x * np.float32(np.inf)).max(axis=-1), np.eye(4, dtype="float32"))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
@pytest.mark.parametrize("dtype", ["int32", "uint8"])
def test_shifts_by_the_width_and_more(target, dtype):
    def shifts(x, n):
        return x << n, x >> n, x << 40, x >> 40, x << -1, x >> -1

    def naturals(x, n):
        return x << n, x >> n, x << 40, x >> 40

    function = naturals if dtype == "uint8" else shifts
    x = np.array([1, 250, 7, 250, 0, 250], dtype) - np.array(dtype == "int32", dtype) * 128
    n = np.array([0, 7, 8, 31, 32, 100 if dtype == "uint8" else -3], dtype)
    found = Function(function, target=target)(x, n)
    for got, wanted in zip(found, function(x, n), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_shifts_by_what_is_less_than_the_width_are_as_they_are():
    def unpacked(x):
        return x[:, None] >> np.arange(2, dtype="uint8") * 4 & 15, x << (x & 7)

    x = np.arange(5, dtype="uint8")
    text = Function(unpacked).source(x)
    assert "T.if_then_else" not in text


ORDERS = {
    "the right ones first": lambda a, b, c: a + (b + c),
    "in pairs": lambda a, b, c: (a + b) + (a + c),
    "less a sum": lambda a, b, c: a - (b + c),
    "a constant array": lambda a, b, c: a[:, None] + np.array([0.5, -1.5], "float32"),
    "negative first": lambda a, b, c: -a + (b + (c + a)),
    "products": lambda a, b, c: a * (b * (c * a)),
}


@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize("name", ORDERS)
def test_floats_are_added_in_the_order_of_the_program(name, target):
    random = np.random.default_rng(6)
    a, b, c = (random.standard_normal(200).astype("float32") for _ in range(3))
    b, c = 1e8 * b, -1e8 * b + c
    f = ORDERS[name]
    np.testing.assert_array_equal(Function(f, target=target)(a, b, c), f(a, b, c))
