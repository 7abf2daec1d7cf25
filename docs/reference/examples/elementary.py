"""Elementary functions."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def exp():
    """Exponentials: `T.exp`, `T.exp2`, `T.exp10`, and `T.expm1` near zero."""

    @tile.jit
    def exponentials(A: T.Tensor((32,), "float32")):
        B = T.empty((4, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.exp(A[i])
                B[1, i] = T.exp2(A[i])
                B[2, i] = T.exp10(A[i])
                B[3, i] = T.expm1(A[i] * 1e-6)  # T.exp(x) - 1 has no digits left there
        return B

    a = np.linspace(-2, 2, 32, dtype="float32")
    expected = [np.exp(a), np.exp2(a), 10.0**a, np.expm1(a * np.float32(1e-6))]
    np.testing.assert_allclose(exponentials(a), expected, rtol=1e-5)


def log():
    """Logarithms: `T.log`, `T.log2`, `T.log10`, and `T.log1p` near one."""

    @tile.jit
    def logarithms(A: T.Tensor((32,), "float32")):
        B = T.empty((4, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.log(A[i])
                B[1, i] = T.log2(A[i])
                B[2, i] = T.log10(A[i])
                B[3, i] = T.log1p(A[i] * 1e-6)
        return B

    a = np.linspace(2, 9, 32, dtype="float32")
    expected = [np.log(a), np.log2(a), np.log10(a), np.log1p(a * np.float32(1e-6))]
    np.testing.assert_allclose(logarithms(a), expected, rtol=1e-5)


def sin():
    """Angles: `T.sin`, `T.cos`, `T.tan`, and back: `T.asin`, `T.acos`, `T.atan`, `T.atan2`."""

    @tile.jit
    def there_and_back(A: T.Tensor((32,), "float32")):
        B = T.empty((4, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.asin(T.sin(A[i]))
                B[1, i] = T.acos(T.cos(A[i]))
                B[2, i] = T.atan(T.tan(A[i]))
                B[3, i] = T.atan2(T.sin(A[i] + 1), T.cos(A[i] + 1))  # all quadrants
        return B

    a = np.linspace(0.1, 1.5, 32, dtype="float32")
    np.testing.assert_allclose(there_and_back(a), [a, a, a, a + 1], rtol=1e-4)


def tanh():
    """Hyperbolic: `T.sinh`, `T.cosh`, `T.tanh`, and back: `T.asinh`, `T.acosh`, `T.atanh`."""

    @tile.jit
    def there_and_back(A: T.Tensor((32,), "float32")):
        B = T.empty((3, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.asinh(T.sinh(A[i]))
                B[1, i] = T.acosh(T.cosh(A[i]))
                B[2, i] = T.atanh(T.tanh(A[i]))
        return B

    a = np.linspace(0.2, 2, 32, dtype="float32")
    np.testing.assert_allclose(there_and_back(a), [a, a, a], rtol=1e-4)


def erf():
    """Gates: `T.erf` as in GELU, `T.sigmoid` as in SiLU."""
    from math import erf, sqrt

    @tile.jit
    def gates(A: T.Tensor((32,), "float32")):
        B = T.empty((2, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = A[i] / 2 * (1 + T.erf(A[i] * 0.5**0.5))
                B[1, i] = A[i] * T.sigmoid(A[i])
        return B

    a = np.linspace(-3, 3, 32, dtype="float32")
    gelu = [x / 2 * (1 + erf(x / sqrt(2))) for x in a]
    np.testing.assert_allclose(gates(a), [gelu, a / (1 + np.exp(-a))], rtol=1e-4, atol=1e-6)


def sqrt():
    """Roots, powers and reciprocals: `T.sqrt`, `T.rsqrt`, `T.pow`, `T.hypot`, `T.fast_rcp`."""

    @tile.jit
    def lengths(A: T.Tensor((32,), "float32")):
        B = T.empty((5, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.sqrt(A[i])
                B[1, i] = A[i] * T.rsqrt(A[i])
                B[2, i] = T.pow(A[i], 1.5)
                B[3, i] = T.hypot(A[i] * 3e30, A[i] * 4e30)  # squares would be infinite
                B[4, i] = T.fast_rcp(A[i])
        return B

    a = np.arange(1, 33, dtype="float32")
    expected = [a**0.5, a**0.5, a**1.5, a * np.float32(5e30), 1 / a]
    np.testing.assert_allclose(lengths(a), expected, rtol=1e-5)


def round():
    """Whole numbers: `T.floor`, `T.ceil`, `T.trunc`, `T.round` and `T.nearbyint`."""

    @tile.jit
    def rounded(A: T.Tensor((32,), "float32")):
        B = T.empty((6, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.floor(A[i])
                B[1, i] = T.ceil(A[i])
                B[2, i] = T.trunc(A[i])
                B[3, i] = T.round(A[i])  # halves to even
                B[4, i] = T.round(A[i], rounding_mode="ties-away-from-zero")
                B[5, i] = T.nearbyint(A[i])
        return B

    a = np.arange(-16, 16, dtype="float32") / 2
    away = np.copysign(np.floor(abs(a) + 0.5), a)
    expected = [np.floor(a), np.ceil(a), np.trunc(a), np.rint(a), away, np.rint(a)]
    assert (rounded(a) == expected).all()


def isnan():
    """Kinds of numbers: `T.isnan`, `T.isinf`, `T.isfinite`."""

    @tile.jit
    def kinds(A: T.Tensor((4,), "float32")):
        B = T.empty((3, 4), "bool")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                B[0, i] = T.isnan(A[i])
                B[1, i] = T.isinf(A[i])
                B[2, i] = T.isfinite(A[i])
        return B

    a = np.array([1, -np.inf, np.nan, 3e38], "float32")
    assert (kinds(a) == [np.isnan(a), np.isinf(a), np.isfinite(a)]).all()


def fma():
    """`T.fma` rounds once; `T.fmod` is the remainder with the sign of the dividend."""

    @tile.jit
    def computed(A: T.Tensor((32,), "float32")):
        B = T.empty((2, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.fma(A[i], A[i], -1.0)
                B[1, i] = T.fmod(A[i], 3.0)
        return B

    a = np.arange(-16, 16, dtype="float32") + np.float32(2**-12)
    once = (a.astype("float64") ** 2 - 1).astype("float32")
    assert (computed(a) == [once, np.fmod(a, np.float32(3))]).all()


def copysign():
    """Parts of floats: `T.copysign`, `T.ldexp`, and `T.nextafter`, the neighbour."""

    @tile.jit
    def parts(A: T.Tensor((32,), "float32"), n: T.int32):
        B = T.empty((3, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.copysign(1.0, A[i])
                B[1, i] = T.ldexp(A[i], n)
                B[2, i] = T.nextafter(A[i], T.infinity("float32"))
        return B

    a = np.arange(-16, 16, dtype="float32")
    expected = [np.copysign(1, a), a * 32, np.nextafter(a, np.float32(np.inf))]
    assert (parts(a, 5) == expected).all()


def fast():
    """Approximations, fast on GPUs: `T.__exp`, `T.__exp10`, `T.__log`, `T.__log2`, `T.__log10`.

    And of angles: `T.__sin`, `T.__cos`, `T.__tan`.
    """

    @tile.jit
    def fast(A: T.Tensor((32,), "float32")):
        B = T.empty((8, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.__exp(A[i])
                B[1, i] = T.__exp10(A[i])
                B[2, i] = T.__log(A[i])
                B[3, i] = T.__log2(A[i])
                B[4, i] = T.__log10(A[i])
                B[5, i] = T.__sin(A[i])
                B[6, i] = T.__cos(A[i])
                B[7, i] = T.__tan(A[i])
        return B

    a = np.linspace(0.1, 1.5, 32, dtype="float32")
    powers, logarithms = [np.exp(a), 10.0**a], [np.log(a), np.log2(a), np.log10(a)]
    expected = [*powers, *logarithms, np.sin(a), np.cos(a), np.tan(a)]
    np.testing.assert_allclose(fast(a), expected, rtol=1e-3, atol=1e-5)


def ieee():
    """Results rounded as asked: `T.ieee_add`, `T.ieee_sub`, `T.ieee_mul`, `T.ieee_fmaf`.

    And quotients and roots: `T.ieee_fdiv`, `T.ieee_frcp`, `T.ieee_fsqrt`, `T.ieee_frsqrt`.
    """

    @tile.jit
    def rounded(A: T.Tensor((32,), "float32"), mode="rn"):
        B = T.empty((8, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.ieee_add(A[i], 0.1, mode)
                B[1, i] = T.ieee_sub(A[i], 0.1, mode)
                B[2, i] = T.ieee_mul(A[i], 0.1, mode)
                B[3, i] = T.ieee_fmaf(A[i], A[i], 0.1, mode)
                B[4, i] = T.ieee_fdiv(A[i], 3.0, mode)
                B[5, i] = T.ieee_frcp(A[i], mode)
                B[6, i] = T.ieee_fsqrt(A[i], mode)
                B[7, i] = T.ieee_frsqrt(A[i], mode)
        return B

    a = np.linspace(1, 2, 32, dtype="float32")
    x, tenth = a.astype("float64"), float(np.float32(0.1))
    exact = [x + tenth, x - tenth, x * tenth, x * x + tenth, x / 3, 1 / x, x**0.5, x**-0.5]
    low, high = rounded(a, "rd"), rounded(a, "ru")
    assert ((low <= exact) & (exact <= high)).all()
    assert (high <= np.nextafter(low, np.float32(np.inf))).all()
