"""The vectoriser: what it vectorises, what it leaves alone, and that both are right."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T

DTYPES = ["float32", "float16", "bfloat16", "float64", "int8", "uint8", "int32", "int64"]


def numpy_dtype(name: str) -> np.dtype:
    return np.dtype(ml_dtypes.bfloat16 if name == "bfloat16" else name)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", [(16, 64), (33, 131), (5, 3)])
def test_elementwise_tiles(dtype: str, shape: tuple[int, int]) -> None:
    @T.prim_func
    def main(A: T.Tensor(shape, dtype), B: T.Tensor(shape, dtype), C: T.Tensor(shape, dtype)):
        with T.Kernel(T.ceildiv(shape[1], 64), T.ceildiv(shape[0], 16)) as (bx, by):
            a, b = T.alloc_shared((16, 64), dtype), T.alloc_fragment((16, 64), dtype)
            T.copy(A[by * 16, bx * 64], a)
            T.copy(B[by * 16, bx * 64], b)
            for i, j in T.Parallel(16, 64):
                b[i, j] = T.max(a[i, j] * 2 - b[i, j], 0)
            T.copy(b, C[by * 16, bx * 64])

    rng = np.random.default_rng(0)
    low = 0 if dtype == "uint8" else -9
    a = rng.integers(low + 9 if low == 0 else low, 20, shape).astype(numpy_dtype(dtype))
    b = rng.integers(low, 9, shape).astype(numpy_dtype(dtype))
    c = np.full(shape, 77, numpy_dtype(dtype))
    kernel = tile.compile(main, target="cpu:x86-64-v3")
    kernel(a, b, c)
    wanted = np.maximum(a.astype(float) * 2 - b.astype(float), 0)
    np.testing.assert_array_equal(c.astype(float), wanted)


def lowered(function: object) -> str:
    return tile.compile(function, target="cpu:x86-64-v4").ir("lowered")


def test_lanes_are_explicit_and_edges_are_masked() -> None:
    @T.prim_func
    def main(A: T.Tensor((100,), "float32"), C: T.Tensor((100,), "float32")):
        with T.Kernel(4) as bx:
            for i in T.Parallel(32):
                C[bx * 32 + i] = A[bx * 32 + i] + 1

    text = lowered(main)
    assert "float32x16" in text
    assert "tile_mload_i32x16" in text
    assert "tile_mstore_i32x16" in text
    assert 'float32", 1' not in text


def test_provably_whole_tiles_have_no_masks() -> None:
    @T.prim_func
    def main(A: T.Tensor((128,), "float32"), C: T.Tensor((128,), "float32")):
        with T.Kernel(4) as bx:
            for i in T.Parallel(32):
                C[bx * 32 + i] = A[bx * 32 + i] + 1

    text = lowered(main)
    assert "float32x16" in text
    assert "tile_mload" not in text
    assert " if " not in text


def test_sums_across_lanes_stay_scalar() -> None:
    @T.prim_func
    def main(A: T.Tensor((8, 32), "int32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(1) as _:
            acc = T.alloc_fragment((8,), "int32")
            T.clear(acc)
            for i, j in T.Parallel(8, 32):
                acc[i] = acc[i] + A[i, j]
            T.copy(acc, C)

    a = np.arange(256, dtype="int32").reshape(8, 32)
    c = np.full(8, -1, "int32")
    tile.compile(main, target="cpu")(a, c)
    np.testing.assert_array_equal(c, a.sum(1))


def test_conditions_become_masks() -> None:
    @T.prim_func
    def main(A: T.Tensor((40, 40), "float32"), C: T.Tensor((40, 40), "float32")):
        with T.Kernel(2) as bx:
            for i, j in T.Parallel(20, 40):
                row = bx * 20 + i
                C[row, j] = T.if_then_else(row >= j, A[row, j], -T.infinity("float32"))

    a = np.random.default_rng(0).standard_normal((40, 40)).astype("float32")
    c = np.zeros((40, 40), "float32")
    tile.compile(main, target="cpu")(a, c)
    np.testing.assert_array_equal(c, np.where(np.tri(40) > 0, a, -np.inf))


def test_a_load_under_a_condition_does_not_leave_its_tile() -> None:
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), C: T.Tensor((32,), "float32")):
        with T.Kernel(1) as _:
            s = T.alloc_shared((32,), "float32")
            T.copy(A, s)
            for i in T.Parallel(32):
                C[i] = T.if_then_else(i > 0, s[i - 1], 9.0)

    a = np.arange(32, dtype="float32")
    c = np.zeros(32, "float32")
    tile.compile(main, target="cpu")(a, c)
    np.testing.assert_array_equal(c, [9, *a[:-1]])


@pytest.mark.parametrize("n", [1, 7, 16, 50])
def test_indirect_and_strided_reads(n: int) -> None:
    @T.prim_func
    def main(
        I: T.Tensor((n,), "int32"), A: T.Tensor((64,), "float32"), C: T.Tensor((n,), "float32")
    ):
        with T.Kernel(1) as _:
            s = T.alloc_shared((64,), "float32")
            T.copy(A, s)
            for i in T.Parallel(n):
                C[i] = s[I[i]] + s[i % 8 * 8]

    rng = np.random.default_rng(0)
    picks, a = rng.integers(0, 64, n).astype("int32"), rng.standard_normal(64).astype("float32")
    c = np.zeros(n, "float32")
    tile.compile(main, target="cpu")(picks, a, c)
    np.testing.assert_array_equal(c, a[picks] + a[np.arange(n) % 8 * 8])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("columns", [1, 5, 64, 100])
@pytest.mark.parametrize("dim", [0, 1])
def test_reductions_of_any_length(dim: int, columns: int) -> None:
    kept = columns if dim == 0 else 10

    @T.prim_func
    def main(
        A: T.Tensor((10, columns), "float32"),
        S: T.Tensor((kept,), "float32"),
        H: T.Tensor((kept,), "float32"),
    ):
        with T.Kernel(1) as _:
            a = T.alloc_fragment((10, columns), "float32")
            s, h = T.alloc_fragment((kept,), "float32"), T.alloc_fragment((kept,), "float32")
            T.copy(A, a)
            T.copy(S, s)
            T.reduce_sum(a, s, dim=dim, clear=False)
            T.reduce_max(a, h, dim=dim)
            T.copy(s, S)
            T.copy(h, H)

    a = np.random.default_rng(0).integers(-99, 99, (10, columns)).astype("float32")
    s, h = np.full(kept, 3, "float32"), np.zeros(kept, "float32")
    tile.compile(main, target="cpu")(a, s, h)
    np.testing.assert_array_equal(s, a.sum(dim) + 3)
    np.testing.assert_array_equal(h, a.max(dim))


def test_special_values_survive_arithmetic() -> None:
    @T.prim_func
    def main(A: T.Tensor((32,), "float32"), C: T.Tensor((5, 32), "float32")):
        with T.Kernel(1) as _:
            for i in T.Parallel(32):
                x = A[i]
                C[0, i] = x - x
                C[1, i] = x * 0.0
                C[2, i] = (x + 1e30) - 1e30
                C[3, i] = T.if_then_else(x != x, 1.0, 0.0)
                C[4, i] = T.max(x, 0.5)

    a = np.zeros(32, "float32")
    a[:6] = [np.nan, np.inf, -np.inf, 1.5, -0.0, 3e38]
    c = np.full((5, 32), 7, "float32")
    tile.compile(main, target="cpu")(a, c)
    with np.errstate(all="ignore"):
        big = np.float32(1e30)
        rows = [a - a, a * np.float32(0), (a + big) - big, (a != a).astype("float32")]
        np.testing.assert_array_equal(c, [*rows, np.fmax(a, np.float32(0.5))])


@pytest.mark.parametrize("columns", [128, 131])
def test_a_named_index_is_as_good_as_the_index(columns: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((4, columns), "float32"), C: T.Tensor((4, columns), "float32")):
        with T.Kernel(4) as row:
            for k in T.serial(T.ceildiv(columns, 64)):
                for j in T.Parallel(64):
                    at = k * 64 + j
                    after = at + 1
                    C[row, at] = A[row, at] * 2 + A[row, after]

    a = np.random.default_rng(0).integers(-9, 10, (4, columns)).astype("float32")
    c = np.full_like(a, 77)
    kernel = tile.compile(main, target="cpu:x86-64-v3")
    kernel(a, c)
    np.testing.assert_array_equal(c, a * 2 + np.pad(a, ((0, 0), (0, 1)))[:, 1:])
    assert "float32x8" in kernel.ir("lowered")


def test_what_a_name_in_the_loop_stands_for_is_not_known_before_the_loop() -> None:
    @T.prim_func
    def main(A: T.Tensor((5, 4, 8), "float32"), C: T.Tensor((5, 32), "float32")):
        with T.Kernel(5) as bx:
            for i, j in T.Parallel(4, 8):
                m = bx * 8 + i
                C[bx, i * 8 + j] = A[m // 4, m * m % 4 - 1, j]

    a = np.random.default_rng(0).integers(-9, 10, (5, 4, 8)).astype("float32")
    c = np.full((5, 32), 77, "float32")
    tile.compile(main, target="cpu")(a, c)
    m = np.arange(5)[:, None] * 8 + np.arange(4)
    row = m * m % 4 - 1
    inside = (m // 4 < 5) & (row >= 0)
    wanted = np.where(inside[..., None], a[np.minimum(m // 4, 4), row], 0)
    np.testing.assert_array_equal(c, wanted.reshape(5, 32))


@pytest.mark.parametrize("target", ["cpu", "cpu:x86-64-v3"])
def test_bfloat16_keeps_subnormal_numbers(target: str) -> None:
    torch = pytest.importorskip("torch")

    @T.prim_func
    def main(A: T.Tensor((512,), "bfloat16"), C: T.Tensor((2, 512), "bfloat16")):
        with T.Kernel(1):
            for i in T.Parallel(512):
                x = A[i]
                C[0, i] = x
                C[1, i] = -x * 0.5

    bits = np.arange(512, dtype=np.int16)  # up to 0x80 they are subnormal
    bits[-2:] = 0x7FC0, 0x7F80  # beside NaN and inf
    a, c = torch.from_numpy(bits).view(torch.bfloat16), torch.zeros((2, 512), dtype=torch.bfloat16)
    tile.compile(main, target=target)(a, c)
    exact = bits.view(ml_dtypes.bfloat16)
    got = c.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
    np.testing.assert_array_equal(got[0].view(np.int16), bits)
    halved = (exact.astype(np.float64) * -0.5).astype(ml_dtypes.bfloat16)
    numbers = ~np.isnan(exact.astype(np.float32))
    np.testing.assert_array_equal(got[1].view(np.int16)[numbers], halved.view(np.int16)[numbers])
    assert np.isnan(got[1].astype(np.float32)[~numbers]).all()


def test_factors_of_products_are_rounded_in_one_instruction() -> None:
    @T.prim_func
    def main(
        A: T.Tensor((64, 64), "float32"),
        B: T.Tensor((64, 64), "bfloat16"),
        C: T.Tensor((64, 64), "float32"),
    ):
        with T.Kernel(1):
            a, b = T.alloc_fragment((64, 64), "bfloat16"), T.alloc_shared((64, 64), "bfloat16")
            c = T.alloc_fragment((64, 64), "float32")
            T.copy(B, b)
            for i, j in T.Parallel(64, 64):
                a[i, j] = T.exp(A[i, j])
            T.clear(c)
            T.gemm(a, b, c)
            T.copy(c, C)

    text = tile.compile(main, target="cpu:znver4").ir("lowered")
    assert "tile_narrow_bf16" in text
    assert "tile_round_bf16" not in text


def test_a_test_before_a_loop_compares_what_memory_gives_in_its_own_type() -> None:
    """``n - e - 1`` may wrap; its sides cannot, so nothing is computed in 64 bits."""
    n = T.dynamic("n")

    @T.prim_func
    def main(
        A: T.Tensor((n,), "float32"), S: T.Tensor((9,), "int32"), C: T.Tensor((64,), "float32")
    ):
        with T.Kernel(1):
            acc = T.alloc_fragment((64,), "float32")
            T.clear(acc)
            for e in T.serial(S[0], S[1]):
                for j in T.Parallel(64):
                    acc[j] += A[e]
            T.copy(acc, C)

    text = lowered(main)
    assert "n > e" in text
    assert "T.int64(-1)" not in text


@pytest.mark.parametrize("positive", [0, 1])
def test_branches_that_all_lanes_take_are_vectorised_with_both_ways(positive: int) -> None:
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), C: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1):
            for i in T.Parallel(64):
                if n > 0:
                    C[i] = A[i] + 1
                else:
                    C[i] = A[i] * 2
            for i in T.Parallel(64):
                if n > 0:
                    C[i] = C[i] + 3

    kernel = tile.compile(main, target="cpu:x86-64-v3")
    assert kernel.ir("lowered").count("float32x8") > 2
    a, c = np.arange(64, dtype=np.float32), np.zeros(64, np.float32)
    kernel(a, c, positive)
    np.testing.assert_array_equal(c, a + 4 if positive else a * 2)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("first", [0, 16, 5])
@pytest.mark.parametrize("size", [64, 48, 20, 7])
def test_quotients_are_the_same_within_a_vector_where_they_divide_evenly(
    size: int, first: int
) -> None:
    rows = 3

    @T.prim_func
    def main(
        A: T.Tensor((rows, 2, size), "float32"), B: T.Tensor((rows * size,), "float32"),
        C: T.Tensor((rows, 2, size), "float32"), total: T.Tensor((1,), "float32"),
    ):  # fmt: skip
        with T.Kernel(1) as _:
            s = T.alloc_fragment((1, rows * size - first), "float32")
            t = T.alloc_fragment((1,), "float32")
            for j in T.Parallel(rows * size - first):
                s[0, j] = A[(j + first) // size, 1, (j + first) % size]
            T.reduce_sum(s, t, dim=1)
            T.copy(t, total)
            for j in T.Parallel(rows * size - first):
                C[(j + first) // size, 0, (j + first) % size] = 2 * B[j + first]

    a = np.arange(rows * 2 * size, dtype="float32").reshape(rows, 2, size)
    b = np.arange(rows * size, dtype="float32")
    c, total = np.zeros_like(a), np.zeros(1, "float32")
    if size % 16 == first % 16 == 0:
        text = lowered(main)
        assert "gather" not in text
        assert 'float32", 1' not in text
    tile.compile(main, target="cpu")(a, b, c, total)
    np.testing.assert_array_equal(c[:, 0].ravel()[first:], 2 * b[first:])
    assert not c[:, 1].any()
    assert not c[:, 0].ravel()[:first].any()
    assert total[0] == a[:, 1].ravel()[first:].sum(dtype="float64")
