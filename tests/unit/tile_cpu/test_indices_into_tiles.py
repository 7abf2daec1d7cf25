"""Indices that data or sizes give: outside of a tile, code neither faults nor writes elsewhere."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import OutOfBounds

FAR = [2**31 - 1, -(2**31), 10**9, -1, 64]


@T.prim_func
def elements(I: T.Tensor((32,), "int32"), O: T.Tensor((3, 32), "float32"), n: T.int32):
    with T.Kernel(1, threads=32):
        s, p = T.alloc_shared((64,), "float32"), T.alloc_shared((32,), "int32")
        wide = T.alloc_fragment((64,), "float16")
        T.fill(s, 1.0)
        T.fill(wide, 2.0)
        T.copy(I, p)
        for i in T.serial(32):
            s[I[i]] = 3.0
        for i in T.serial(n):
            s[i] = s[i] + 1.0
        for i in T.Parallel(32):
            O[0, i] = s[p[i]]
        for i in T.Parallel(32):
            O[1, i] = s[I[0] + i]
        for i in T.serial(32):
            O[2, i] = T.cast(wide[I[i]], "float32")


@pytest.mark.parametrize("far", FAR)
def test_no_index_faults(far: int) -> None:
    at = np.arange(32, dtype=np.int32)
    at[[0, 7, 31]] = far
    out = np.full((3, 32), 9, np.float32)
    tile.compile(elements, target="cpu")(at, out, 70)
    near = np.ones(32, bool)
    near[[0, 7, 31]] = False
    assert (out[0, near] == 4).all()
    assert (out[2, near] == 2).all()


def test_indices_inside_are_as_they_were() -> None:
    at, out = np.arange(32, dtype=np.int32)[::-1].copy(), np.zeros((3, 32), np.float32)
    at[0] = 16
    tile.compile(elements, target="cpu")(at, out, 20)
    s = np.where(np.isin(np.arange(64), at), 3.0, 1.0) + (np.arange(64) < 20)
    np.testing.assert_array_equal(out, [s[at], s[16:48], np.full(32, 2.0)])


def test_checks_tell_the_line() -> None:
    at = np.arange(32, dtype=np.int32)
    at[7] = 64
    with pytest.raises(OutOfBounds, match=r"s\[64\] is outside s\[64\]") as caught:
        tile.compile(elements, target="interpret")(at, np.zeros((3, 32), np.float32), 0)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__


def test_what_is_proven_costs_nothing() -> None:
    """Codes of a table, masked or of a type that is short enough, are looked up as they are."""

    @T.prim_func
    def main(
        W: T.Tensor((32,), "uint8"),
        I: T.Tensor((32,), "int32"),
        X: T.Tensor((256,), "float32"),
        O: T.Tensor((3, 32), "float32"),
    ):
        with T.Kernel(1, threads=32):
            table = T.alloc_shared((256,), "float32")
            T.copy(X, table)
            for i in T.Parallel(32):
                O[0, i] = table[T.cast(W[i], "int32")]
                O[1, i] = table[I[i] & 255]
                O[2, i] = table[I[i] % 256]

    text = tile.compile(main, target="cpu").ir("lowered")
    assert text.count("tile_gather") == 3
    assert "256 <" not in text
    assert "< 256" not in text


n, m = T.dynamic("n"), T.dynamic("m")


@T.prim_func
def rounds(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(1, threads=32):
        s, f = T.alloc_shared((16,), "float32"), T.alloc_fragment((16,), "float32")
        for i in T.Parallel(n):
            s[i] = A[i]
        for i in T.Parallel(n):
            f[i] = s[i] * 2
        for i in T.Parallel(n):
            B[i] = f[i]


@T.prim_func
def rounds_of_two_loops(A: T.Tensor((n, m), "float16"), B: T.Tensor((n, m), "float16")):
    with T.Kernel(1, threads=32):
        s = T.alloc_shared((16, 16), "float16")
        for i, j in T.Parallel(n, m):
            s[i, j] = A[i, j]
        for i, j in T.Parallel(n, m):
            B[i, j] = s[j, i]


@T.prim_func
def blocks(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(n, threads=32) as bx:
        s = T.alloc_shared((16,), "float32")
        T.fill(s, 7.0)
        for i in T.Parallel(16):
            s[bx * 16 + i] = A[bx]
        T.copy(s[bx * 16 : bx * 16 + 16], B[0:16])


@T.prim_func
def threads(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
    with T.Kernel(1, threads=32):
        t = T.get_thread_binding()
        s = T.alloc_shared((32,), "float32")
        s[t - n + 1] = A[0]
        s[t * n] = A[0]
        B[t] = s[t * n]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("length", [0, 1, 16, 17, 4099, 1 << 22])
def test_rounds_outside_are_left_out(length: int) -> None:
    a, b = np.ones(length, np.float32), np.full(length, 9, np.float32)
    tile.compile(rounds, target="cpu")(a, b)
    np.testing.assert_array_equal(b, np.where(np.arange(length) < 16, 2.0, 0.0))


@pytest.mark.parametrize("shape", [(0, 5), (16, 16), (3, 16), (17, 33), (1031, 2048)])
def test_rounds_of_two_loops(shape: tuple[int, int]) -> None:
    a = (np.arange(np.prod(shape)) % 64).reshape(shape).astype(np.float16)
    if max(shape) <= 16:
        a[:] = 3
    b = np.full(shape, 9, np.float16)
    tile.compile(rounds_of_two_loops, target="cpu")(a, b)
    if shape == (16, 16):
        np.testing.assert_array_equal(b, a.T)
    assert not b[16:].any()
    assert not b[:, 16:].any()


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("kernel", [blocks, threads], ids=lambda kernel: kernel.__name__)
@pytest.mark.parametrize("length", [33, 1 << 20])
def test_blocks_and_threads(kernel, length: int) -> None:
    tile.compile(kernel, target="cpu")(np.ones(length, np.float32), np.zeros(length, np.float32))


def product_at(where: str, dtype: str, size: int):
    """Return a kernel with a product of which one tile begins where data say."""

    @T.prim_func
    def main(I: T.Tensor((1,), "int32"), C: T.Tensor((3, size, size), "float32")):
        with T.Kernel(1, threads=32):
            s = T.alloc_shared((3, size, size), dtype)
            c = T.alloc_fragment((3, size, size), "float32")
            T.fill(s, 1.0)
            T.fill(c, 5.0)
            at = I[0]
            if where == "a":
                T.gemm(s[at, :, :], s[0, :, :], c[0, :, :])
            elif where == "b":
                T.gemm(s[0, :, :], s[at, :, :], c[0, :, :], transpose_B=True)
            elif where == "cleared":
                T.gemm(s[0, :, :], s[at, :, :], c[0, :, :], clear_accum=True)
            else:
                T.gemm(s[0, :, :], s[0, :, :], c[at, :, :])
            T.copy(c, C)

    return main


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("size", [16, 31])
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
@pytest.mark.parametrize("where", ["a", "b", "c", "cleared"])
def test_products_outside_of_tiles_are_of_zeros(where: str, dtype: str, size: int) -> None:
    kernel = tile.compile(product_at(where, dtype, size), target="cpu")
    for at in (0, 2, 3, -1, 1 << 20, 2**31 - 1, -(2**31)):
        found = np.zeros((3, size, size), np.float32)
        kernel(np.array([at], np.int32), found)
        expected = np.full_like(found, 5)
        if where == "cleared":
            expected[0] = 0
        if 0 <= at < 3:
            expected[at if where == "c" else 0] += size
        np.testing.assert_array_equal(found, expected)


def test_reductions_and_copies_outside_of_tiles() -> None:
    @T.prim_func
    def main(I: T.Tensor((1,), "int32"), C: T.Tensor((4, 32), "float32")):
        with T.Kernel(1, threads=32):
            f, total = (
                T.alloc_fragment((3, 32, 31), "float32"),
                T.alloc_fragment((1, 31), "float32"),
            )
            s, panels = T.alloc_shared((3, 32, 32), "float32"), T.alloc_shared((32, 32), "float32")
            c = T.alloc_fragment((32, 32), "float32")
            T.fill(f, 1.0)
            T.fill(s, 1.0)
            T.clear(c)
            at = I[0]
            T.reduce_sum(f[at, :, :], total, dim=1)
            T.copy(total[0, :], C[0, 0:31])
            T.cumsum(s[at, 0, :])
            T.copy(s[0, 0, :], C[1, :])
            T.copy(s[at, :, :], panels)
            T.gemm(s[2, :, :], panels, c)
            T.copy(c[0, :], C[2, :])
            T.fill(s[at, :, :], 4.0)
            T.copy(s[2, 1, :], C[3, :])

    kernel = tile.compile(main, target="cpu")
    for at in (3, -1, 10**9, -(2**31)):
        found = np.full((4, 32), 9, np.float32)
        kernel(np.array([at], np.int32), found)
        np.testing.assert_array_equal(found[1:], [[1.0] * 32, [0.0] * 32, [1.0] * 32])


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (rounds, r"s\[16\] is outside s\[16\]"),
        (blocks, r"s\[16\] is outside s\[16\]"),
        (threads, r"s\[-32\] is outside s\[32\]"),
    ],
    ids=lambda x: getattr(x, "__name__", ""),
)
def test_checks_tell_of_rounds_blocks_and_threads(kernel, told: str) -> None:
    arrays = np.ones(33, np.float32), np.zeros(33, np.float32)
    with pytest.raises(OutOfBounds, match=told):
        tile.compile(kernel, target="interpret")(*arrays)


def test_checks_tell_of_products() -> None:
    kernel = tile.compile(product_at("a", "float32", 16), target="interpret")
    with pytest.raises(OutOfBounds, match=r"index 3 leaves dimension 0 of s\[3, 16, 16\]"):
        kernel(np.array([3], np.int32), np.zeros((3, 16, 16), np.float32))


@pytest.mark.parametrize("scope", [T.alloc_fragment, T.alloc_shared])
@pytest.mark.parametrize("far", [0, 3, -3, 64, 1 << 24])
def test_tiles_beside_stay_as_they_are(scope: object, far: int) -> None:
    """Loops over more elements than a tile has, where sizes decide how many."""

    @T.prim_func
    def main(O: T.Tensor((3, 8), "int32"), n: T.int32, most: T.int32):
        with T.Kernel(1, threads=64):
            before = scope((8,), "int32")
            cells = scope((8,), "int32")
            behind = scope((8,), "int32")
            for i in T.Parallel(8):
                before[i] = 1
                cells[i] = 2
                behind[i] = 3
            for i in T.Parallel(8):
                cells[i + n] = 10 + i
            for i in T.Parallel(64):
                if i < most:
                    cells[i] = cells[i] + 100
            for i in T.Parallel(most):
                cells[i] += 1000
            T.copy(before, O[0, :])
            T.copy(cells, O[1, :])
            T.copy(behind, O[2, :])

    out = np.zeros((3, 8), np.int32)
    tile.compile(main, target="cpu")(out, far, 40)
    want = np.full(8, 1102)
    for i in range(8):
        if 0 <= i + far < 8:
            want[i + far] = 1110 + i
    np.testing.assert_array_equal(out, [np.full(8, 1), want, np.full(8, 3)])
