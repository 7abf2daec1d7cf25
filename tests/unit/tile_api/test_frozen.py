"""Compile-time values in keys: values that make different kernels are told apart."""

from __future__ import annotations

import enum
import itertools
import struct
from collections import namedtuple
from dataclasses import dataclass

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_api.frozen_values import frozen


@dataclass(frozen=True)
class Options:
    scale: float
    tile: tuple[int, ...] = (1,)


class Policy(enum.IntEnum):
    one = 1


One, Other = (namedtuple("Pair", names) for names in ("a b", "b a"))
NAN = float("nan")
NEGATIVE_NAN, PAYLOAD = (
    struct.unpack("<d", struct.pack("<Q", bits))[0] for bits in (0xFFF8 << 48, 0x7FF8 << 48 | 1)
)

DIFFERENT = [
    0, 1, True, False, 0.0, -0.0, 1.0, NAN, NEGATIVE_NAN, PAYLOAD, 0j, complex(0, -0.0),
    complex(-0.0, 0), "1", b"1", None, (), [], {}, set(), frozenset(), (0.0,), (-0.0,), [0.0],
    {"x": 0.0}, {"x": -0.0}, {1: 2}, {True: 2}, {1.0: 2}, {0.0}, {-0.0}, np.int32(1), np.int64(1),
    np.bool_(True), np.float32(0.0), np.float32(-0.0), np.float64(0.0), np.float64(-0.0),
    ml_dtypes.bfloat16(0.0), ml_dtypes.bfloat16(-0.0), Options(0.0), Options(-0.0), Options(1),
    Options(1.0), Options(1.0, (True,)), Policy.one, One(0, 1), Other(0, 1), T.float32, "float32",
    np.dtype("float32"), np.float32,
]  # fmt: skip


def test_what_differs_has_different_keys():
    for a, b in itertools.combinations(DIFFERENT, 2):
        assert frozen(a) != frozen(b), (a, b)


@pytest.mark.parametrize("value", DIFFERENT, ids=repr)
def test_what_is_the_same_has_one_key(value):
    again = float(repr(value)) if type(value) is float and value == value else value
    assert frozen(value) == frozen(again)
    assert hash(frozen(value)) == hash(frozen(again))


def test_a_nan_is_not_compiled_anew():
    assert frozen(float("nan")) == frozen(NAN)
    assert frozen(np.float32("nan")) == frozen(np.float32("nan"))


@tile.jit(target="interpret")
def lazy(x):
    @T.prim_func
    def kernel(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i] = x

    return kernel


@tile.jit(target="interpret")
def eager(A, x):
    n = T.const("n")
    A: T.Tensor((n,), "float32")
    with T.Kernel(1, threads=32):
        for i in T.Parallel(n):
            A[i] = x


@tile.autotune(configs=[{"block": 4}])
@tile.jit(target="interpret")
def tuned(x, block=4):
    return lazy.func(x)


@pytest.mark.parametrize("kind", [float, np.float32, np.float64])
@pytest.mark.parametrize("style", ["lazy", "eager", "tuned"])
def test_signed_zeros_make_two_kernels(style, kind, tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    for value in (0.0, -0.0, 0.0):
        a = np.ones(4, "float32")
        if style == "eager":
            eager(a, kind(value))
        else:
            {"lazy": lazy, "tuned": tuned}[style](kind(value))(a)
        assert np.signbit(a).tolist() == [np.signbit(value)] * 4


def test_numbers_of_numpy_are_tuned_for_their_values(tmp_path, monkeypatch):
    monkeypatch.setenv("TILE_CACHE_DIR", str(tmp_path))
    for value in (np.int32(3), np.int32(4)):
        a = np.ones(4, "float32")
        tuned(value)(a)
        assert a.tolist() == [value] * 4
