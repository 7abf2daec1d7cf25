"""Expressions as C++: minimal parentheses, types that stay what the language says."""

import math

import pytest

from support.device_programs import BX, TID, at, cpp, flat, load, registers, scalar, variable
from tile_core.dtypes import dtype_of
from tile_core.errors import InternalError
from tile_core.ir.buffer import Buffer, Scope
from tile_core.ir.build_expr import binary, call, cast, const, maximum, minimum, select, unary
from tile_core.ir.device import device
from tile_core.ir.expr import (
    BinaryOp,
    Bitcast,
    Broadcast,
    Call,
    Cast,
    Expr,
    Ramp,
    Shuffle,
    StringConst,
    UnaryOp,
)

a, b, c, d = (scalar(name) for name in "abcd")
x, y = (scalar(name, "float32") for name in "xy")
h, k = (scalar(name, "float16") for name in "hk")
wide = scalar("wide", "int64")
i8, j8 = (scalar(name, "int8") for name in ("i", "j"))
p, q = (scalar(name, "bool") for name in "pq")
A = flat("A", 64, "float32")
H = flat("H", 64, "float16")
R = registers("R", 8)
V = variable("V")
RANGES = {a: (0, 99), b: (1, 9)}


def op(name: str, left, right) -> Expr:
    return binary(BinaryOp(name), left, right)


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (a + b * c, "a + b * c"),
        ((a + b) * c, "(a + b) * c"),
        (a - (b - c), "a - (b - c)"),
        (a - b - c, "a - b - c"),
        (a + -3, "a - 3"),
        (a * (b * c), "a * (b * c)"),
        (unary(UnaryOp.NEG, -a), "-(-a)"),
        (-(a + b), "-(a + b)"),
        (a - const(-3), "a - -3"),
        (a // 8, "a >> 3"),
        (c // 8, "c >> 3"),
        (a % 8 * 4 + a // 8, "(a & 7) * 4 + (a >> 3)"),
        (a // 3, "a / 3"),
        (a % 3 + 1, "a % 3 + 1"),
        (a % b, "a % b"),
        (c // 3, "tile::floordiv(c, 3)"),
        (c % b, "tile::floormod(c, b)"),
        (op("truncdiv", c, 3), "c / 3"),
        (op("truncmod", c, 3), "c % 3"),
        (a ^ (b & c), "a ^ (b & c)"),
        ((a | b) << 2, "(a | b) << 2"),
        (a << (b + 1), "a << (b + 1)"),
        (~a, "~a"),
        (minimum(a, b + 1), "tile::min(a, b + 1)"),
        (op("<", a // 4, b), "(a >> 2) < b"),
        (op("==", a & 3, 0), "(a & 3) == 0"),
        (op("and", op("<", a, b), op("or", p, q)), "a < b && (p || q)"),
        (op("or", op("and", p, q), op("<", a, b)), "(p && q) || a < b"),
        (unary(UnaryOp.NOT, op("<", a, b)), "!(a < b)"),
        (unary(UnaryOp.NOT, p), "!p"),
    ],
)
def test_parentheses(expr, text):
    assert cpp(expr, RANGES) == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (i8 + j8, "tile::cast<tile::i8>(i + j)"),
        (i8 // 2, "tile::cast<tile::i8>(i >> 1)"),
        (-i8, "tile::cast<tile::i8>(-i)"),
        (maximum(i8, j8), "tile::max(i, j)"),
        (op("<", i8, j8), "i < j"),
        (cast(i8, "int32") + a, "tile::cast<int>(i) + a"),
        (p ^ q, "p != q"),
        (p & q, "tile::cast<bool>(p & q)"),
        (op("==", p, q), "p == q"),
        (scalar("u", "uint32") // 3, "u / 3u"),
        (scalar("e", "float8_e4m3fn") + scalar("f", "float8_e4m3fn"),
         "tile::cast<tile::e4m3>(tile::cast<float>(e) + tile::cast<float>(f))"),
        (-scalar("e", "float8_e5m2"), "tile::cast<tile::e5m2>(-tile::cast<float>(e))"),
        (h * k + h, "h * k + h"),
        (cast(x, "float16"), "tile::cast<half_t>(x)"),
        (Cast(dtype_of("float8_e5m2"), x, saturate=False), "tile::cast_unsaturated<tile::e5m2>(x)"),
        (Bitcast(dtype_of("uint32"), x), "tile::bitcast<tile::u32>(x)"),
        (op("//", x, y), "tile::floordiv(x, y)"),
        (op("truncmod", x, y), "tile::truncmod(x, y)"),
    ],
)  # fmt: skip
def test_types(expr, text):
    assert cpp(expr) == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (wide * cast(a, "int64") + cast(b, "int64"), "wide * a + b"),
        (cast(a + b, "int64") * cast(c, "int64"), "tile::cast<tile::i64>(a + b) * c"),
        (cast(a, "int64") * 4096, "tile::cast<tile::i64>(a) * 4096"),
        (cast(a + b, "int64") + wide, "a + b + wide"),
        (wide + cast(a + b, "int64"), "wide + (a + b)"),
        (wide * -4, "wide * -4"),
        (wide + 5_000_000_000, "wide + tile::i64(5000000000ll)"),
        (wide // 3, "tile::floordiv(wide, tile::i64(3))"),
        (cast(scalar("u", "uint64"), "int64") + wide, "tile::cast<tile::i64>(u) + wide"),
    ],
)
def test_one_wide_operand_is_enough(expr, text):
    assert cpp(expr) == text


@pytest.mark.parametrize(
    ("expr", "text"),
    [
        (load(A, a + 1), "A[a + 1]"),
        (load(R, 3) * x, "R[3] * x"),
        (load(V) + 1, "V + 1"),
        (load(A, cast(a, "int64")), "A[a]"),
        (call("exp2", load(A, a)), "tile::exp2(float(A[a]))"),
        (call("exp2", load(A, a) * x), "tile::exp2(A[a] * x)"),
        (cast(load(H, a), "float32"), "tile::cast<float>(H[a])"),
        (select(op("<", a, b), load(A, a), 0.0), "a < b ? float(A[a]) : 0.0f"),
        (select(p, select(q, x, y), y), "p ? (q ? x : y) : y"),
        (select(p, x, select(q, x, y)), "p ? x : q ? x : y"),
        (select(p, x, y) * 2.0, "(p ? x : y) * 2.0f"),
        (select(op("or", p, q), x, y), "p || q ? x : y"),
        (select(op("<", x, y), y, x), "tile::opaque(x < y ? y : x)"),  # NaN if x is
        (select(op("<", x, 2.0), x, 2.0), "x < 2.0f ? x : 2.0f"),
        (call("__exp", x), "tile::fast_exp(x)"),
        (call("any_sync", p), "tile::any(p)"),
        (call("shfl_sync", x, 0, 32), "tile::shfl_idx(x, 0, 32)"),
        (call("atomic_add", at(A, a + 1), x, StringConst("relaxed")),
         "tile::atomic_add(A + (a + 1), x)"),
        (Call("atomic_load", (at(A), StringConst("acquire")), dtype_of("float32")),
         "tile::atomic_load(A, tile::acquire)"),
        (call("printf", StringConst("%f %d\n"), h, p),
         'tile::print("%f %d\\n", tile::cast<float>(h), tile::cast<int>(p))'),
        (Call("extern:scale", (at(A, a), x), dtype_of("float32")), "scale(tile::raw(A + a), x)"),
        (device("async_copy", 16, at(A, a * 4, "w"), at(H), op("<", a, b)),
         "tile::cp_async<16>(A + (a * 4), H, a < b)"),
        (device("load", 4, at(R, 4, "w"), at(V)), "tile::load<4>(R + 4, &V)"),
        (device("sync"), "tile::sync()"),
        (Shuffle((a, b), (1,)), "b"),
    ],
)  # fmt: skip
def test_memory_and_calls(expr, text):
    assert cpp(expr) == text


def test_memory_at_an_address():
    there = Buffer("there", (8,), dtype_of("float32"), Scope.GLOBAL, origin=scalar("p", "handle"))
    assert cpp(load(there, TID)) == "tile::at<float>(p)[tid]"


def test_remainders_of_indices_know_their_ranges():
    index = BX * 1024 + TID * 8
    assert cpp(index % 3, {BX: (0, 63), TID: (0, 127)}) == "(bx * 1024 + tid * 8) % 3"
    assert cpp((index - 5) % 3, {BX: (0, 63), TID: (0, 127)}) == (
        "tile::floormod(bx * 1024 + tid * 8 - 5, 3)"
    )


@pytest.mark.parametrize(
    "expr", [Ramp(a, const(1), 4), Broadcast(x, 4), Shuffle((a, b), (0, 1)), Cast("float32x4", x)]
)
def test_vectors_are_refused(expr):
    if isinstance(expr, Cast):
        expr = Cast(dtype_of("float32x4"), x)
    with pytest.raises(InternalError):
        cpp(expr)


@pytest.mark.parametrize(
    ("value", "dtype", "text"),
    [
        (True, "bool", "true"),
        (-5, "int32", "-5"),
        (-(2**31), "int32", "-2147483647 - 1"),
        (2**32 - 1, "uint32", "4294967295u"),
        (7, "int64", "tile::i64(7)"),
        (-(2**63), "int64", "tile::i64(-9223372036854775807ll - 1)"),
        (2**64 - 1, "uint64", "tile::u64(18446744073709551615ull)"),
        (-3, "int8", "tile::i8(-3)"),
        (1.0, "float32", "1.0f"),
        (0.1, "float32", "0.1f"),
        (-0.0, "float32", "-0.0f"),
        (100.0, "float32", "100.0f"),
        (1e30, "float32", "1e+30f"),
        (1 + 2**-24, "float32", "1.0f"),
        (1 + 2**-23, "float32", "1.0000001f"),
        (16777216.0, "float32", "16777216.0f"),
        (1e-45, "float32", "1e-45f"),
        (math.inf, "float32", "TILE_INFINITY"),
        (-math.inf, "float32", "-TILE_INFINITY"),
        (math.nan, "float32", "TILE_NAN"),
        (0.1, "float64", "0.1"),
        (3.0, "float64", "3.0"),
        (0.1, "float16", "tile::cast<half_t>(0.099975586f)"),
        (-math.inf, "bfloat16", "tile::cast<bfloat16_t>(-TILE_INFINITY)"),
        (448.0, "float8_e4m3fn", "tile::cast<tile::e4m3>(448.0f)"),
    ],
)
def test_numbers(value, dtype, text):
    assert cpp(const(value, dtype_of(dtype))) == text


def test_texts_are_escaped():
    assert cpp(StringConst('say "é"\t100%\n')) == '"say \\"\\303\\251\\"\\t100%\\n"'
