"""Arithmetic of positions, which are stored in 32 bits and are integers of 64 for users."""

from __future__ import annotations

import numpy as np
import pytest

from tile_api.arrays.function import Function

X = np.random.default_rng(0).standard_normal((5, 9)).astype("float32")
LARGE = {
    "multiply": lambda x: np.argmax(x, 1) * 1_000_000_000,
    "square": lambda x: (np.argmax(x, 1) + 70_000) ** 2,
    "product": lambda x: (np.argmax(x, 1) + 70_000) * (np.argmin(x, 1) + 70_000),
    "subtract": lambda x: -np.argmax(x, 1) - 2**31,
    "shift": lambda x: np.argmax(x, 1) << 29,
    "shift far": lambda x: np.argmax(x, 1) << 40,
    "shifts": lambda x: np.argmax(x, 1) << np.argmin(x, 1) * 8,
    "shift back": lambda x: np.argsort(x, 1) >> 40,
    "shift indices back": lambda x: np.arange(9) >> np.argmin(x, 1)[:, None] * 5,
    "shift truth back": lambda x: (x > 0) >> 33,
    "shift any truth": lambda x: (x > 0).max(1) >> np.argmin(x, 1) * 8,
    "remainders": lambda x: (np.argmax(x, 1) - 3) % 2**40 + np.fmod(np.argmin(x, 1), -(2**35)),
    "quotients": lambda x: (np.argmax(x, 1) - 3) // 2**40,
    "one of both": lambda x: np.maximum(np.argmax(x, 1), 2**40) - np.minimum(x.argmin(1), -(2**40)),
    "compared": lambda x: np.argmax(x, 1) < 2**32 + np.argmin(x, 1),
    "clipped": lambda x: np.clip(np.argmax(x, 1), 2**33, 2**34),
    "sums": lambda x: (np.argsort(x, 1) * 10**9).sum(1),
    "running sums": lambda x: np.cumsum(np.argsort(x, 1) + 10**9, axis=1),
    "largest": lambda x: (np.argsort(x, 1) * 10**9).max(1),
    "chosen": lambda x: np.where(x[:, 0] > 0, np.argmax(x, 1), 7) * 2**30,
    "bits": lambda x: (np.argmax(x, 1) ^ 2**40) | np.argmin(x, 1),
    "of indices": lambda x: (np.arange(5) + 70_000) ** 2 + np.argmax(x, 1),
}


@pytest.mark.parametrize("name", LARGE)
def test_beyond_32_bits(name):
    function, wanted = LARGE[name], LARGE[name](X)
    for target in ("cpu", "interpret"):
        found = Function(function, target=target)(X)
        assert found.dtype == wanted.dtype
        assert np.array_equal(found, wanted)


def test_with_sizes_that_are_symbols():
    function = Function(lambda x: np.argmax(x, 1) * 1_000_000_000, target="cpu")
    for rows in (3, 4, 5, 6, 7):
        x = np.random.default_rng(rows).standard_normal((rows, 2 * rows)).astype("float32")
        assert np.array_equal(function(x), np.argmax(x, 1) * 1_000_000_000)


def test_small_ones_stay_in_32_bits():
    source = Function(lambda x: np.take(x[0], np.argmax(x, 1) % 4 + 2), target="cpu").source(X)
    assert "int64" not in source.partition("def launch")[0]
