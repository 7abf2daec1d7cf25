"""Guards, safe values, strides, views, packed elements, pointers and atomics in compiled code."""

from __future__ import annotations

import ml_dtypes
import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T


@pytest.mark.parametrize("shape", [(33, 70), (32, 64), (1, 1), (16, 65)])
def test_dynamic_edges_are_guarded(shape: tuple[int, int]) -> None:
    M, N = T.dynamic("M"), T.dynamic("N")

    @T.prim_func
    def main(A: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, 64), T.ceildiv(M, 16)) as (bx, by):
            for i, j in T.Parallel(16, 64):
                C[by * 16 + i, bx * 64 + j] = A[by * 16 + i, bx * 64 + j] * 3

    kernel = tile.compile(main, target="cpu")
    a = np.arange(shape[0] * shape[1], dtype="float32").reshape(shape)
    room = np.full((shape[0] + 2, shape[1]), -1, "float32")
    kernel(a, room[1:-1])
    np.testing.assert_array_equal(room[1:-1], a * 3)
    assert (room[[0, -1]] == -1).all()


def test_outside_gives_the_safe_value() -> None:
    @T.prim_func
    def main(A: T.Tensor((10,), "float32"), C: T.Tensor((2, 32), "float32")):
        with T.Kernel(1) as _:
            T.annotate_safe_value({A: 5.0})
            s = T.alloc_shared((32,), "float32")
            T.copy(A[0:32], s)
            T.copy(s, C[0, :])
            for i in T.Parallel(32):
                C[1, i] = A[i - 4]

    a = np.arange(10, dtype="float32") + 1
    c = np.full((2, 32), np.nan, "float32")
    tile.compile(main, target="cpu")(a, c)
    np.testing.assert_array_equal(c[0], [*a, *[5.0] * 22])
    np.testing.assert_array_equal(c[1], [*[5.0] * 4, *a, *[5.0] * 18])


def test_strided_tensors() -> None:
    M, S = T.dynamic("M"), T.dynamic("S")

    @T.prim_func
    def main(A: T.StridedTensor((M, 24), (S, 1), "float32"), C: T.Tensor((M, 24), "float32")):
        with T.Kernel(M) as bx:
            for j in T.Parallel(24):
                C[bx, j] = A[bx, j] + 1

    base = np.arange(6 * 40, dtype="float32").reshape(6, 40)
    c = np.full((6, 24), np.nan, "float32")
    tile.compile(main, target="cpu")(base[:, 3:27], c)
    np.testing.assert_array_equal(c, base[:, 3:27] + 1)


def test_views_of_another_type_share_their_bits() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "float32"), C: T.Tensor((4, 16), "int16")):
        with T.Kernel(1) as _:
            s = T.alloc_shared((4, 8), "float32")
            halves = T.view(s, (4, 16), dtype="int16")
            T.copy(A, s)
            for i in T.serial(4):
                halves[i, 0] = 7
            T.copy(halves, C)

    a = np.random.default_rng(0).standard_normal((4, 8)).astype("float32")
    c = np.zeros((4, 16), "int16")
    tile.compile(main, target="cpu")(a, c)
    wanted = a.view("int16").copy()
    wanted[:, 0] = 7
    np.testing.assert_array_equal(c, wanted)


def test_reshapes_alias() -> None:
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), C: T.Tensor((2, 16), "int32")):
        with T.Kernel(1) as _:
            s = T.alloc_shared((4, 8), "int32")
            T.copy(A, s)
            T.copy(T.reshape(s, (2, 16)), C)

    a = np.arange(32, dtype="int32").reshape(4, 8)
    c = np.zeros((2, 16), "int32")
    tile.compile(main, target="cpu")(a, c)
    np.testing.assert_array_equal(c, a.reshape(2, 16))


@pytest.mark.parametrize("name", ["int4", "uint4", "float4_e2m1fn"])
def test_four_bit_tensors_are_packed(name: str) -> None:
    @T.prim_func
    def main(
        A: T.Tensor((4, 16), name), C: T.Tensor((4, 16), "float32"), B: T.Tensor((4, 16), name)
    ):
        with T.Kernel(4) as bx:
            for j in T.Parallel(16):
                C[bx, j] = A[bx, j]
            for j in T.serial(16):
                B[bx, 15 - j] = A[bx, j]

    kernel = tile.compile(main, target="cpu")
    packed = np.random.default_rng(0).integers(0, 256, (4, 8)).astype("uint8")
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(4, 16)
    if name == "int4":
        values = ((nibbles.astype("int8") ^ 8) - 8).astype("float32")
    else:
        values = nibbles.astype("float32")
        if name.startswith("float"):
            values = nibbles.view(ml_dtypes.float4_e2m1fn).astype("float32")
    c, b = np.full((4, 16), np.nan, "float32"), np.zeros((4, 8), "uint8")
    kernel(packed.view("int8"), c, b.view("int8"))
    np.testing.assert_array_equal(c, values)
    flipped = nibbles[:, ::-1]
    np.testing.assert_array_equal(b, flipped[:, 0::2] | (flipped[:, 1::2] << 4))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "bfloat16", "int32", "uint64"])
def test_atomics_from_many_blocks(dtype: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 8), dtype), total: T.Tensor((8,), dtype), top: T.Tensor((8,), dtype)):
        with T.Kernel(64, threads=1) as bx:
            for j in T.serial(8):
                T.atomic_add(total[j], A[bx, j])
                T.atomic_max(top[j], A[bx, j])

    kind = np.dtype(ml_dtypes.bfloat16) if dtype == "bfloat16" else np.dtype(dtype)
    a = (np.arange(512).reshape(64, 8) % 4).astype(kind)
    total, top = np.zeros(8, kind), np.zeros(8, kind)
    tile.compile(main, target="cpu")(a, total, top)
    np.testing.assert_array_equal(total.astype(float), a.astype(float).sum(0))
    np.testing.assert_array_equal(top.astype(float), a.astype(float).max(0))


def test_atomics_return_the_previous_value_and_skip_what_is_outside() -> None:
    @T.prim_func
    def main(C: T.Tensor((4,), "int32"), tickets: T.Tensor((64,), "int32")):
        with T.Kernel(64, threads=1) as bx:
            tickets[bx] = T.atomic_add(C[0], 1, return_prev=True)
            T.atomic_add(C[bx + 4], 1)

    c, tickets = np.zeros(4, "int32"), np.full(64, -1, "int32")
    tile.compile(main, target="cpu")(c, tickets)
    assert sorted(tickets.tolist()) == list(range(64))
    assert c.tolist() == [64, 0, 0, 0]


def test_offsets_beyond_32_bits_are_computed_exactly() -> None:
    N = T.dynamic("N")

    @T.prim_func
    def main(A: T.Tensor((N, 65536), "int8"), C: T.Tensor((16,), "int8")):
        with T.Kernel(1) as _:
            for j in T.serial(16):
                C[j] = A[N - 1, 65520 + j]

    rows = 2**31 // 65536 + 2
    a = np.lib.stride_tricks.as_strided(np.zeros(1, "int8"), (rows, 65536), (0, 0))
    text = tile.compile(main, target="cpu").ir("lowered")
    assert "int64(65536)" in text or 'Cast("int64"' in text
    assert a.shape == (rows, 65536)
