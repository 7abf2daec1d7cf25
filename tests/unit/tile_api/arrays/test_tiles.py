"""What is computed once for a row, and which tiles are copies that nobody needs."""

from __future__ import annotations

import re
import warnings

import numpy as np
import pytest

from support.array_programs import (
    PROGRAMS,
    Program,
    bias_relu,
    embedding,
    layer_norm,
    linear_gelu,
    softmax,
)
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


def test_elements_are_stored_as_they_are_computed() -> None:
    x, row = np.zeros((256, 1024), "float16"), np.zeros(1024, "float16")
    assert ", out[" not in Function(softmax, target="cpu").source(x)
    assert ", out[" not in Function(bias_relu, target="cpu").source(x, row, x)
    threads = Function(softmax, target="cuda:sm_90a").source(x, tier="expert")
    assert re.search(r"T\.device\.store\(\s*8,\s*T\.ref\(out\[", threads)


def test_sums_of_products_and_values_of_rows_are_stored_by_way_of_a_tile() -> None:
    x, matrix = np.zeros((64, 96), "float32"), np.zeros((96, 64), "float32")
    linear = Function(linear_gelu, target="cpu").source(x, matrix, matrix[0])
    assert "T.copy(acc, out[" in linear
    looked_up = Function(embedding, target="cpu").source(x, np.zeros(40, "int64"), x[0])
    assert "T.copy(result, out[" in looked_up


def test_what_another_result_reads_is_a_tile() -> None:
    def both(x):
        one = x * 2 + 1
        return one, one * one

    x = np.random.default_rng(0).standard_normal((40, 100)).astype("float32")
    function = Function(both, target="cpu")
    assert ", out0[" in function.source(x)
    for found, right in zip(function(x), both(x), strict=True):
        np.testing.assert_array_equal(found, right)


MIXED = [p for p in PROGRAMS if p.name in ("attention", "cross_entropy", "documents")]


@pytest.mark.parametrize("program", MIXED, ids=lambda p: p.name)
def test_values_of_rows_stay_in_registers_beside_products_of_any_width(program: Program) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        arguments = program.arguments().values()
        Function(program.function, target="cuda:sm_90a").source(*arguments, tier="expert")


@pytest.mark.parametrize("target", ["cuda:sm_90a", "hip:gfx942"])
def test_values_of_rows_of_odd_lengths_stay_in_registers(target: str) -> None:
    x = np.zeros((1000, 1000), "float16")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        Function(layer_norm, target=target).source(x, x[0], x[0], tier="expert")
