"""Conversions between element types, and of bits."""

import math

import ml_dtypes
import numpy as np
import pytest

import tile_api.language as T
from support.arrays import dtype_named, poisoned
from tile_core.errors import TileError

RNG = np.random.default_rng(5)
FLOATS = np.array(
    [
        0.0,
        -0.0,
        1.0,
        -1.5,
        2.5,
        0.3,
        300.0,
        -300.0,
        1e5,
        -1e9,
        3e9,
        1e20,
        -1e20,
        np.inf,
        -np.inf,
        np.nan,
        1e-8,
        0.017,
    ],
    "float32",
)
INTEGERS = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64"]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", INTEGERS)
def test_floats_to_integers_truncate_and_saturate(run, dtype):
    @T.prim_func
    def main(A: T.Tensor((18,), "float32"), B: T.Tensor((18,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(18):
                B[i] = T.cast(A[i], dtype)

    b = poisoned(18, dtype=dtype)
    run(main, FLOATS, b)
    info = np.iinfo(dtype)
    expected = [
        0 if math.isnan(x) else info.max if x >= info.max else info.min if x <= info.min else int(x)
        for x in FLOATS.tolist()
    ]
    assert b.tolist() == expected


@pytest.mark.parametrize(("dtype", "low", "high"), [("int4", -8, 7), ("uint4", 0, 15)])
def test_floats_to_half_bytes_truncate_and_saturate(run, dtype, low, high):
    @T.prim_func
    def main(A: T.Tensor((18,), "float32"), B: T.Tensor((18,), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(18):
                B[i] = T.cast(T.cast(A[i], dtype), "int32")

    b = poisoned(18)
    run(main, FLOATS, b)
    assert b.tolist() == [
        0 if math.isnan(x) else int(min(max(x, low), high)) for x in FLOATS.tolist()
    ]


EVERYTHING = (
    "int8", "uint8", "int32", "uint64", "float32", "float16", "bfloat16", "float64", "bool",
)  # fmt: skip


@T.macro
def converted(A, B):
    for i in T.Parallel(7):
        B[i] = A[i].astype(B.dtype)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("source", INTEGERS)
def test_integers_to_everything(run, source):
    @T.prim_func
    def main(
        A: T.Tensor((7,), source),
        B0: T.Tensor((7,), EVERYTHING[0]),
        B1: T.Tensor((7,), EVERYTHING[1]),
        B2: T.Tensor((7,), EVERYTHING[2]),
        B3: T.Tensor((7,), EVERYTHING[3]),
        B4: T.Tensor((7,), EVERYTHING[4]),
        B5: T.Tensor((7,), EVERYTHING[5]),
        B6: T.Tensor((7,), EVERYTHING[6]),
        B7: T.Tensor((7,), EVERYTHING[7]),
        B8: T.Tensor((7,), EVERYTHING[8]),
    ):
        with T.Kernel(1, threads=32):
            [converted(A, B) for B in (B0, B1, B2, B3, B4, B5, B6, B7, B8)]

    info = np.iinfo(source)
    a = np.array([0, 1, 5, 100, 127, info.max, info.min], source)
    found = [poisoned(7, dtype=target) for target in EVERYTHING]
    run(main, a, *found)
    for b, target in zip(found, EVERYTHING, strict=True):
        if target == "bfloat16":
            expected = a.astype("float32").astype(b.dtype)
        else:
            with np.errstate(over="ignore"):
                expected = a.astype(b.dtype)
        assert np.array_equal(b, expected), target


NARROW = [
    "float16",
    "bfloat16",
    "float8_e4m3fn",
    "float8_e5m2",
    "float8_e4m3fnuz",
    "float8_e5m2fnuz",
    "float8_e3m4",
    "float8_e4m3b11fnuz",
    "float8_e8m0fnu",
    "float6_e2m3fn",
    "float6_e3m2fn",
]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("source", ["float64", "float32", "float16", "bfloat16", "float8_e4m3fn"])
def test_floats_to_shorter_ones(run, source):
    targets = ("float16", "bfloat16", "float8_e4m3fn", "float8_e5m2")

    @T.prim_func
    def main(
        A: T.Tensor((7,), source),
        B0: T.Tensor((7,), targets[0]),
        B1: T.Tensor((7,), targets[1]),
        B2: T.Tensor((7,), targets[2]),
        B3: T.Tensor((7,), targets[3]),
    ):
        with T.Kernel(1, threads=32):
            [converted(A, B) for B in (B0, B1, B2, B3)]

    found = [poisoned(7, dtype=target) for target in targets]
    a = np.array([0, 1, -1.5, 0.1, 3.14159, -20.7, 448]).astype(poisoned(1, dtype=source).dtype)
    run(main, a, *found)
    for b, target in zip(found, targets, strict=True):
        assert np.array_equal(b, a.astype("float32").astype(b.dtype)), target


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", NARROW)
def test_floats_to_narrow_floats_round_to_even_and_saturate(run, dtype):
    values = np.concatenate(
        [FLOATS[np.isfinite(FLOATS)], RNG.normal(size=200) * 8, np.arange(-20, 20) / 16]
    ).astype("float32")
    if dtype == "float8_e8m0fnu":
        values = np.exp2(RNG.integers(-120, 120, 50)).astype("float32")
    count = len(values)

    @T.prim_func
    def main(A: T.Tensor((count,), "float32"), B: T.Tensor((count,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                B[i] = T.cast(A[i], dtype)

    b = np.ones(count, dtype_named(dtype))
    run(main, values, b)
    info = ml_dtypes.finfo(b.dtype)
    bounded = (
        values
        if dtype in ("float16", "bfloat16")
        else np.clip(values, np.float32(info.min), np.float32(info.max))
    )
    with np.errstate(over="ignore"):
        assert np.array_equal(b.astype("float32"), bounded.astype(b.dtype).astype("float32"))


@pytest.mark.parametrize("dtype", ["float8_e4m3", T.float8_e4m3, "float8_e4m3fn"])
def test_e4m3_ends_at_448_and_has_no_infinity(run, dtype):
    values = [240, 248, 256, 448, 449, 463, 464, 465, 480, 1e9, np.inf, -464, -465, -np.inf, np.nan]
    count = len(values)

    @T.prim_func
    def main(
        A: T.Tensor((count,), "float32"), B: T.Tensor((count,), dtype), C: T.Tensor((count,), dtype)
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(count):
                B[i] = T.cast(A[i], dtype)
                C[i] = T.cast(A[i], dtype, sat=False)

    b, c = (np.ones(count, ml_dtypes.float8_e4m3fn) for _ in range(2))
    run(main, np.array(values, "float32"), b, c)
    # Steps of 32 from 256 on: 464 is a tie, which goes to 448, whose last bit is even; 480 is NaN.
    below, nan = [240, 256, 256, 448, 448, 448, 448], np.nan
    assert np.array_equal(
        b.astype("float32"), [*below, 448, 448, 448, 448, -448, -448, -448, nan], equal_nan=True
    )
    assert np.array_equal(
        c.astype("float32"), [*below, nan, nan, nan, nan, -448, nan, nan, nan], equal_nan=True
    )


def test_reinterpret_in_both_orders(run):
    @T.prim_func
    def main(
        A: T.Tensor((4,), "float32"),
        B: T.Tensor((4,), "int32"),
        C: T.Tensor((4,), "uint16"),
        D: T.Tensor((4,), "float32"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[i] = T.reinterpret(A[i], "int32")
                C[i] = T.reinterpret("uint16", T.cast(A[i], "float16"))
                D[i] = T.reinterpret(B[i] ^ T.int32(-(1 << 31)), T.float32)

    a = np.array([1, -2.5, 0, np.inf], "float32")
    b, c, d = poisoned(4), poisoned(4, dtype="uint16"), poisoned(4, dtype="float32")
    run(main, a, b, c, d)
    assert np.array_equal(b, a.view("int32"))
    assert np.array_equal(c, a.astype("float16").view("uint16"))
    assert np.array_equal(d, -a)


def test_spellings_of_casts(run):
    @T.prim_func
    def main(A: T.Tensor((1,), "float32"), B: T.Tensor((5,), "float32")):
        with T.Kernel(1):
            B[0] = T.Cast("int32", A[0])
            B[1] = A[0].astype("int8")
            B[2] = T.int32(A[0])
            B[3] = T.cast(A[0], T.int16)
            B[4] = T.cast(A[0], "int32", sat=False)

    b = poisoned(5, dtype="float32")
    run(main, np.array([2.75], "float32"), b)
    assert b.tolist() == [2] * 5
    with pytest.raises(TileError):

        @T.prim_func
        def needs_bits(A: T.Tensor((1,), "float32")):
            with T.Kernel(1):
                A[0] = T.cast(A[0], "float8_e4m3fn", round="rs")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("threads_are_named", [True, False])
@pytest.mark.parametrize(
    "zero", ["bool", "float32", "float16", "bfloat16", "float8_e4m3fn", "int8"]
)
def test_bits_of_what_folds_to_zero(run, zero, threads_are_named):
    """Compilers see through the sums; the stores are under a condition that they do not see."""
    bits = dtype_named(zero).itemsize * 8

    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((61,), zero)):
        with T.Kernel(1, threads=64) as bx:

            def store(i):
                nothing = T.cast(bx - bx, f"int{bits}")
                B[i] = bx < -1 if zero == "bool" else T.reinterpret(nothing, zero)

            if threads_are_named:
                tx = T.get_thread_binding()
                if (tx < 61) & (A[tx] != -1):
                    store(tx)
            else:
                for i in T.Parallel(61):
                    if A[i] != -1:
                        store(i)

    given = np.arange(64, dtype=np.int32) % 3 - 1
    found = np.ones(61, dtype_named(zero))
    run(main, given, found)
    np.testing.assert_array_equal(found.astype("float32"), given[:61] == -1)


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("target", ["int4", "uint4", "int8", "uint8", "uint64"])
@pytest.mark.parametrize("number", [-1, 7, -8, 0])
def test_tiles_of_literals_in_other_integers(run, target, number):
    @T.prim_func
    def main(B: T.Tensor((6, 4), target), C: T.Tensor((6, 4), "int32")):
        with T.Kernel(1, threads=32):
            tile = T.alloc_fragment((16, 4), "int8")
            for i, j in T.Parallel(16, 4):
                tile[i, j] = T.cast(number, "int8")
            T.copy(tile, B[0, 0])
            for i, j in T.Parallel(6, 4):
                C[i, j] = T.cast(B[i, j], "int32")

    bits = 4 if "4" in target and "64" not in target else int(target.lstrip("uint"))
    low = 0 if target[0] == "u" else -(1 << (bits - 1))
    wanted = np.uint64((number - low) % (1 << bits) + low & 0xFFFFFFFFFFFFFFFF).astype("int32")
    packed = np.zeros((6, 2), "int8" if target == "int4" else "uint8")
    found = poisoned(6, 4, dtype="int32")
    run(main, packed if bits == 4 else np.zeros((6, 4), target), found)
    np.testing.assert_array_equal(found, np.full((6, 4), wanted))
