"""Matrix products."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import drawn, poisoned
from tile_core.errors import TileError


def product(
    m,
    n,
    k,
    block,
    ab="float32",
    c="float32",
    ta=False,
    tb=False,
    b_dtype=None,
    a_scope="shared",
    b_scope="shared",
    **options,
):
    """Return a blocked product of any sizes."""
    bm, bn, bk = block
    allocate = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}
    b_dtype = b_dtype or ab

    @T.prim_func
    def main(
        A: T.Tensor((k, m) if ta else (m, k), ab),
        B: T.Tensor((n, k) if tb else (k, n), b_dtype),
        C: T.Tensor((m, n), c),
    ):
        with T.Kernel(T.ceildiv(n, bn), T.ceildiv(m, bm), threads=64) as (bx, by):
            a = allocate[a_scope]((bk, bm) if ta else (bm, bk), ab)
            b = allocate[b_scope]((bn, bk) if tb else (bk, bn), b_dtype)
            acc = T.alloc_fragment((bm, bn), c)
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(k, bk), num_stages=2):
                if ta:
                    T.copy(A[ko * bk, by * bm], a)
                else:
                    T.copy(A[by * bm, ko * bk], a)
                if tb:
                    T.copy(B[bx * bn, ko * bk], b)
                else:
                    T.copy(B[ko * bk, bx * bn], b)
                T.gemm(a, b, acc, transpose_A=ta, transpose_B=tb, **options)
            T.copy(acc, C[by * bm, bx * bn])

    return main


def operands(m, n, k, ta, tb, ab="float32", b_dtype=None):
    a = drawn(*((k, m) if ta else (m, k)), low=-3, high=4, dtype=ab)
    b = drawn(*((n, k) if tb else (k, n)), seed=1, low=-3, high=4, dtype=b_dtype or ab)
    wide = (a.T if ta else a).astype("float64") @ (b.T if tb else b).astype("float64")
    return a, b, wide


ODD = (37, 29, 53)
"""Which all tiles hang over."""


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("sizes", "ta", "tb"),
    [
        *((ODD, ta, tb) for ta in (False, True) for tb in (False, True)),
        ((16, 16, 16), False, False),
        ((7, 65, 3), False, True),
        ((7, 65, 3), True, False),
        ((1, 1, 1), True, True),
    ],
)
def test_sizes_and_transpositions(run, sizes, ta, tb):
    a, b, expected = operands(*sizes, ta, tb)
    c = poisoned(*sizes[:2], dtype="float32")
    run(product(*sizes, (16, 32, 16), ta=ta, tb=tb), a, b, c)
    assert np.array_equal(c, expected)


TYPES = [
    ("float16", None, "float32"),
    ("float16", None, "float16"),
    ("bfloat16", None, "float32"),
    ("float32", None, "float32"),
    ("float64", None, "float64"),
    ("int8", None, "int32"),
    ("uint8", None, "int32"),
    ("uint8", "int8", "int32"),
    ("int8", "uint8", "int32"),
    ("float8_e4m3fn", None, "float32"),
    ("float8_e5m2", None, "float32"),
    ("float8_e4m3fn", "float8_e5m2", "float32"),
    ("float8_e4m3fn", None, "float16"),
    ("tfloat32", None, "float32"),
    ("int16", None, "int32"),
]


@pytest.mark.in_turn(8)
@pytest.mark.parametrize(("ab", "b_dtype", "c"), TYPES)
def test_element_types(run, ab, b_dtype, c):
    m, n, k = 33, 17, 40
    stored = "float32" if ab == "tfloat32" else ab
    a, b, expected = operands(m, n, k, False, True, stored, b_dtype)
    found = poisoned(m, n, dtype=c)
    run(product(m, n, k, (16, 16, 16), ab, c, tb=True, b_dtype=b_dtype), a, b, found)
    assert np.array_equal(found.astype("float64"), expected)


@pytest.mark.filterwarnings("ignore:a pipelined loop does not overlap its iterations")
def test_four_bit_integers(run):
    m, n, k = 16, 16, 32
    values_a, values_b = (np.random.default_rng(s).integers(-8, 8, (16, k)) for s in (0, 1))

    def pack(v):
        return ((v[:, 0::2] & 15) | ((v[:, 1::2] & 15) << 4)).astype(np.uint8)

    c = poisoned(m, n)
    run(product(m, n, k, (16, 16, 16), "int4", "int32", tb=True), pack(values_a), pack(values_b), c)
    assert np.array_equal(c, values_a @ values_b.T)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("a_scope", "b_scope"),
    [("fragment", "shared"), ("shared", "fragment"), ("fragment", "fragment")],
)
@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.filterwarnings("ignore:a pipelined loop does not overlap its iterations")
def test_operands_in_fragments(run, a_scope, b_scope, dtype):
    a, b, expected = operands(20, 24, 18, False, True, dtype)
    c = poisoned(20, 24, dtype="float32")
    run(
        product(20, 24, 18, (16, 16, 16), dtype, tb=True, a_scope=a_scope, b_scope=b_scope), a, b, c
    )
    assert np.array_equal(c, expected)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "options",
    [
        {"policy": T.GemmWarpPolicy.Square},
        {"policy": T.GemmWarpPolicy.FullRow},
        {"policy": T.GemmWarpPolicy.FullCol},
        {"k_pack": 1},
        {"wg_wait": 0},
        {"annotations": {}},
        {"mbar": None},
    ],
)
def test_options_change_nothing(run, options):
    a, b, expected = operands(32, 32, 32, False, False)
    c = poisoned(32, 32, dtype="float32")
    run(product(32, 32, 32, (32, 32, 16), **options), a, b, c)
    assert np.array_equal(c, expected)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("clear", ["always", "first", "never"])
def test_clearing_the_accumulator(run, clear):
    @T.prim_func
    def main(
        A: T.Tensor((8, 24), "float32"),
        B: T.Tensor((24, 8), "float32"),
        C: T.Tensor((8, 8), "float32"),
    ):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8, 8), "float32")
            b = T.alloc_shared((8, 8), "float32")
            acc = T.alloc_fragment((8, 8), "float32")
            T.fill(acc, 5)
            for k in T.serial(3):
                T.copy(A[0, k * 8], a)
                T.copy(B[k * 8, 0], b)
                if clear == "always":
                    T.gemm(a, b, acc, False, False, clear_accum=True)
                elif clear == "first":
                    T.gemm(a, b, acc, clear_accum=k == 0)
                else:
                    T.gemm(a, b, acc, clear_accum=False)
            T.copy(acc, C)

    a, b = drawn(8, 24), drawn(24, 8, seed=1)
    c = poisoned(8, 8, dtype="float32")
    run(main, a, b, c)
    expected = {"always": a[:, 16:] @ b[16:], "first": a @ b, "never": a @ b + 5}[clear]
    assert np.array_equal(c, expected)


def test_regions_as_operands_and_a_shared_accumulator(run):
    @T.prim_func
    def main(
        A: T.Tensor((2, 16, 16), "float32"),
        B: T.Tensor((16, 32), "float32"),
        C: T.Tensor((16, 16), "float32"),
    ):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((2, 16, 16), "float32")
            b = T.alloc_shared((16, 32), "float32")
            acc = T.alloc_shared((16, 32), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(acc)
            for k in T.serial(2):
                T.gemm(a[k, :, :], b[:, k * 16 : k * 16 + 16], acc[:, 8:24])
            T.copy(acc[:, 8:24], C)

    a, b, c = drawn(2, 16, 16), drawn(16, 32, seed=1), poisoned(16, 16, dtype="float32")
    run(main, a, b, c)
    assert np.array_equal(c, a[0] @ b[:, :16] + a[1] @ b[:, 16:])


@pytest.mark.in_turn(2)
def test_no_terms_give_zeros(run):
    k = T.dynamic("k")

    @T.prim_func
    def main(
        A: T.Tensor((16, k), "float32"),
        B: T.Tensor((k, 16), "float32"),
        C: T.Tensor((16, 16), "float32"),
    ):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 8), "float32")
            b = T.alloc_shared((8, 16), "float32")
            acc = T.alloc_fragment((16, 16), "float32")
            T.clear(acc)
            for ko in T.Pipelined(T.ceildiv(k, 8), num_stages=3):
                T.copy(A[0, ko * 8], a)
                T.copy(B[ko * 8, 0], b)
                T.gemm(a, b, acc)
            T.copy(acc, C)

    for terms in (0, 1, 7, 8, 21):
        a, b, c = drawn(16, terms), drawn(terms, 16, seed=1), poisoned(16, 16, dtype="float32")
        run(main, a, b, c)
        assert np.array_equal(c, a @ b), terms


def attempt(a, b, c, **options):
    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        with T.Kernel(1, threads=32):
            x = T.alloc_shared(a, "float32")
            y = T.alloc_shared(b, "float32")
            z = T.alloc_fragment(c, "float32")
            T.clear(z)
            T.gemm(x, y, z, **options)


@pytest.mark.parametrize(
    ("axis", "shapes"),
    [
        ("M", ((8, 4), (4, 8), (9, 8))),
        ("K", ((8, 4), (5, 8), (8, 8))),
        ("N", ((8, 4), (4, 9), (8, 8))),
    ],
)
def test_shapes_must_agree(axis, shapes):
    with pytest.raises(AssertionError, match=f"T.gemm {axis} shape check failed"):
        attempt(*shapes)


def test_other_refusals():
    with pytest.raises(TileError):
        attempt((8, 4), (4, 8), (8, 8), policy="Diagonal")
    with pytest.raises(TileError):
        attempt((8, 4, 4), (4, 8), (8, 8))


def test_policies_are_numbers():
    assert [
        int(p)
        for p in (T.GemmWarpPolicy.Square, T.GemmWarpPolicy.FullRow, T.GemmWarpPolicy.FullCol)
    ] == [0, 1, 2]
    T.GemmWarpPolicy.from_warp_partition(2, 2)


def test_a_chain_of_products_through_fragments(run):
    @T.prim_func
    def main(
        A: T.Tensor((16, 8), "float16"),
        B: T.Tensor((8, 16), "float16"),
        D: T.Tensor((16, 8), "float16"),
        C: T.Tensor((16, 8), "float32"),
    ):
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 8), "float16")
            b = T.alloc_shared((8, 16), "float16")
            d = T.alloc_shared((16, 8), "float16")
            p = T.alloc_fragment((16, 16), "float32")
            q = T.alloc_fragment((16, 16), "float16")
            o = T.alloc_fragment((16, 8), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.copy(D, d)
            T.gemm(a, b, p, clear_accum=True)
            T.copy(p, q)
            T.clear(o)
            T.gemm(q, d, o)
            T.copy(o, C)

    a, b, d = (
        drawn(*s, seed=k, low=-2, high=3, dtype="float16")
        for k, s in enumerate([(16, 8), (8, 16), (16, 8)])
    )
    c = poisoned(16, 8, dtype="float32")
    run(main, a, b, d, c)
    assert np.array_equal(c, a.astype(float) @ b.astype(float) @ d.astype(float))


def test_dp4a(run):
    @T.prim_func
    def main(A: T.Tensor((6, 4), "int8"), B: T.Tensor((6, 4), "int8"), C: T.Tensor((6,), "int32")):
        with T.Kernel(1, threads=32):
            a = T.alloc_local((4,), "int8")
            b = T.alloc_local((4,), "int8")
            c = T.alloc_local((1,), "int32")
            for i in T.serial(6):
                for k in T.vectorized(4):
                    a[k] = A[i, k]
                    b[k] = B[i, k]
                c[0] = i
                T.dp4a(a[0], b[0], c[0])
                C[i] = c[0]

    a, b = (drawn(6, 4, seed=s, low=-128, high=128, dtype="int8") for s in (0, 1))
    c = poisoned(6)
    run(main, a, b, c)
    assert np.array_equal(c, (a.astype(int) * b).sum(1) + np.arange(6))
    with pytest.raises(ValueError, match="dp4a requires"):

        @T.prim_func
        def wrong(A: T.Tensor((4,), "float32"), C: T.Tensor((1,), "int32")):
            with T.Kernel(1):
                T.dp4a(A[0], A[0], C[0])
