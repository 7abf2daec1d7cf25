"""Integer and mixed arithmetic."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def ceildiv():
    """`T.ceildiv`, also `T.cdiv`, counts blocks; `T.align_up` rounds up to their size."""

    @tile.jit
    def padded(A: T.Tensor((100,), "int32"), block: int = 32):
        B = T.empty((T.align_up(100, block),), "int32")
        with T.Kernel(T.ceildiv(100, block), threads=32) as bx:
            for k in T.serial(T.cdiv(block, 32)):
                i = bx * block + k * 32 + T.get_thread_binding()
                B[i] = A[i]  # zero outside
        return B

    a = np.arange(100, dtype="int32")
    assert (padded(a) == np.pad(a, (0, 28))).all()


def floordiv():
    """`T.floordiv`, `T.floormod` as in Python; `T.truncdiv`, `T.truncmod` as in C."""

    @tile.jit
    def divided(A: T.Tensor((16,), "int32"), by: T.int32):
        B = T.empty((4, 16), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(16):
                B[0, i] = T.floordiv(A[i], by)  # or A[i] // by
                B[1, i] = T.floormod(A[i], by)  # or A[i] % by
                B[2, i] = T.truncdiv(A[i], by)
                B[3, i] = T.truncmod(A[i], by)
        return B

    a = np.arange(-8, 8, dtype="int32")
    quotient = np.trunc(a / 3).astype("int32")
    assert (divided(a, 3) == [a // 3, a % 3, quotient, a - 3 * quotient]).all()


def bitwise_and():
    """Bits by name: `T.bitwise_and`, `T.bitwise_or`, `T.bitwise_xor`, `T.bitwise_not`, shifts.

    `T.shift_left` and `T.shift_right` are ``<<`` and ``>>``, as the others are ``& | ^ ~``.
    """

    @tile.jit
    def mixed(A: T.Tensor((32,), "uint32")):
        B = T.empty((32,), "uint32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                low = T.bitwise_and(A[i], 0xFFFF)
                high = T.shift_right(A[i], 16)
                swapped = T.bitwise_or(T.shift_left(low, 16), high)
                B[i] = T.bitwise_xor(swapped, T.bitwise_not(A[i]))
        return B

    a = np.random.default_rng(0).integers(0, 2**32, 32).astype("uint32")
    assert (mixed(a) == ((a << 16 | a >> 16) ^ ~a)).all()


def popcount():
    """`T.popcount` counts bits, `T.clz` those above the highest, `T.ffs` up to the lowest.

    `T.__ffs` is what CUDA calls it.
    """

    @tile.jit
    def counted(A: T.Tensor((32,), "int32")):
        B = T.empty((4, 32), "int32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.popcount(A[i])
                B[1, i] = 31 - T.clz(A[i])
                B[2, i] = T.ffs(A[i])
                B[3, i] = T.__ffs(A[i] & (A[i] - 1))  # the second lowest bit
        return B

    a = np.random.default_rng(0).integers(1, 2**31, 32).astype("int32")
    ones, highest, lowest, second = counted(a).tolist()
    assert ones == [bin(x).count("1") for x in a]
    assert highest == [int(x).bit_length() - 1 for x in a]
    assert lowest == [int(x & -x).bit_length() for x in a]
    assert second == [int(y & -y).bit_length() for y in a & (a - 1)]


def clamp():
    """`T.max`, `T.min` and `T.clamp` bound values; `T.abs`, also `T.fabs`, drops the sign."""

    @tile.jit
    def bounded(A: T.Tensor((32,), "float32")):
        B = T.empty((4, 32), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[0, i] = T.max(A[i], -A[i], 4)
                B[1, i] = T.min(A[i], 2, nan_propagate=True)
                B[2, i] = T.clamp(A[i], -3, 3)
                B[3, i] = T.abs(A[i]) - T.fabs(A[i] - 1)
        return B

    a = np.arange(-16, 16, dtype="float32")
    a[0] = np.nan
    most, least, clamped, difference = bounded(a)
    assert (most == np.fmax(abs(a), 4)).all()
    np.testing.assert_array_equal(least, np.minimum(a, 2))
    assert (clamped[1:] == a[1:].clip(-3, 3)).all()
    assert (difference[1:] == (abs(a) - abs(a - 1))[1:]).all()


def likely():
    """`T.likely` says that a condition holds most of the time."""

    @tile.jit
    def tail(A: T.Tensor((50,), "int32")):
        B = T.empty((50,), "int32")
        with T.Kernel(2, threads=32) as bx:
            i = bx * 32 + T.get_thread_binding()
            if T.likely(i < 50):
                B[i] = A[i] + 1
        return B

    a = np.arange(50, dtype="int32")
    assert (tail(a) == a + 1).all()


def fmul():
    """`T.fmul` rounds its product: no compiler makes a fused operation of it and a sum."""

    @tile.jit
    def what_rounding_takes(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = T.fma(A[i], A[i], -T.fmul(A[i], A[i]))
        return B

    a = np.random.default_rng(0).random(32, "float32")
    exact = a.astype("float64") ** 2
    assert (what_rounding_takes(a) == (exact - (a * a)).astype("float32")).all()
