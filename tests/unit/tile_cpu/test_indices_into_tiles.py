"""Indices that data give: outside of a tile, compiled code neither faults nor writes elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import OutOfBounds

FAR = [2**31 - 1, -(2**31), 10**9, -1, 64]


@T.prim_func
def elements(I: T.Tensor((32,), "int32"), O: T.Tensor((3, 32), "float32"), n: T.int32):
    with T.Kernel(1, threads=32):
        s, p = T.alloc_shared((64,), "float32"), T.alloc_shared((32,), "int32")
        wide = T.alloc_fragment((64,), "float16")
        T.fill(s, 1.0)
        T.fill(wide, 2.0)
        T.copy(I, p)
        for i in T.serial(32):
            s[I[i]] = 3.0
        for i in T.serial(n):
            s[i] = s[i] + 1.0
        for i in T.Parallel(32):
            O[0, i] = s[p[i]]
        for i in T.Parallel(32):
            O[1, i] = s[I[0] + i]
        for i in T.serial(32):
            O[2, i] = T.cast(wide[I[i]], "float32")


@pytest.mark.parametrize("far", FAR)
def test_no_index_faults(far: int) -> None:
    at = np.arange(32, dtype=np.int32)
    at[[0, 7, 31]] = far
    out = np.full((3, 32), 9, np.float32)
    tile.compile(elements, target="cpu")(at, out, 70)
    near = np.ones(32, bool)
    near[[0, 7, 31]] = False
    assert (out[0, near] == 4).all()
    assert (out[2, near] == 2).all()


def test_indices_inside_are_as_they_were() -> None:
    at, out = np.arange(32, dtype=np.int32)[::-1].copy(), np.zeros((3, 32), np.float32)
    at[0] = 16
    tile.compile(elements, target="cpu")(at, out, 20)
    s = np.where(np.isin(np.arange(64), at), 3.0, 1.0) + (np.arange(64) < 20)
    np.testing.assert_array_equal(out, [s[at], s[16:48], np.full(32, 2.0)])


def test_checks_tell_the_line() -> None:
    at = np.arange(32, dtype=np.int32)
    at[7] = 64
    with pytest.raises(OutOfBounds, match=r"s\[64\] is outside s\[64\]") as caught:
        tile.compile(elements, target="interpret")(at, np.zeros((3, 32), np.float32), 0)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_what_is_proven_costs_nothing() -> None:
    """Codes of a table, masked or of a type that is short enough, are looked up as they are."""

    @T.prim_func
    def main(
        W: T.Tensor((32,), "uint8"),
        I: T.Tensor((32,), "int32"),
        X: T.Tensor((256,), "float32"),
        O: T.Tensor((3, 32), "float32"),
    ):
        with T.Kernel(1, threads=32):
            table = T.alloc_shared((256,), "float32")
            T.copy(X, table)
            for i in T.Parallel(32):
                O[0, i] = table[T.cast(W[i], "int32")]
                O[1, i] = table[I[i] & 255]
                O[2, i] = table[I[i] % 256]

    text = tile.compile(main, target="cpu").ir("lowered")
    assert text.count("tile_gather") == 3
    assert "256 <" not in text
    assert "< 256" not in text
