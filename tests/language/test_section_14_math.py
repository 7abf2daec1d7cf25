"""Mathematics, logic, directed rounding, vectors."""

import math

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, dtype_named, poisoned
from tile_core.errors import TileError

RNG = np.random.default_rng(5)
ANY = RNG.uniform(-4, 4, 37)
POSITIVE = RNG.uniform(0.05, 9, 37)
UNIT = RNG.uniform(-0.95, 0.95, 37)

UNARY = {
    "exp": (np.exp, ANY),
    "exp2": (np.exp2, ANY),
    "exp10": (lambda x: 10**x, ANY),
    "log": (np.log, POSITIVE),
    "log2": (np.log2, POSITIVE),
    "log10": (np.log10, POSITIVE),
    "log1p": (np.log1p, POSITIVE),
    "sqrt": (np.sqrt, POSITIVE),
    "rsqrt": (lambda x: 1 / np.sqrt(x), POSITIVE),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), ANY),
    "tanh": (np.tanh, ANY),
    "sin": (np.sin, ANY),
    "cos": (np.cos, ANY),
    "tan": (np.tan, UNIT),
    "asin": (np.arcsin, UNIT),
    "acos": (np.arccos, UNIT),
    "atan": (np.arctan, ANY),
    "sinh": (np.sinh, ANY),
    "cosh": (np.cosh, ANY),
    "asinh": (np.arcsinh, ANY),
    "acosh": (np.arccosh, POSITIVE + 1),
    "atanh": (np.arctanh, UNIT),
    "erf": (np.vectorize(math.erf), ANY),
    "floor": (np.floor, ANY),
    "ceil": (np.ceil, ANY),
    "trunc": (np.trunc, ANY),
    "round": (np.round, np.round(ANY * 2) / 2),
    "nearbyint": (np.round, np.round(ANY * 2) / 2),
    "abs": (np.abs, ANY),
    "fabs": (np.abs, ANY),
    "__exp": (np.exp, ANY),
    "__exp10": (lambda x: 10**x, ANY),
    "__log": (np.log, POSITIVE),
    "__log2": (np.log2, POSITIVE),
    "__log10": (np.log10, POSITIVE),
    "__sin": (np.sin, ANY),
    "__cos": (np.cos, ANY),
    "__tan": (np.tan, UNIT),
    "fast_rcp": (lambda x: 1 / x, POSITIVE),
}


FLOAT_TYPES = {"float32": 2e-6, "float16": 2e-3, "bfloat16": 1.6e-2, "float64": 1e-6}


@pytest.mark.in_turn(9)
@pytest.mark.parametrize("name", UNARY)
def test_functions_of_one_number(run, name):
    expected, values = UNARY[name]
    function = getattr(T, name)

    def vector(dtype):
        return T.Tensor((37,), dtype)

    a, b, c, d = map(vector, FLOAT_TYPES)

    @T.prim_func
    def main(A: a, B: b, C: c, D: d, W: a, X: b, Y: c, Z: d):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(37):
                W[i] = function(A[i])
                X[i] = function(B[i])
                Y[i] = function(C[i])
                Z[i] = function(D[i])

    given = [values.astype(dtype_named(dtype)) for dtype in FLOAT_TYPES]
    found = [poisoned(37, dtype=dtype) for dtype in FLOAT_TYPES]
    run(main, *given, *found)
    for x, y, tolerance in zip(given, found, FLOAT_TYPES.values(), strict=True):
        exact = expected(x.astype("float64"))
        wide = y.astype("float64")
        np.testing.assert_allclose(wide, exact, rtol=tolerance, atol=tolerance / 8)


BINARY = {
    "max": np.maximum,
    "min": np.minimum,
    "pow": lambda x, y: np.abs(x) ** y,
    "fmod": np.fmod,
    "hypot": np.hypot,
    "copysign": np.copysign,
    "atan2": np.arctan2,
    "nextafter": np.nextafter,
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two_numbers(run, name, dtype):
    function = getattr(T, name)

    @T.prim_func
    def main(A: T.Tensor((37,), dtype), B: T.Tensor((37,), dtype), C: T.Tensor((37,), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(37):
                C[i] = function(T.abs(A[i]) if name == "pow" else A[i], B[i])

    a, b = ANY.astype(dtype), (ANY[::-1] + 0.1).astype(dtype)
    if name == "pow":
        a = (np.abs(a) + 0.25).astype(dtype)
    c = poisoned(37, dtype=dtype)
    run(main, a, b, c)
    if name in ("nextafter", "fmod"):
        expected = BINARY[name](a, b)
    else:
        expected = BINARY[name](a.astype("float64"), b.astype("float64"))
    tolerance = {"float32": 3e-6, "float16": 2e-3}[dtype]
    np.testing.assert_allclose(c.astype("float64"), expected, rtol=tolerance, atol=0)


def test_whole_exponents_and_ldexp(run):
    @T.prim_func
    def main(
        A: T.Tensor((6,), "float32"), B: T.Tensor((5, 6), "float32"), N: T.Tensor((6,), "int32")
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(6):
                B[0, i] = T.pow(A[i], 2)
                B[1, i] = T.pow(A[i], 3.0)
                B[2, i] = T.ldexp(A[i], N[i])
                B[3, i] = T.pow(A[i], 0)
                B[4, i] = T.fma(A[i], A[i], 1.0)

    a, b = np.array([-3, -2, -1, 0, 1.5, 4], "float32"), poisoned(5, 6, dtype="float32")
    n = np.array([0, 1, -1, 3, 10, -3], np.int32)
    run(main, a, b, n)
    np.testing.assert_allclose(b, [a**2, a**3, a * 2.0**n, a**0, a * a + 1], rtol=1e-6)


def test_classes_of_floats(run):
    @T.prim_func
    def main(A: T.Tensor((6,), "float32"), B: T.Tensor((3, 6), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(6):
                B[0, i] = T.cast(T.isnan(A[i]), "int32")
                B[1, i] = T.if_then_else(T.isinf(A[i]), 1, 0)
                B[2, i] = T.Select(T.isfinite(A[i]), 1, 0)

    a, b = np.array([0, np.nan, np.inf, -np.inf, 1e30, -0.0], "float32"), poisoned(3, 6)
    run(main, a, b)
    assert np.array_equal(b, [np.isnan(a), np.isinf(a), np.isfinite(a)])


def test_larger_and_smaller_of_special_values(run):
    @T.prim_func
    def main(
        A: T.Tensor((4,), "float32"), B: T.Tensor((4,), "float32"), C: T.Tensor((2, 4), "float32")
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                C[0, i] = T.max(A[i], B[i])
                C[1, i] = T.min(A[i], B[i])

    a, b = (
        np.array([np.nan, 1, np.inf, np.nan], "float32"),
        np.array([2, np.nan, 3, np.nan], "float32"),
    )
    c = poisoned(2, 4, dtype="float32")
    run(main, a, b, c)
    assert np.array_equal(c, [np.fmax(a, b), np.fmin(a, b)], equal_nan=True)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "int32", "uint32", "int64"])
def test_integer_operators(run, dtype):
    @T.prim_func
    def main(A: T.Tensor((20,), dtype), B: T.Tensor((20,), dtype), C: T.Tensor((14, 20), dtype)):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(20):
                C[0, i] = A[i] + B[i]
                C[1, i] = A[i] - B[i]
                C[2, i] = A[i] * B[i]
                C[3, i] = A[i] // B[i]
                C[4, i] = A[i] % B[i]
                C[5, i] = T.truncdiv(A[i], B[i])
                C[6, i] = T.truncmod(A[i], B[i])
                C[7, i] = T.floordiv(A[i], B[i]) + T.floormod(A[i], B[i])
                C[8, i] = T.bitwise_and(A[i], B[i]) | T.bitwise_xor(A[i], B[i])
                C[9, i] = ~A[i]
                C[10, i] = A[i] & T.bitwise_or(B[i], A[i])
                C[11, i] = A[i] ^ B[i]
                C[12, i] = T.max(A[i], B[i]) - T.min(A[i], B[i])
                C[13, i] = T.clamp(A[i], 3, 9)

    low = 0 if dtype.startswith("u") else -128
    a = drawn(20, low=low, high=128, dtype=dtype)
    b = drawn(20, seed=1, low=max(low, -12), high=12, dtype=dtype)
    b[b == 0] = 5
    c = poisoned(14, 20, dtype=dtype)
    run(main, a, b, c)
    wide_a, wide_b = a.astype(object), b.astype(object)
    trunc = np.array([int(x / y) for x, y in zip(wide_a, wide_b, strict=True)], object)
    rows = [
        wide_a + wide_b,
        wide_a - wide_b,
        wide_a * wide_b,
        wide_a // wide_b,
        wide_a % wide_b,
        trunc,
        wide_a - trunc * wide_b,
        wide_a // wide_b + wide_a % wide_b,
        wide_a | wide_b,
        ~wide_a,
        wide_a,
        wide_a ^ wide_b,
        abs(wide_a - wide_b),
        np.clip(wide_a, 3, 9),
    ]
    bits = a.itemsize * 8
    expected = np.array([[int(v) & ((1 << bits) - 1) for v in row] for row in rows], np.uint64)
    assert np.array_equal(c.view(f"uint{bits}"), expected.astype(f"uint{bits}"))


def test_shifts_and_bits(run):
    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), N: T.Tensor((6,), "int32"), C: T.Tensor((7, 6), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(6):
                C[0, i] = A[i] << N[i]
                C[1, i] = A[i] >> N[i]
                C[2, i] = T.shift_left(A[i], 1)
                C[3, i] = T.shift_right(A[i], 1)
                C[4, i] = T.popcount(A[i])
                C[5, i] = T.clz(A[i])
                C[6, i] = T.bitwise_not(A[i])

    a, n = np.array([1, -1, 0, 255, -256, 2**30], np.int32), np.array([0, 3, 31, 4, 1, 0], np.int32)
    c = poisoned(7, 6)
    run(main, a, n, c)
    u = [int(x) & 0xFFFFFFFF for x in a]
    assert np.array_equal(c[0], a << n)
    assert np.array_equal(c[1], a >> n)
    assert np.array_equal(c[2], a << 1)
    assert np.array_equal(c[3], a >> 1)
    assert c[4].tolist() == [bin(x).count("1") for x in u]
    assert c[5].tolist() == [32 - x.bit_length() for x in u]
    assert np.array_equal(c[6], ~a)


def test_numbers_while_tracing_and_at_run_time():
    assert (
        T.ceildiv(7, 2),
        T.cdiv(8, 2),
        T.align_up(13, 8),
        T.floordiv(-7, 2),
        T.floormod(-7, 2),
    ) == (4, 4, 16, -4, 1)
    assert (T.truncdiv(-7, 2), T.truncmod(-7, 2), T.max(1, 2), T.min(1, 2), T.shift_left(1, 3)) == (
        -3,
        -1,
        2,
        1,
        8,
    )
    assert T.if_then_else(True, 1, 2) == 1


def test_ceildiv_and_align_up_of_symbols(run):
    @T.prim_func
    def main(B: T.Tensor((3,), "int32"), n: T.int32):
        with T.Kernel(1):
            B[0] = T.ceildiv(n, 4)
            B[1] = T.align_up(n, 8)
            B[2] = T.cdiv(n, n)

    b = poisoned(3)
    run(main, b, 13)
    assert b.tolist() == [4, 16, 1]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "dtype", ["float32", "float16", "float64", "int8", "uint16", "int32", "int64"]
)
def test_limits(run, dtype):
    @T.prim_func
    def main(B: T.Tensor((3,), dtype)):
        with T.Kernel(1):
            B[0] = T.max_value(dtype)
            B[1] = T.min_value(dtype)
            B[2] = T.infinity(dtype) if dtype.startswith("float") else 0

    b = poisoned(3, dtype=dtype)
    run(main, b)
    info = np.finfo(dtype) if dtype.startswith("float") else np.iinfo(dtype)
    assert b[0] == info.max
    assert b[1] == info.min
    assert b[2] == (np.inf if dtype.startswith("float") else 0)


def test_true_division_is_for_floats(run):
    with pytest.raises(TypeError) as caught:

        @T.prim_func
        def wrong(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                A[0] = A[1] / A[2]

    assert isinstance(caught.value, TileError)

    @T.prim_func
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            A[0] = A[1] / A[2]
            A[1] = A[3] / 4
            A[2] = 1 / A[3]

    a = np.array([0, 3, 4, 2], "float32")
    run(main, a)
    assert a.tolist() == [0.75, 0.5, 0.5, 2]


def test_only_the_taken_side_is_evaluated(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4,), "int32")
            T.copy(A, S)
            for i in T.Parallel(8):
                B[i] = T.if_then_else(i < 4, S[i], -i)
            for i in T.serial(8):
                B[i] = T.if_then_else(i % 2 == 0, B[i], 100 // (i % 2))

    b = poisoned(8)
    run(main, counted(4), b)
    assert b.tolist() == [0, 100, 2, 100, -4, 100, -6, 100]


MODES = {"rn": None, "rz": 0.0, "ru": math.inf, "rd": -math.inf}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("mode", MODES)
def test_directed_rounding(run, mode):
    from fractions import Fraction

    a, b, c = (np.random.default_rng(s).uniform(0.5, 2, 60).astype("float32") for s in (1, 2, 3))

    @T.prim_func
    def main(
        A: T.Tensor((60,), "float32"),
        B: T.Tensor((60,), "float32"),
        C: T.Tensor((60,), "float32"),
        R: T.Tensor((7, 60), "float32"),
    ):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(60):
                R[0, i] = T.ieee_add(A[i], B[i], mode)
                R[1, i] = T.ieee_sub(A[i], B[i], rounding_mode=mode)
                R[2, i] = T.ieee_mul(A[i], B[i], mode)
                R[3, i] = T.ieee_fdiv(A[i], B[i], mode)
                R[4, i] = T.ieee_fmaf(A[i], B[i], C[i], mode)
                R[5, i] = T.ieee_frcp(A[i], mode)
                R[6, i] = T.ieee_fsqrt(A[i], mode)

    def rounded(exact):
        near = np.float32(float(exact))
        low = near if Fraction(float(near)) <= exact else np.nextafter(near, np.float32(-np.inf))
        high = near if Fraction(float(near)) >= exact else np.nextafter(near, np.float32(np.inf))
        if mode == "rn":
            gap_low, gap_high = exact - Fraction(float(low)), Fraction(float(high)) - exact
            return low if gap_low < gap_high else high if gap_high < gap_low else near
        if mode == "rz":
            return low if exact > 0 else high
        return high if mode == "ru" else low

    found = poisoned(7, 60, dtype="float32")
    run(main, a, b, c, found)
    exact = [[Fraction(float(v)) for v in x] for x in (a, b, c)]
    functions = [
        lambda x, y, z: x + y,
        lambda x, y, z: x - y,
        lambda x, y, z: x * y,
        lambda x, y, z: x / y,
        lambda x, y, z: x * y + z,
        lambda x, y, z: 1 / x,
    ]
    for row, f in zip(found[:6], functions, strict=True):
        assert row.tolist() == [rounded(f(*v)) for v in zip(*exact, strict=True)]
    for root, x in zip(found[6], exact[0], strict=True):
        root = Fraction(float(root))
        step = Fraction(1, 2**22)
        if mode in ("rz", "rd"):
            assert root**2 <= x < (root + step) ** 2
        elif mode == "ru":
            assert (root - step) ** 2 < x <= root**2


def test_inverse_roots_correctly_rounded_and_wrong_modes(run):
    @T.prim_func
    def main(A: T.Tensor((9,), "float32"), B: T.Tensor((9,), "float32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(9):
                B[i] = T.ieee_frsqrt(A[i])

    a, b = counted(9, dtype="float32", start=1), poisoned(9, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, (1 / np.sqrt(a.astype("float64"))).astype("float32"))
    with pytest.raises(ValueError, match="nearest"):

        @T.prim_func
        def wrong(A: T.Tensor((1,), "float32")):
            with T.Kernel(1):
                A[0] = T.ieee_add(A[0], 1.0, "nearest")


def test_fast_functions_take_floats():
    with pytest.raises(TypeError):

        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            with T.Kernel(1):
                A[0] = T.__exp(A[0])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_packed_pairs(run, dtype):
    pair = f"{dtype}x2"

    @T.prim_func
    def main(A: T.Tensor((8,), dtype), B: T.Tensor((8,), dtype), C: T.Tensor((7, 8), dtype)):
        with T.Kernel(1):
            for k in T.serial(4):
                x = A[T.Ramp(k * 2, 1, 2)]
                y = B[T.Ramp(k * 2, 1, 2)]
                C[0, T.Ramp(k * 2, 1, 2)] = T.add2(x, y)
                C[1, T.Ramp(k * 2, 1, 2)] = T.sub2(x, y)
                C[2, T.Ramp(k * 2, 1, 2)] = T.mul2(x, y)
                C[3, T.Ramp(k * 2, 1, 2)] = T.fma2(x, y, x)
                C[4, T.Ramp(k * 2, 1, 2)] = T.max2(x, y)
                C[5, T.Ramp(k * 2, 1, 2)] = T.min2(x, y)
                C[6, T.Ramp(k * 2, 1, 2)] = T.abs2(x)

    a, b = drawn(8, dtype=dtype), drawn(8, seed=1, dtype=dtype)
    c = poisoned(7, 8, dtype=dtype)
    run(main, a, b, c)
    a, b = a.astype("float32"), b.astype("float32")
    expected = [a + b, a - b, a * b, a * b + a, np.maximum(a, b), np.minimum(a, b), abs(a)]
    assert np.array_equal(c.astype("float32"), expected)


def test_vector_expressions(run):
    @T.prim_func
    def main(A: T.Tensor((12,), "int32"), B: T.Tensor((5, 4), "int32")):
        with T.Kernel(1):
            v = A[T.Ramp(1, 2, 4)]
            B[0, T.Ramp(0, 1, 4)] = v
            B[1, T.Ramp(3, -1, 4)] = v + T.Broadcast(10, 4)
            B[2, T.Ramp(0, 1, 4)] = T.Shuffle([v], [3, 2, 1, 0])
            B[3, 0] = T.extract_lane(v, 2)
            B[3, 1] = T.Shuffle([v], [1])
            B[4, T.Ramp(0, 1, 4)] = T.Broadcast(A[5], 4)

    b = poisoned(5, 4)
    run(main, counted(12), b)
    assert b.tolist() == [[1, 3, 5, 7], [17, 15, 13, 11], [7, 5, 3, 1], [5, 3, 77, 77], [5] * 4]


def test_assumptions_inside_loops(run):
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), k: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.serial(4):
                T.assume(k + i < 16)
                A[k + i] = i

    a = poisoned(16)
    run(main, a, 12)
    assert a[12:].tolist() == [0, 1, 2, 3]
