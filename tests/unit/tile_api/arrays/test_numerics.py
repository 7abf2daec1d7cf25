"""What `numerics` of `tile.function` lets kernels change."""

from __future__ import annotations

import numpy as np
import pytest

from tile_api.arrays.function import Function
from tile_api.arrays.planning.plan import Blocks
from tile_core.errors import FrontendValueError

STREAMED = Blocks(rows=4, stream=8, columns=8, resident=0)
X = np.random.default_rng(0).standard_normal((5, 20)).astype("float32") * 30


def softmax(x):
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def quotient(x):
    return x / 49.0


def source(function, numerics, *arrays, blocks=STREAMED) -> str:
    text = Function(function, blocks=blocks, numerics=numerics).source(*arrays)
    return text[text.index("with T.Kernel") : text.index("return main")]


def test_strict_divides():
    strict = Function(quotient, target="interpret", numerics="strict")
    np.testing.assert_array_equal(strict(X), X / np.float32(49))
    assert "/ 49.0" in source(quotient, "strict", X)
    assert "/ 49.0" not in source(quotient, "default", X)


def test_a_product_with_a_reciprocal_is_within_the_bar():
    found = Function(quotient, target="interpret")(X)
    wide = X.astype("float64") / 49
    assert np.abs(found / wide - 1).max() <= 4 * np.abs(X / np.float32(49) / wide - 1).max()


def test_quotients_that_are_rounded_to_steps_stay_quotients():
    whole = (np.arange(1, 200, dtype="float32") * 49)[None]  # 49 * (1 / 49) is less than 1
    found = Function(lambda x: np.floor(x / 49.0), target="interpret")(whole)
    np.testing.assert_array_equal(found, np.arange(1, 200)[None])
    found = Function(lambda x: (x / 49.0).astype("int32"), target="interpret")(whole)
    np.testing.assert_array_equal(found, np.arange(1, 200)[None])


@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim"])
def test_quotients_of_whole_numbers_stay_quotients(target):
    def rounded(x):
        return np.round(x, 1), np.round(x, 2), np.floor(x) / 3

    for found, wanted in zip(Function(rounded, target=target)(X), rounded(X), strict=True):
        np.testing.assert_array_equal(found, wanted)


def test_strict_changes_nothing_but_the_order_of_sums():
    def rules(numerics):
        function = Function(softmax, blocks=STREAMED, numerics=numerics)
        return [kernel.rules for kernel in function.explain(X).kernels]

    assert rules("strict") == [("highest = max: independent", "total = sum: another sweep")]
    assert rules("default") == [("highest = max: independent", "total = sum: scaling")]
    text = source(softmax, "strict", X)
    assert "exp2" not in text
    assert "rescale" not in text
    assert "/ total[i]" in text
    assert "scale[i]" not in text


def test_strict_keeps_factors_and_roots_as_they_are_written():
    x = np.full((1, 4), 3e38, "float32")
    function = Function(lambda x: 0.25 * (4.0 * x), target="interpret", numerics="strict")
    assert np.isinf(function(x)).all()  # as NumPy, which multiplies by 4 first
    assert "T.rsqrt" not in source(lambda x: 1 / np.sqrt(x), "strict", X)
    assert "T.rsqrt" in source(lambda x: 1 / np.sqrt(x), "default", X)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_exponentials_of_what_is_no_difference_are_not_of_a_rounded_multiple(target):
    x = np.tile(np.linspace(-80, 80, 97, dtype="float32")[:, None], (1, 2))
    found = Function(lambda x: np.exp(x.sum(axis=-1) / 2), target=target)(x)
    np.testing.assert_allclose(found, np.exp(x[:, 0].astype("float64")), rtol=4e-7)


@pytest.mark.parametrize("blocks", [Blocks(), STREAMED], ids=["resident", "streamed"])
@pytest.mark.parametrize("numerics", ["strict", "default", "fast"])
def test_all_levels_are_right(numerics, blocks):
    def f(x, y):
        return softmax(x) @ y, x.var(axis=-1), (x / np.sqrt((x * x).mean(axis=-1, keepdims=True)))

    y = np.random.default_rng(1).standard_normal((20, 7)).astype("float32")
    found = Function(f, target="interpret", blocks=blocks, numerics=numerics)(X, y)
    for got, wanted in zip(found, f(X.astype("float64"), y.astype("float64")), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=3e-6, atol=1e-6)


def test_fast_approximates_functions():
    fast = Function(softmax, numerics="fast", target="cuda:sm_80@sim")
    assert "pass_configs={tile.PassConfigKey.TL_ENABLE_FAST_MATH: True}" in fast.source(X)
    np.testing.assert_allclose(fast(X), softmax(X), rtol=1e-5, atol=1e-7)
    assert "pass_configs" not in Function(softmax).source(X)


def test_an_unknown_level_is_refused():
    with pytest.raises(FrontendValueError) as caught:
        Function(softmax, numerics="exact")
    assert "numerics='exact' is no way to compute" in str(caught.value)
    assert "one of 'strict', 'default', 'fast'" in str(caught.value)
