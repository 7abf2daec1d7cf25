"""Arithmetic of the interpreter: exact values of every element type, checked independently."""

from __future__ import annotations

from fractions import Fraction

import ml_dtypes
import numpy as np
import pytest

from tile_core.dtypes import dtype_of
from tile_core.interp import interpret
from tile_core.interp.math_functions import fma
from tile_core.interp.philox import philox
from tile_core.interp.values import constant, convert, decode, encode, settle
from tile_core.ir import build_expr
from tile_core.ir.expr import AddressOf, BinaryOp, Call, Cast
from tile_core.testing.build_ir import kernel, load, parallel, store, tensor, value
from tile_core.testing.oracle import pack, unpack

rng = np.random.default_rng(11)


def evaluated(f, dtypes, out, *arrays):
    """Run ``out[i] = f(in0[i], …)`` in the interpreter."""
    count = len(arrays[0])
    ins = [tensor(f"A{k}", (count,), d) for k, d in enumerate(dtypes)]
    result = tensor("R", (count,), out)
    loop = parallel((count,), lambda i: store(result, i, f(*(load(a, i) for a in ins))))
    got = np.zeros(count, dtype_of(out).numpy())
    interpret(kernel([*ins, result], 1, lambda bx: loop), [*arrays, got])
    return got


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_operation_of_a_short_float_rounds(dtype):
    numpy = dtype_of(dtype).numpy()
    a, b, c = (rng.normal(0, 30, 500).astype(numpy) for _ in range(3))
    got = evaluated(lambda x, y, z: x * y + z, (dtype,) * 3, dtype, a, b, c)
    product = (a.astype(np.float32) * b.astype(np.float32)).astype(numpy)
    want = (product.astype(np.float32) + c.astype(np.float32)).astype(numpy)
    np.testing.assert_array_equal(got.view(np.uint16), want.view(np.uint16))
    once = (a.astype(np.float64) * b.astype(np.float64) + c.astype(np.float64)).astype(numpy)
    assert (got.view(np.uint16) != once.view(np.uint16)).any()


def test_float32_is_not_contracted():
    a, b, c = (rng.normal(0, 1, 500).astype(np.float32) for _ in range(3))
    got = evaluated(lambda x, y, z: x * y + z, ("float32",) * 3, "float32", a, b, c)
    np.testing.assert_array_equal(got, a * b + c)


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64", "uint64"])
def test_integers_wrap(dtype):
    info = np.iinfo(dtype)
    a = rng.integers(info.min, info.max, 300, dtype=dtype, endpoint=True)
    b = rng.integers(info.min, info.max, 300, dtype=dtype, endpoint=True)
    got = evaluated(lambda x, y: x * y - (x + y), (dtype, dtype), dtype, a, b)
    bits = info.bits
    for x, y, r in zip(a.tolist(), b.tolist(), got.tolist(), strict=True):
        assert (x * y - (x + y) - r) % 2**bits == 0
    smallest = np.array([info.min], dtype)
    if info.min < 0:
        quotient = evaluated(lambda x: x // -1, (dtype,), dtype, smallest)
        assert quotient[0] == info.min


def test_floor_and_trunc_division():
    a = np.array([7, -7, 7, -7, 0, 5], np.int32)
    b = np.array([2, 2, -2, -2, 3, -5], np.int32)
    ops = [BinaryOp.FLOORDIV, BinaryOp.FLOORMOD, BinaryOp.TRUNCDIV, BinaryOp.TRUNCMOD]
    got = [
        evaluated(lambda x, y: build_expr.binary(op, x, y), ("int32",) * 2, "int32", a, b)
        for op in ops
    ]
    want = [
        [x // y for x, y in zip(a, b, strict=True)],
        [x % y for x, y in zip(a, b, strict=True)],
        [int(Fraction(int(x), int(y))) for x, y in zip(a, b, strict=True)],
        [x - y * int(Fraction(int(x), int(y))) for x, y in zip(a, b, strict=True)],
    ]
    np.testing.assert_array_equal(got, want)


def test_minimum_and_maximum_prefer_numbers():
    a, b = np.array([np.nan, 1, np.nan], np.float32), np.array([2, np.nan, np.nan], np.float32)
    low = evaluated(build_expr.minimum, ("float32",) * 2, "float32", a, b)
    np.testing.assert_array_equal(low, [2, 1, np.nan])


def test_float_to_integer():
    x = np.array([1e30, -1e30, np.inf, -np.inf, np.nan, 2.9, -2.9, 2147483648.0], np.float32)
    got = convert(x, dtype_of("float32"), dtype_of("int32"))
    top, bottom = 2**31 - 1, -(2**31)
    np.testing.assert_array_equal(got, [top, bottom, top, bottom, 0, 2, -2, top])
    wide = convert(x, dtype_of("float32"), dtype_of("int64"))
    assert (wide[0], wide[1], wide[7]) == (2**63 - 1, -(2**63), 2**31)
    small = convert(np.array([9.0, -9.0, 3.7]), dtype_of("float64"), dtype_of("int4"))
    np.testing.assert_array_equal(small, [7, -8, 3])
    unsigned = convert(np.array([-1.5, 300.0]), dtype_of("float64"), dtype_of("uint8"))
    np.testing.assert_array_equal(unsigned, [0, 255])


def test_integer_to_integer_wraps():
    x = np.array([300, -1, 128, 2**31 - 1], np.int32)
    np.testing.assert_array_equal(
        convert(x, dtype_of("int32"), dtype_of("int8")), [44, -1, -128, -1]
    )
    np.testing.assert_array_equal(convert(x, dtype_of("int32"), dtype_of("int4")), [-4, -1, 0, -1])
    np.testing.assert_array_equal(convert(x, dtype_of("int32"), dtype_of("uint4")), [12, 15, 0, 15])


NARROW = [
    "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e3m4",
    "float8_e4m3b11fnuz", "float6_e2m3fn", "float6_e3m2fn", "float4_e2m1fn",
]  # fmt: skip


@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_floats_saturate_and_round_to_even(dtype):
    kind = dtype_of(dtype)
    stored = getattr(ml_dtypes, dtype)
    limit = float(ml_dtypes.finfo(stored).max)
    x = rng.normal(0, limit / 3, 2000).astype(np.float32)
    got = settle(x, kind)
    want = np.clip(x, -limit, limit).astype(stored).astype(np.float32)
    np.testing.assert_array_equal(got, want)
    ends = settle(np.array([1e9, -1e9, np.inf, -np.inf], np.float32), kind)
    np.testing.assert_array_equal(ends, [limit, -limit, limit, -limit])
    nan = settle(np.array([np.nan], np.float32), kind)
    assert np.isnan(nan[0]) or kind.bits < 8
    every = decode(np.arange(2 ** min(8, kind.bits), dtype=np.uint8).view(
        np.uint8 if kind.bits == 4 else stored), kind)  # fmt: skip
    finite = every[np.isfinite(every)]
    np.testing.assert_array_equal(decode(encode(finite, kind), kind), finite)


def test_without_saturation_the_format_decides():
    x = np.array([1e9, -1e9], np.float32)
    got = evaluated(
        lambda v: build_expr.cast(Cast(dtype_of("float8_e5m2"), v, False), "float32"),
        ("float32",), "float32", x,
    )  # fmt: skip
    np.testing.assert_array_equal(got, [np.inf, -np.inf])


def test_float64_rounds_to_short_floats_once():
    just_above = 1 + 2.0**-8 + 2.0**-40  # float32 would make a tie of it, and round down
    assert settle(np.array([just_above]), dtype_of("bfloat16"))[0] == 1 + 2.0**-7
    assert settle(np.array([1 + 2.0**-8]), dtype_of("bfloat16"))[0] == 1
    just_below = 1 + 3 * 2.0**-8 - 2.0**-40
    assert settle(np.array([just_below]), dtype_of("bfloat16"))[0] == 1 + 2.0**-7


def test_functions_round_once_from_float64():
    x = rng.uniform(-4, 4, 400).astype(np.float16)
    got = evaluated(lambda v: build_expr.call("exp", v), ("float16",), "float16", x)
    np.testing.assert_array_equal(got, np.exp(x.astype(np.float64)).astype(np.float16))


def test_fma_rounds_once():
    a, b = (rng.normal(0, 1, 3000).astype(np.float32) for _ in range(2))
    c = (-(a.astype(np.float64) * b)).astype(np.float32) * rng.choice([1, 1e-4, 3e7], 3000).astype(
        np.float32
    )
    got = fma(a, b, c, dtype_of("float32"))
    for x, y, z, r in zip(a, b, c, got, strict=True):
        exact = Fraction(float(x)) * Fraction(float(y)) + Fraction(float(z))
        gap = abs(Fraction(float(r)) - exact)
        for other in (np.nextafter(r, np.float32(9e9)), np.nextafter(r, np.float32(-9e9))):
            assert gap <= abs(Fraction(float(other)) - exact)
    wide = fma(
        np.array([1 + 2.0**-30]), np.array([1 - 2.0**-30]), np.array([-1.0]), dtype_of("float64")
    )
    assert wide[0] == -(2.0**-60)


@pytest.mark.parametrize("operation", ["add", "sub", "mul", "fdiv", "fsqrt", "frcp", "frsqrt"])
def test_directed_rounding_brackets_the_exact_result(operation):
    a, b = (rng.uniform(0.1, 9, 100).astype(np.float32) for _ in range(2))
    arity = 2 if operation in ("add", "sub", "mul", "fdiv") else 1

    def run(mode):
        return evaluated(
            lambda *x: build_expr.call(f"ieee_{operation}_{mode}", *x),
            ("float32",) * arity, "float32", *(a, b)[:arity],
        )  # fmt: skip

    down, near, up, zero = (run(m) for m in ("rd", "rn", "ru", "rz"))
    exact = {
        "add": lambda: a.astype(np.longdouble) + b, "sub": lambda: a.astype(np.longdouble) - b,
        "mul": lambda: a.astype(np.longdouble) * b, "fdiv": lambda: a.astype(np.longdouble) / b,
        "fsqrt": lambda: np.sqrt(a.astype(np.longdouble)),
        "frcp": lambda: 1 / a.astype(np.longdouble),
        "frsqrt": lambda: 1 / np.sqrt(a.astype(np.longdouble)),
    }[operation]()  # fmt: skip
    assert (down <= exact).all()
    assert (exact <= up).all()
    assert ((near == down) | (near == up)).all()
    np.testing.assert_array_equal(
        up, np.where(down == exact, down, np.nextafter(down, np.float32(1e9)))
    )
    np.testing.assert_array_equal(zero, np.where(exact > 0, down, up))
    assert (abs(near - exact) <= np.minimum(abs(down - exact), abs(up - exact))).all()


def test_counting_bits():
    x = np.array([0, 1, -1, 0x00F0, -(2**31)], np.int32)
    counted = {n: evaluated(lambda v: build_expr.call(n, v), ("int32",), "int32", x).tolist()
               for n in ("popcount", "clz", "ffs")}  # fmt: skip
    assert counted == {
        "popcount": [0, 1, 32, 4, 1], "clz": [32, 31, 0, 24, 0], "ffs": [0, 1, 1, 5, 32],
    }  # fmt: skip
    small = np.array([1, 255], np.uint8)
    assert evaluated(lambda v: build_expr.call("clz", v), ("uint8",), "int32", small).tolist() == [
        7,
        0,
    ]


def test_dp4a_of_words_vectors_and_addresses():
    a = np.array([1, -2, 3, -128, 5, 6, 7, 127], np.int8)
    b = np.array([-1, 4, 100, -128, 2, 2, 2, 2], np.int8)
    left, right, out = (
        tensor("A", (8,), "int8"),
        tensor("B", (8,), "int8"),
        tensor("C", (2,), "int32"),
    )

    def dot(i):
        at = lambda t: AddressOf(t, (i * 4,), "r")  # noqa: E731
        call = Call("dp4a", (at(left), at(right), load(out, i)), dtype_of("int32"))
        return store(out, i, call)

    total = np.array([10, 20], np.int32)
    interpret(kernel([left, right, out], 1, lambda bx: parallel((2,), dot)), [a, b, total])
    exact = (a.astype(int) * b).reshape(2, 4).sum(1)
    np.testing.assert_array_equal(total, exact + [10, 20])
    words = evaluated(
        lambda x, y: build_expr.call("dp4a", x, y, value(1)), ("int32", "int32"), "int32",
        a.view(np.int32), b.view(np.int32),
    )  # fmt: skip
    np.testing.assert_array_equal(words, exact + 1)


def test_philox_known_answers():
    counters = np.array(
        [[0] * 4, [0xFFFFFFFF] * 4, [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344]], np.uint32
    )
    keys = np.array([[0, 0], [0xFFFFFFFF] * 2, [0xA4093822, 0x299F31D0]], np.uint32)
    answers = [
        [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8],
        [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
    ]
    np.testing.assert_array_equal(philox(counters, keys), answers)


@pytest.mark.parametrize("dtype", ["int4", "uint4", "float4_e2m1fn", "bfloat16", "bool", "int64"])
def test_arguments_pack_and_unpack(dtype):
    kind = dtype_of(dtype)
    values = settle(
        rng.integers(0, 2, (3, 6)).astype(np.int64 if not kind.is_float else np.float64), kind
    )
    np.testing.assert_array_equal(unpack(pack(values, kind), (3, 6), kind), values)


def test_constants_wrap_and_round():
    assert constant(-1, dtype_of("uint32"))[0] == 2**32 - 1
    assert constant(200, dtype_of("int8"))[0] == -56
    assert constant(0.1, dtype_of("float16"))[0] == np.float32(np.float16(0.1))
    assert constant(2**63, dtype_of("uint64"))[0] == 2**63
