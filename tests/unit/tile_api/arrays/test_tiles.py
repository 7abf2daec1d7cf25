"""What is computed once for a row, and which tiles are copies that nobody needs."""

from __future__ import annotations

import numpy as np

from support.array_programs import softmax
from tile_api.arrays.function import Function


def test_a_quotient_by_row_values_is_a_product() -> None:
    x = np.random.default_rng(0).standard_normal((40, 100)).astype("float32")
    function = Function(softmax, target="cpu")
    source = function.source(x)
    kernel = source.partition("@tile.jit")[2].partition("def launch")[0]
    assert kernel.count(" / ") == 1
    assert "scale[i] = 1.0 / total[i]" in source
    np.testing.assert_allclose(function(x), softmax(x), rtol=1e-6)


def test_a_quotient_that_is_rounded_to_steps_stays_one() -> None:
    def whole(x):
        return np.floor(x / x.max(axis=-1, keepdims=True) * 49)

    top = np.arange(1, 200, dtype="float32")[:, None]
    x = top * (np.arange(50, dtype="float32") / 49)
    x[:, -1] = top[:, 0]
    function = Function(whole, target="cpu")
    assert "scale" not in function.source(x)
    np.testing.assert_array_equal(function(x), whole(x))


def test_what_was_loaded_is_folded_where_it_lies() -> None:
    def total(x):
        return x.sum(axis=-1)

    source = Function(total, target="cpu").source(np.zeros((40, 100), "float32"))
    assert source.count("T.alloc_fragment((BM, 100)") == 1
