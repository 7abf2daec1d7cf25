"""Scalar functions: the expressions they build, and Python numbers staying Python numbers."""

from __future__ import annotations

import math

import pytest

import tile_api.language as T
from support.trace import computed, emitted
from tile_core.errors import (
    DtypeMismatch,
    FrontendTypeError,
    FrontendValueError,
    UnsupportedOnTarget,
)
from tile_core.ir.intrinsics import INTRINSICS

UNARY = (
    "exp exp2 exp10 expm1 log log2 log10 log1p sqrt rsqrt sigmoid tanh sinh cosh asinh acosh atanh"
    " sin cos tan asin acos atan erf floor ceil trunc nearbyint fast_rcp __exp __exp10 __log"
    " __log2 __log10 __sin __cos __tan"
).split()
BINARY = "pow fmod hypot copysign atan2 nextafter".split()


@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_float(name):
    assert computed(lambda x: getattr(T, name)(x), x="float32") == f"{name}(x)"
    assert name in INTRINSICS


@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_floats(name):
    assert computed(lambda x, y: getattr(T, name)(x, y), x="float32", y="float32") == (
        f"{name}(x, y)"
    )


def test_integers_are_converted_and_numbers_take_the_dtype_of_the_other_operand():
    assert computed(lambda n: T.exp2(n), n="int32") == "exp2(cast[float32](n))"
    assert computed(lambda x: T.pow(x, 2), "float16", x="float16") == "pow(x, float16(2.0))"
    with pytest.raises(FrontendTypeError, match="takes floating-point values"):
        computed(lambda n: T.__dict__["__exp"](n), n="int32")


def test_tests_of_floats_give_bools():
    for name in ("isnan", "isinf", "isfinite"):
        assert computed(lambda x: getattr(T, name)(x), "bool", x="float32") == f"{name}(x)"


def test_rounding():
    assert computed(lambda x: T.round(x), x="float32") == "nearbyint(x)"
    ties_away = computed(lambda x: T.round(x, rounding_mode="ties-away-from-zero"), x="float32")
    assert "trunc(x)" in ties_away
    assert "copysign" in ties_away
    with pytest.raises(FrontendValueError, match="rounding mode 'up' is not known"):
        computed(lambda x: T.round(x, rounding_mode="up"), x="float32")


def test_correctly_rounded_operations():
    assert computed(lambda x: T.ieee_add(x, 1), x="float32") == "ieee_add_rn(x, 1.0)"
    assert computed(lambda x: T.ieee_fsqrt(x, "rz"), x="float32") == "ieee_fsqrt_rz(x)"
    assert computed(lambda x: T.ieee_fmaf(x, x, x, rounding_mode="ru"), x="float32") == (
        "ieee_fmaf_ru(x, x, x)"
    )
    with pytest.raises(FrontendValueError, match="rounding mode 'xx' is not known"):
        computed(lambda x: T.ieee_mul(x, x, rounding_mode="xx"), x="float32")
    with pytest.raises(TypeError, match="missing 1 required positional argument: 'y'"):
        computed(lambda x: T.ieee_fdiv(x), x="float32")


def test_fused_and_scaled():
    assert computed(lambda x: T.fma(x, 2, x), x="float32") == "fma(x, 2.0, x)"
    assert computed(lambda x: T.ldexp(x, 3), x="float32") == "ldexp(x, 3)"
    assert computed(lambda x: T.fmul(x, x), x="float32") == "ieee_mul_rn(x, x)"
    with pytest.raises(FrontendTypeError, match="floating-point"):
        computed(lambda n: T.fmul(n, n), n="int32")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (lambda: T.ceildiv(3, 2), 2),
        (lambda: T.cdiv(-3, 2), -1),
        (lambda: T.floordiv(-7, 2), -4),
        (lambda: T.floormod(-7, 2), 1),
        (lambda: T.truncdiv(-7, 2), -3),
        (lambda: T.truncmod(-7, 2), -1),
        (lambda: T.truncdiv(-(10**18) - 1, 10), -(10**17)),
        (lambda: T.align_up(13, 8), 16),
        (lambda: T.max(3, 5), 5),
        (lambda: T.min(3, 5, 1), 1),
        (lambda: T.clamp(9, 0, 7), 7),
        (lambda: T.abs(-3), 3),
        (lambda: T.fabs(-3.5), 3.5),
        (lambda: T.shift_left(1, 4), 16),
        (lambda: T.shift_right(-16, 2), -4),
        (lambda: T.bitwise_and(6, 3), 2),
        (lambda: T.bitwise_or(6, 3), 7),
        (lambda: T.bitwise_xor(6, 3), 5),
        (lambda: T.bitwise_not(5), -6),
        (lambda: T.if_then_else(True, 1, 2), 1),
        (lambda: T.Select(False, 1, 2), 2),
        (lambda: T.index_to_coordinates(23, (2, 3, 4)), [1, 2, 3]),
    ],
)
def test_python_numbers_stay_python_numbers(value, expected):
    assert value() == expected
    assert type(value()) is type(expected)


def test_division_by_zero_is_reported():
    for name in ("ceildiv", "floordiv", "floormod", "truncdiv"):
        with pytest.raises(FrontendValueError, match=f"T.{name}: "):
            getattr(T, name)(1, 0)
    with pytest.raises(FrontendValueError, match=r"T\.shift_left"):
        T.shift_left(1, -1)


@pytest.mark.parametrize(
    ("build", "text"),
    [
        (lambda n: T.ceildiv(n, 8), "(n + 7) // 8"),
        (lambda n: T.align_up(n, 8), "(n + 7) // 8 * 8"),
        (lambda n: T.floordiv(n, 3), "n // 3"),
        (lambda n: T.floormod(n, 3), "n % 3"),
        (lambda n: T.truncdiv(n, 3), "truncdiv(n, 3)"),
        (lambda n: T.truncmod(n, 3), "truncmod(n, 3)"),
        (lambda n: T.max(n, 3), "max(n, 3)"),
        (lambda n: T.min(1, n, 3), "min(min(1, n), 3)"),
        (lambda n: T.clamp(n, 0, 7), "min(max(n, 0), 7)"),
        (lambda n: T.abs(n), "abs(n)"),
        (lambda n: T.shift_left(n, 2), "n << 2"),
        (lambda n: T.shift_right(n, 2), "n >> 2"),
        (lambda n: T.bitwise_and(n, 2), "n & 2"),
        (lambda n: T.bitwise_or(n, 2), "n | 2"),
        (lambda n: T.bitwise_xor(n, 2), "n ^ 2"),
        (lambda n: T.bitwise_not(n), "~n"),
        (lambda n: T.popcount(n), "popcount(n)"),
        (lambda n: T.clz(n), "clz(n)"),
        (lambda n: T.__dict__["__ffs"](n), "ffs(n)"),
        (lambda n: T.likely(n), "n"),
        (lambda n: T.if_then_else(n > 1, n, 0), "(n > 1 ? n : 0)"),
        (lambda n: T.Select(n > 1, n, 0), "select(n > 1, n, 0)"),
        (lambda n: T.if_then_else(True, n, 0), "n"),
    ],
)
def test_integer_expressions(build, text):
    assert computed(build, "int32", n="int32") == text


def test_bits_of_floats_are_refused():
    with pytest.raises(DtypeMismatch, match="works on integers"):
        computed(lambda x: T.bitwise_and(x, 1), x="float32")
    with pytest.raises(DtypeMismatch, match="popcount takes integers"):
        computed(lambda x: T.popcount(x), x="float32")


def test_a_buffer_is_no_scalar():
    with pytest.raises(FrontendTypeError, match="whole buffer 'A'"):
        computed(lambda A: T.max(A, 0), A="float32[4]")


def test_casts():
    assert computed(lambda x: T.cast(x, "float16"), "float16", x="float32") == "cast[float16](x)"
    assert computed(lambda x: T.Cast("int32", x), "int32", x="float32") == "cast[int32](x)"
    fp8 = "float8_e4m3fn"
    assert computed(lambda x: T.cast(x, fp8, sat=False), fp8, x="float32") == f"wrap[{fp8}](x)"
    assert computed(lambda: T.cast(3, "float16"), "float16") == "float16(3.0)"
    with pytest.raises(FrontendValueError, match="random bits go together"):
        computed(lambda x: T.cast(x, "float16", round="rs"), x="float32")
    with pytest.raises(FrontendValueError, match="rounding 'up' is not known"):
        computed(lambda x: T.cast(x, "float16", round="up"), x="float32")


def test_reinterpret_takes_both_orders():
    for build in (lambda x: T.reinterpret(x, "int32"), lambda x: T.reinterpret("int32", x)):
        assert computed(build, "int32", x="float32") == "bitcast[int32](x)"
    assert computed(lambda x: T.reinterpret(x, T.float32), x="float32") == "x"
    with pytest.raises(DtypeMismatch, match="the 32 bits of float32 cannot be read as the 16"):
        computed(lambda x: T.reinterpret(x, "int16"), x="float32")


def test_infinity_in_an_expression():
    assert computed(lambda: -T.infinity("float32")) == "float32(-inf)"
    assert math.isinf(T.infinity("bfloat16").value)


def test_vectors():
    ramp = computed(lambda n: T.Shuffle([T.Ramp(n, 2, 4)], [3]), "int32", n="int32")
    assert ramp == "shuffle([ramp(n, 2, 4)], [3])"
    both = computed(
        lambda n: T.Shuffle([T.vectorcombine(T.Broadcast(n, 2), T.Ramp(n, 1, 2))], [2]),
        "int32",
        n="int32",
    )
    assert both == "shuffle([shuffle([broadcast(n, 2), ramp(n, 1, 2)], [0, 1, 2, 3])], [2])"
    halves = computed(
        lambda n: (
            T.extract_lane(T.vectorhigh(T.Ramp(n, 1, 4)), 0)
            + T.extract_lane(T.vectorlow(T.Ramp(n, 1, 4)), 0)
        ),
        "int32",
        n="int32",
    )
    assert "[2, 3]" in halves
    assert "[0, 1]" in halves
    with pytest.raises(FrontendValueError, match=r"lanes \[4\] out of 4"):
        computed(lambda n: T.Shuffle([T.Ramp(n, 1, 4)], [4]), n="int32")
    with pytest.raises(FrontendValueError, match="lane 4 of int32x4"):
        computed(lambda n: T.extract_lane(T.Ramp(n, 1, 4), 4), n="int32")
    with pytest.raises(FrontendTypeError, match="mixes element types: float32, int32"):
        computed(lambda n, x: T.Shuffle([n, x], [0]), n="int32", x="float32")


def test_packed_pairs():
    pair = "shuffle([x, x], [0, 1])"
    texts = {
        "add2": f"{pair} + {pair}",
        "sub2": f"{pair} - {pair}",
        "mul2": f"{pair} * {pair}",
        "max2": f"max({pair}, {pair})",
        "min2": f"min({pair}, {pair})",
    }
    for name, text in texts.items():
        lane = computed(
            lambda x: T.extract_lane(getattr(T, name)(T.float32x2(x, x), T.float32x2(x, x)), 0),
            x="float32",
        )
        assert lane == f"shuffle([{text}], [0])"
    for name, count in (("abs2", 1), ("fma2", 3)):
        lane = computed(
            lambda x: T.extract_lane(getattr(T, name)(*[T.float32x2(x, x)] * count), 0),
            x="float32",
        )
        assert lane == f"shuffle([{name[:3]}({', '.join([pair] * count)})], [0])"
    with pytest.raises(FrontendTypeError, match=r"T\.add2 works on pairs"):
        computed(lambda x: T.add2(x, x), x="float32")


def test_random_numbers():
    lines = emitted(lambda: T.rng_init(7), threads=(32, 2))
    assert lines == ["eval rng_init(7, bx * 64 + (ty * 32 + tx), 0)"]
    assert emitted(lambda: T.rng_init(7, 3, 2)) == ["eval rng_init(7, 3, 2)"]
    assert emitted(lambda: T.rng_rand()) == ["let random: uint32 = rng_rand()"]
    drawn = emitted(lambda A: A.__setitem__(0, T.rng_rand_float()), A="float32[4]")
    assert drawn == ["let random: float32 = rng_rand_float()", "A[0] = random"]
    assert emitted(lambda: T.rng_rand_float(dist="normal")) == [
        "let random: float32 = rng_rand_normal()"
    ]
    assert len(emitted(lambda: T.rng_rand_float(bit=64))) == 2
    with pytest.raises(FrontendValueError, match="distribution 'poisson' is not known"):
        emitted(lambda: T.rng_rand_float(dist="poisson"))
    with pytest.raises(FrontendValueError, match="random generator 'mine' is not known"):
        emitted(lambda: T.rng_init(1, generator="mine"))
    with pytest.raises(UnsupportedOnTarget, match="XORWOW"):
        emitted(lambda: T.rng_init(1, generator="curandStateXORWOW_t"))


def test_expression_classes():
    n = T.Var("n", "int32")
    assert isinstance(n + 1, T.Add)
    assert not isinstance(n + 1, T.Mul)
    assert isinstance(T.Mul(n, 2), T.Mul)
    assert isinstance(T.And(n > 0, n < 4), T.And)
    assert isinstance(T.Not(n > 0), T.Not)
    assert isinstance(T.Div(n, 2), T.Div)
    assert isinstance(T.IntImm("int64", 3), T.IntImm)
    assert isinstance(T.FloatImm("float16", 3), T.FloatImm)
    assert isinstance(T.Call("float32", "tir.exp", [T.float32(1)]), T.Call)
    assert isinstance(T.Cast("float32", n), T.Cast)
    assert isinstance(T.if_then_else(n > 0, n, 1), T.Select)
    assert isinstance(n, T.PrimExpr)
    assert not isinstance(3, T.IntImm)


def test_lanes_of_packed_vectors_need_no_vector():
    assert computed(lambda x: T.extract_lane(T.float32x2(x, 1), 0), x="float32") == "x"
    assert computed(lambda n: T.extract_lane(T.Ramp(n, 3, 4), 2), "int32", n="int32") == "n + 6"
    assert computed(lambda n: T.extract_lane(T.Broadcast(n, 4), 3), "int32", n="int32") == "n"
