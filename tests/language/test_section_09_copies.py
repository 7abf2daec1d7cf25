"""Copies between scopes, casts on the way, im2col, transposition, asynchronous copies."""

import itertools
import warnings

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import TileError

SCOPES = {
    "global": None,
    "shared": T.alloc_shared,
    "fragment": T.alloc_fragment,
    "local": T.alloc_local,
}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("first", "second"), [*itertools.product(SCOPES, SCOPES)])
def test_copies_between_any_two_scopes(run, first, second):
    make_first, make_second = SCOPES[first], SCOPES[second]

    @T.prim_func
    def main(
        A: T.Tensor((3, 7), "float32"),
        X: T.Tensor((3, 7), "float32"),
        Y: T.Tensor((3, 7), "float32"),
        B: T.Tensor((3, 7), "float32"),
    ):
        with T.Kernel(1, threads=32):
            x = X if make_first is None else make_first((3, 7), "float32")
            y = Y if make_second is None else make_second((3, 7), "float32")
            T.copy(A, x)
            T.copy(x, y)
            T.copy(y, B)

    a, b = drawn(3, 7), poisoned(3, 7, dtype="float32")
    run(main, a, poisoned(3, 7, dtype="float32"), poisoned(3, 7, dtype="float32"), b)
    assert np.array_equal(b, a)


CAST_TO = ("float32", "float16", "bfloat16", "int8", "int32", "float64", "int64")


@T.macro
def cast(A, B):
    S = T.alloc_shared((2, 5), A.dtype)
    F = T.alloc_fragment((2, 5), B.dtype)
    T.copy(A, S)
    T.copy(S, F)
    T.copy(F, B)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    "source", ["float32", "float16", "bfloat16", "int8", "uint8", "int32", "float8_e4m3fn", "bool"]
)
def test_copies_cast(run, source):
    @T.prim_func
    def main(
        A: T.Tensor((2, 5), source),
        B0: T.Tensor((2, 5), CAST_TO[0]),
        B1: T.Tensor((2, 5), CAST_TO[1]),
        B2: T.Tensor((2, 5), CAST_TO[2]),
        B3: T.Tensor((2, 5), CAST_TO[3]),
        B4: T.Tensor((2, 5), CAST_TO[4]),
        B5: T.Tensor((2, 5), CAST_TO[5]),
        B6: T.Tensor((2, 5), CAST_TO[6]),
    ):
        with T.Kernel(1, threads=32):
            [cast(A, B) for B in (B0, B1, B2, B3, B4, B5, B6)]

    a, found = counted(2, 5, dtype=source), [poisoned(2, 5, dtype=dtype) for dtype in CAST_TO]
    run(main, a, *found)
    for b in found:
        assert np.array_equal(b, a.astype("float32").astype(b.dtype)), b.dtype


OPTIONS = [
    {"coalesced_width": 4}, {"disable_tma": True}, {"eviction_policy": "evict_first"},
    {"eviction_policy": "evict_last"}, {"prefer_instruction": "sync"},
    {"annotations": {"coalesced_width": 2}},
]  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("options", OPTIONS)
def test_options_change_nothing(run, options):
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 8), "int32")
            T.copy(A, S, **options)
            T.copy(S, B, **options)

    b = poisoned(4, 8)
    run(main, counted(4, 8), b)
    assert np.array_equal(b, counted(4, 8))


def test_options_that_are_refused():
    def attempt(**options):
        @T.prim_func
        def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=32):
                T.copy(A, B, **options)

    with pytest.raises(ValueError, match="evict"):
        attempt(eviction_policy="evict_all")
    with pytest.raises(ValueError, match="telepathy"):
        attempt(prefer_instruction="telepathy")


def test_a_copy_that_would_lose_elements_is_refused():
    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((8, 8), "int32")):
            with T.Kernel(1, threads=32):
                F = T.alloc_fragment((4, 8), "int32")
                T.copy(A[0:8, 0:8], F)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("shape", [(1, 1), (7, 3), (8, 8), (13, 16)])
def test_transpose(run, shape):
    m, n = shape

    @T.prim_func
    def main(A: T.Tensor((m, n), "float32"), B: T.Tensor((n, m), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((m, n), "float32")
            R = T.alloc_shared((n, m), "float32")
            T.copy(A, S)
            T.transpose(S, R)
            T.copy(R, B)

    a, b = drawn(m, n), poisoned(n, m, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, a.T)


def test_transpose_of_the_last_two_dimensions(run):
    @T.prim_func
    def main(A: T.Tensor((2, 3, 5), "int32"), B: T.Tensor((2, 5, 3), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((2, 3, 5), "int32")
            R = T.alloc_shared((2, 5, 3), "int32")
            T.copy(A, S)
            for k in T.unroll(2, explicit=True):
                T.transpose(S[k, :, :], R[k, :, :])
            T.copy(R, B)

    a, b = counted(2, 3, 5), poisoned(2, 5, 3)
    run(main, a, b)
    assert np.array_equal(b, a.transpose(0, 2, 1))


def im2col_of(image, kernel, stride, dilation, pad):
    n, h, w, c = image.shape
    oh = (h + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    ow = (w + 2 * pad - dilation * (kernel - 1) - 1) // stride + 1
    padded = np.pad(image, ((0, 0), (pad, pad), (pad, pad), (0, 0)))
    rows = []
    for b, y, x in itertools.product(range(n), range(oh), range(ow)):
        ys, xs = (
            y * stride + dilation * np.arange(kernel),
            x * stride + dilation * np.arange(kernel),
        )
        rows.append(padded[b][np.ix_(ys, xs)].reshape(-1))
    return np.array(rows)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("kernel", "stride", "dilation", "pad"),
    [(1, 1, 1, 0), (3, 1, 1, 1), (3, 2, 1, 1), (2, 1, 2, 0), (3, 2, 2, 2)],
)
@pytest.mark.parametrize("name", ["im2col", "c2d_im2col"])
def test_im2col(run, kernel, stride, dilation, pad, name):
    image = drawn(2, 6, 7, 4)
    columns = im2col_of(image, kernel, stride, dilation, pad)
    m, k = columns.shape
    bm, bk = 8, 6
    rows, cols = -(-m // bm), -(-k // bk)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @T.prim_func
        def main(
            A: T.Tensor((2, 6, 7, 4), "float32"), B: T.Tensor((rows * bm, cols * bk), "float32")
        ):
            with T.Kernel(cols, rows, threads=32) as (bx, by):
                S = T.alloc_shared((bm, bk), "float32")
                getattr(T, name)(A, S, by, bx, kernel, stride, dilation, pad)
                T.copy(S, B[by * bm, bx * bk])

    b = poisoned(rows * bm, cols * bk, dtype="float32")
    run(main, image, b)
    assert np.array_equal(b[:m, :k], columns)


@pytest.mark.parametrize("waits", [0, 1])
def test_asynchronous_copies(run, waits):
    @T.prim_func
    def main(A: T.Tensor((3, 16), "float32"), B: T.Tensor((3, 16), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((2, 16), "float32")
            T.async_copy(A[0, :], S[0, :])
            for k in T.serial(3):
                if k < 2:
                    T.async_copy(A[k + 1, :], S[(k + 1) % 2, :])
                if waits == 1 and k < 2:
                    T.ptx_wait_group(1)
                else:
                    T.ptx_wait_group(0)
                T.copy(S[k % 2, :], B[k, :])

    a, b = drawn(3, 16), poisoned(3, 16, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, a)


def test_asynchronous_copies_go_from_global_to_shared():
    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=32):
                F = T.alloc_fragment((16,), "float32")
                T.async_copy(A, F)


def test_global_to_global_with_overhang(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), B: T.Tensor((n,), "float32")):
        with T.Kernel(T.ceildiv(n, 8), threads=32) as bx:
            T.copy(A[bx * 8 : bx * 8 + 8], B[bx * 8 : bx * 8 + 8])

    for count in (1, 7, 8, 19):
        b = poisoned(count, dtype="float32")
        run(main, counted(count), b)
        assert np.array_equal(b, np.arange(count))
