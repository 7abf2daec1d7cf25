"""Element types: names, casts, narrow and vector types."""

import ml_dtypes
import numpy as np
import pytest
import torch

import tile_api.language as T
from support.arrays import counted, dtype_named, poisoned

SCALARS = [f"{k}{b}" for k in ("int", "uint") for b in (8, 16, 32, 64)] + [
    "bool",
    "float16",
    "bfloat16",
    "float32",
    "float64",
]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", SCALARS)
def test_types_are_strings_that_cast(run, name):
    dtype = getattr(T, name)
    assert dtype == name
    assert {dtype: 1}[name] == 1
    assert dtype in ["x", name]
    assert f"{dtype}" == name
    assert isinstance(dtype, str)
    size = dtype_named(name).itemsize
    assert (dtype.bytes, dtype.itemsize, dtype.lanes) == (size, size, 1)
    assert dtype.bits in (8 * size, 1)
    assert dtype.as_torch() is getattr(torch, name)
    assert not dtype.is_float4()

    @T.prim_func
    def main(A: T.Tensor((9,), "float32"), B: T.Tensor((9,), dtype)):
        with T.Kernel(1):
            for i in T.Parallel(9):
                B[i] = dtype(A[i])

    low = 0 if name.startswith("u") else -4
    a = np.arange(low, low + 9).astype("float32")
    b = poisoned(9, dtype=name)
    run(main, a, b)
    assert np.array_equal(b, a.astype(b.dtype))


ALIASES = {
    "short": "int16", "int": "int32", "uint": "uint32", "long": "int64",
    "half": "float16", "float": "float32", "double": "float64",
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("alias", ALIASES)
def test_aliases(run, alias):
    dtype = getattr(T, alias)
    assert T.dtype(dtype) == ALIASES[alias]

    @T.prim_func
    def main(A: T.Tensor((3,), alias), B: T.Tensor((3,), dtype)):
        with T.Kernel(1):
            S = T.alloc_shared((3,), alias)
            T.copy(A, S)
            for i in T.Parallel(3):
                B[i] = T.cast(S[i] + 1, alias)

    b = poisoned(3, dtype=ALIASES[alias])
    run(main, counted(3, dtype=ALIASES[alias]), b)
    assert b.tolist() == [1, 2, 3]


def test_dtype_normalises(run):
    for given, name in [
        ("float16", "float16"),
        (torch.bfloat16, "bfloat16"),
        (np.int64, "int64"),
        (np.dtype("uint8"), "uint8"),
        (bool, "bool"),
        (int, "int32"),
        (float, "float32"),
        (T.int8, "int8"),
        ("half", "float16"),
        (torch.float8_e4m3fn, "float8_e4m3fn"),
    ]:
        assert T.dtype(given) == name

    def f(dtype: T.dtype = T.float32):
        @T.prim_func
        def main(A: T.Tensor((2,), torch.float64), B: T.Tensor((2,), np.float32)):
            with T.Kernel(1):
                T.copy(A, B)

        return main

    b = poisoned(2, dtype="float32")
    run(f(), counted(2, dtype="float64"), b)
    assert b.tolist() == [0, 1]


def test_methods():
    assert T.float32.with_lanes(4) == "float32x4"
    assert T.float32x4.lanes == 4
    assert T.float4_e2m1fn.is_float4()
    assert T.float4_e2m1fn.is_float4_e2m1fn()
    assert T.float4_e2m1_unpacked.is_float4_e2m1_unpacked()
    assert isinstance(T.float16.type_code, int)
    assert T.int32(3).value == 3
    assert T.int4.as_torch() is torch.int8
    assert T.tfloat32.as_torch() is torch.float32
    assert T.float8_e4m3fn.as_torch() is torch.float8_e4m3fn


NARROW = {
    "float8_e4m3fn": ml_dtypes.float8_e4m3fn,
    "float8_e4m3": ml_dtypes.float8_e4m3fn,  # as in TileLang
    "float8_e5m2": ml_dtypes.float8_e5m2,
    "float8_e4m3fnuz": ml_dtypes.float8_e4m3fnuz,
    "float8_e5m2fnuz": ml_dtypes.float8_e5m2fnuz,
    "float8_e4m3b11fnuz": ml_dtypes.float8_e4m3b11fnuz,
    "float8_e3m4": ml_dtypes.float8_e3m4,
    "float8_e8m0fnu": ml_dtypes.float8_e8m0fnu,
    "float6_e2m3fn": ml_dtypes.float6_e2m3fn,
    "float6_e3m2fn": ml_dtypes.float6_e3m2fn,
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", NARROW)
def test_every_narrow_float_widens_and_narrows_exactly(run, name):
    bits = 6 if name.startswith("float6") else 8
    every = np.arange(1 << bits).astype(np.uint8).view(NARROW[name])
    count = len(every)

    @T.prim_func
    def main(
        A: T.Tensor((count,), name),
        B: T.Tensor((count,), "float32"),
        C: T.Tensor((count,), name),
        H: T.Tensor((count,), "float16"),
    ):
        with T.Kernel(1):
            for i in T.Parallel(count):
                B[i] = A[i]
                C[i] = T.cast(B[i], name)
                H[i] = A[i]

    wide, back, half = (
        poisoned(count, dtype="float32"),
        np.ones(count, every.dtype),
        poisoned(count, dtype="float16"),
    )
    run(main, every, wide, back, half)
    expected = every.astype("float32")
    assert np.array_equal(wide, expected, equal_nan=True)
    largest = np.float32(ml_dtypes.finfo(every.dtype).max)
    saturated = np.where(np.isinf(expected), np.copysign(largest, expected), expected)
    assert np.array_equal(back.astype("float32"), saturated, equal_nan=True)
    with np.errstate(over="ignore"):
        assert np.array_equal(half, expected.astype("float16"), equal_nan=True)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("name", "low"), [("int4", -8), ("uint4", 0), ("float4_e2m1fn", None)])
def test_four_bit_elements_two_to_a_byte(run, name, low):
    @T.prim_func
    def main(A: T.Tensor((2, 8), name), B: T.Tensor((2, 8), "float32"), C: T.Tensor((2, 8), name)):
        with T.Kernel(1):
            S = T.alloc_shared((2, 8), name)
            F = T.alloc_fragment((2, 8), "float32")
            T.copy(A, S)
            T.copy(S, F)
            for i, j in T.Parallel(2, 8):
                B[i, j] = F[i, j]
            T.copy(F, C)

    nibbles = np.arange(16, dtype=np.uint8).reshape(2, 8)
    packed = nibbles[:, 0::2] | (nibbles[:, 1::2] << 4)
    if low is None:
        steps = [0, 0.5, 1, 1.5, 2, 3, 4, 6]
        values = np.array([steps, [-s for s in steps]])
    else:
        values = np.where(nibbles >= 16 + low, nibbles.astype(int) - 16, nibbles).reshape(2, 8)
    b, c = poisoned(2, 8, dtype="float32"), np.full((2, 4), 0xFF, np.uint8)
    run(main, packed, b, c)
    assert np.array_equal(b, values)
    assert np.array_equal(c, packed)


def test_unpacked_float4(run):
    @T.prim_func
    def main(A: T.Tensor((8,), T.float4_e2m1_unpacked), B: T.Tensor((8,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(8):
                B[i] = A[i]

    b = poisoned(8, dtype="float32")
    run(main, np.arange(8, dtype=np.uint8), b)
    assert b.tolist() == [0, 0.5, 1, 1.5, 2, 3, 4, 6]


def test_tfloat32_is_stored_as_float32(run):
    @T.prim_func
    def main(A: T.Tensor((4,), T.tfloat32), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = A[i] + T.float32(1)

    b = poisoned(4, dtype="float32")
    run(main, counted(4, dtype="float32"), b)
    assert b.tolist() == [1, 2, 3, 4]


@pytest.mark.parametrize("lanes", [2, 4, 8])
def test_vector_types_pack_scalars(run, lanes):
    vector = getattr(T, f"float32x{lanes}")

    @T.prim_func
    def main(A: T.Tensor((lanes,), "float32"), B: T.Tensor((lanes,), "float32")):
        with T.Kernel(1):
            v = vector(*[A[k] for k in range(lanes)]) * vector(*[T.float32(2)] * lanes)
            T.clear(B)
            B[0] = T.extract_lane(v, 0)
            B[lanes - 1] = T.extract_lane(v, lanes - 1)

    b = poisoned(lanes, dtype="float32")
    run(main, counted(lanes, dtype="float32"), b)
    assert b.tolist() == [2.0 * k if k in (0, lanes - 1) else 0 for k in range(lanes)]


def test_all_names_exist():
    bases = [f"{s}int{b}" for s in ("", "u") for b in (8, 16, 32, 64)] + [
        "float16",
        "float32",
        "float64",
        "tfloat32",
    ]
    bases += [n for n in NARROW] + ["float4_e2m1fn"]
    for base in bases:
        for lanes in (2, 4, 8, 16, 32, 64):
            name = f"{base}x{lanes}"
            assert getattr(T, name).lanes == lanes
    assert T.bfloat16x2.lanes == 2


OF_FEW_BITS = ("int4", "uint4", "float4_e2m1fn", "float6_e2m3fn", "float8_e4m3fn", "float8_e5m2")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", OF_FEW_BITS)
def test_constants_of_narrow_types_are_kept(run, dtype):
    constants = (0, 1, 2, 3) if dtype == "uint4" else (0, 1, 2, -1)

    @T.macro
    def kept(B, row, value):
        tile = T.alloc_shared((32,), dtype)
        for i in T.Parallel(32):
            tile[i] = value
        for i in T.Parallel(32):
            B[row, i] = tile[i]

    @T.prim_func
    def main(B: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=32):
            [kept(B, row, value) for row, value in enumerate(constants)]

    b = poisoned(4, 32, dtype="float32")
    run(main, b)
    assert b.tolist() == [[value] * 32 for value in constants]
