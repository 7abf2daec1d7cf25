"""Element types as strings that convert."""

from __future__ import annotations

import pickle

import ml_dtypes
import numpy as np
import pytest

import tile_api.language as T
from support.trace import computed
from tile_api.frontend.dtypes import DTYPES
from tile_core.dtypes import DType
from tile_core.errors import FrontendTypeError, FrontendValueError


def test_they_are_strings():
    assert T.float16 == "float16"
    assert f"{T.bfloat16}" == "bfloat16"
    assert {T.int8: 1}["int8"] == 1
    assert T.float8_e4m3fn in ["float8_e4m3fn"]
    assert isinstance(T.float32, str)
    assert isinstance(T.float32, DType)
    assert isinstance(T.float32, T.dtype)
    assert pickle.loads(pickle.dumps(T.float32)) is T.float32


@pytest.mark.parametrize(
    ("alias", "name"),
    [
        ("short", "int16"),
        ("int", "int32"),
        ("uint", "uint32"),
        ("long", "int64"),
        ("half", "float16"),
        ("float", "float32"),
        ("double", "float64"),
        ("float8_e4m3", "float8_e4m3fn"),
        *((f"float8_e4m3x{n}", f"float8_e4m3fnx{n}") for n in (2, 4, 8, 16, 32, 64)),
    ],
)
def test_aliases(alias, name):
    assert getattr(T, alias) == name
    assert T.dtype(alias) == name
    assert getattr(T, alias) is getattr(T, name, T.dtype(name))


def test_the_one_e4m3_is_that_of_torch():
    assert T.float8_e4m3.type_code == T.float8_e4m3fn.type_code == 10
    assert T.infinity("float8_e4m3").value == T.max_value(T.float8_e4m3).value == 448
    assert T.min_value("float8_e4m3").value == -448
    assert T.dtype(ml_dtypes.float8_e4m3fn) is T.float8_e4m3
    for ieee in (ml_dtypes.float8_e4m3, np.dtype(ml_dtypes.float8_e4m3)):
        with pytest.raises(FrontendTypeError) as caught:
            T.dtype(ieee)
        assert caught.value.message == (
            f"{ieee!r} is IEEE's float8_e4m3, which ends at 240 and has infinities"
        )
        assert caught.value.hint == (
            "use 'float8_e4m3fn', and convert arrays: x.astype('float8_e4m3fn')"
        )


def test_properties():
    assert (T.float16.bits, T.float16.bytes, T.float16.itemsize, T.float16.lanes) == (16, 2, 2, 1)
    assert (T.float16x4.bits, T.float16x4.bytes, T.float16x4.lanes) == (16, 8, 4)
    assert (T.int4.bits, T.int4.bytes) == (4, 1)
    assert T.float16.with_lanes(8) == T.float16x8
    assert type(T.float16.with_lanes(8)) is T.dtype
    codes = [T.int8, T.uint8, T.float64, T.bfloat16, T.bool, T.float8_e5m2, T.float4_e2m1fn]
    assert [t.type_code for t in codes] == [0, 1, 2, 4, 6, 12, 17]
    assert T.float4_e2m1fn.is_float4()
    assert T.float4_e2m1fn.is_float4_e2m1fn()
    assert not T.float4_e2m1fn.is_float4_e2m1_unpacked()
    assert T.float4_e2m1_unpacked.is_float4_e2m1_unpacked()
    assert not T.float6_e2m3fn.is_float4()


def test_normalising_other_spellings():
    torch = pytest.importorskip("torch")
    assert T.dtype(np.float16) == "float16"
    assert T.dtype(np.dtype("int8")) == "int8"
    assert T.dtype(ml_dtypes.bfloat16) == "bfloat16"
    assert T.dtype(torch.float8_e5m2) == "float8_e5m2"
    assert [T.dtype(t) for t in (bool, int, float)] == ["bool", "int32", "float32"]
    assert T.get_tvm_dtype("half") == "float16"
    with pytest.raises(FrontendTypeError, match="'float17' is not an element type"):
        T.dtype("float17")


def test_torch_storage():
    torch = pytest.importorskip("torch")
    assert T.float16.as_torch() is torch.float16
    assert T.bfloat16x2.as_torch() is torch.bfloat16
    assert T.float8_e4m3.as_torch() is torch.float8_e4m3fn
    assert T.tfloat32.as_torch() is torch.float32
    assert T.int4.as_torch() is torch.int8
    assert T.float6_e2m3fn.as_torch() is torch.uint8
    packed = getattr(torch, "float4_e2m1fn_x2", torch.int8)
    assert T.float4_e2m1fn.as_torch() is packed


def test_calling_makes_constants():
    assert (T.int32(3).value, T.int32(3).dtype) == (3, "int32")
    assert (T.float16(3).value, T.float16(3).dtype) == (3.0, "float16")
    assert T.float32("-inf").value == -np.inf
    assert T.int8(3.9).value == 3
    assert T.bool() is T.bool
    assert T.int32(is_size_var=True) is T.int32
    with pytest.raises(FrontendValueError, match="300 does not fit int8, which holds -128 to 127"):
        T.int8(300)
    with pytest.raises(FrontendValueError, match="-1 does not fit uint32"):
        T.uint32(-1)
    with pytest.raises(FrontendTypeError, match="is not a number"):
        T.float32("three")


def test_calling_converts_expressions():
    assert computed(lambda x: T.float16(x), "float16", x="float32") == "cast[float16](x)"
    assert computed(lambda x: T.float32(x), x="float32") == "x"
    assert computed(lambda A: T.int32(A[1]), "int32", A="int8[4]") == "cast[int32](A[1])"


def test_several_values_make_a_vector():
    assert computed(lambda x: T.Shuffle([T.float32x2(x, 1)], [0]), x="float32") == (
        "shuffle([shuffle([x, 1.0], [0, 1])], [0])"
    )
    with pytest.raises(FrontendValueError, match="packs 4 values, got 2"):
        T.int8x4(1, 2)


def test_a_buffer_is_no_value():
    with pytest.raises(FrontendTypeError, match="whole buffer 'A'"):
        computed(lambda A: T.float32(A), A="float32[4]")


def test_families():
    assert T.is_f8f6f4_family("float6_e3m2fn")
    assert not T.is_f8f6f4_family(T.float16)
    assert T.is_float4("float4_e2m1fn")
    assert T.is_float4_e2m1fn("float4_e2m1fn")
    assert T.is_float4_e2m1_unpacked(T.float4_e2m1_unpacked)
    T.validate_gemm_ab_dtypes("float8_e4m3fn", "float8_e5m2")
    T.validate_gemm_ab_dtypes(T.int8, T.uint8)
    with pytest.raises(FrontendValueError, match="cannot multiply float16 with float32"):
        T.validate_gemm_ab_dtypes("float16", "float32")


FLOATS = sorted(n for n, t in DTYPES.items() if t.is_float and t.lanes == 1 and n == str(t))


@pytest.mark.parametrize("name", [n for n in FLOATS if n != "tfloat32"])
def test_extreme_values_of_floats(name):
    storage = DTYPES[name].numpy()
    info = ml_dtypes.finfo(storage)
    assert T.max_value(name).value == float(info.max)
    assert T.min_value(name).value == float(info.min)
    largest = np.array(T.max_value(name).value).astype(storage)
    assert float(largest) == T.max_value(name).value
    with np.errstate(over="ignore"):
        has_infinity = np.isinf(np.array(np.inf).astype(storage).astype(np.float64))
    expected = np.inf if has_infinity else float(info.max)
    assert T.infinity(name).value == expected


def test_extreme_values_of_integers():
    assert [T.max_value(t).value for t in ("int8", "uint16", "int64", "bool", "int4")] == [
        127,
        65535,
        2**63 - 1,
        True,
        7,
    ]
    assert [T.min_value(t).value for t in ("int8", "uint16", "int64", "bool")] == [
        -128,
        0,
        -(2**63),
        False,
    ]
    with pytest.raises(FrontendTypeError, match="int32 has no infinity"):
        T.infinity("int32")
