"""`T.gemm_sp`: products of tiles of which two in four elements are left out."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.dtypes import dtype_of
from tile_core.errors import DtypeMismatch, GemmShapeMismatch, ScopeMismatch, TileError

TARGETS = ("interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim")


def turned(array: np.ndarray, is_turned: bool) -> np.ndarray:
    return np.ascontiguousarray(array.T) if is_turned else array


def group_of(dtype: str) -> int:
    return 2 if dtype_of(dtype).bits == 32 else 4


def compressed(
    dense: np.ndarray, places: np.ndarray, group: int, meta: str
) -> tuple[np.ndarray, np.ndarray]:
    """Return the kept elements and the metadata of rows whose groups keep those at `places`."""
    rows, depth = dense.shape
    groups = dense.reshape(rows, depth // group, group)
    kept = np.take_along_axis(groups, places, axis=2).reshape(rows, depth // 2)
    if group == 4:
        codes = places[..., 0] | places[..., 1] << 2
    else:
        codes = np.where(places[..., 0] == 0, 0b0100, 0b1110)
    bits = dtype_of(meta).bits
    shifts = np.arange(bits // 4, dtype=np.uint64) * np.uint64(4)
    words = codes.astype(np.uint64).reshape(rows, -1, bits // 4) << shifts
    return kept, np.bitwise_or.reduce(words, axis=2).astype(f"u{meta.lstrip('u')}").view(meta)


def with_zeros(rows: int, depth: int, group: int) -> tuple[np.ndarray, np.ndarray]:
    """Return integers of which each group keeps half, and which."""
    rng = np.random.default_rng(depth)
    order = rng.permuted(np.tile(np.arange(group), (rows, depth // group, 1)), axis=2)
    places = np.sort(order[..., : group // 2], axis=2)
    dense = np.zeros((rows, depth // group, group), int)
    np.put_along_axis(dense, places, rng.integers(-4, 5, places.shape), axis=2)
    return dense.reshape(rows, depth), places


def product(
    shape: tuple[int, int, int],
    dtype: str,
    meta: str,
    accum: str,
    turns: tuple[bool, bool, bool] = (False, False, False),
    block: int = 0,
    in_registers: bool = False,
) -> Any:
    """Return a pipelined product whose first factor is compressed."""
    (M, N, K), (a, e, b) = shape, turns
    each, step = dtype_of(meta).bits // 4 * group_of(dtype), block or K

    def matrix(rows: int, columns: int, is_turned: bool) -> tuple[int, int]:
        return (columns, rows) if is_turned else (rows, columns)

    def at(column: Any, is_turned: bool) -> tuple[Any, Any]:
        return (column, 0) if is_turned else (0, column)

    @T.prim_func
    def kernel(
        A: T.Tensor(matrix(M, K // 2, a), dtype),
        E: T.Tensor(matrix(M, K // each, e), meta),
        B: T.Tensor(matrix(K, N, b), dtype),
        C: T.Tensor((M, N), accum),
    ):
        with T.Kernel(1, threads=64):
            A_s = T.alloc_shared(matrix(M, step // 2, a), dtype)
            A_l = T.alloc_fragment(matrix(M, step // 2, a), dtype)
            E_s = T.alloc_shared(matrix(M, step // each, e), meta)
            B_s = T.alloc_shared(matrix(step, N, b), dtype)
            C_l = T.alloc_fragment((M, N), accum)
            for k in T.Pipelined(K // step, num_stages=2):
                T.copy(A[at(k * (step // 2), a)], A_s)
                T.copy(E[at(k * (step // each), e)], E_s)
                T.copy(B[at(k * step, not b)], B_s)
                if in_registers:
                    T.copy(A_s, A_l)
                    T.gemm_sp(A_l, E_s, B_s, C_l, a, e, b, clear_accum=k == 0)
                else:
                    T.gemm_sp(A_s, E_s, B_s, C_l, a, e, b, clear_accum=k == 0)
            T.copy(C_l, C)

    return kernel


CASES: dict[str, tuple[Any, ...]] = {
    "halves": ((32, 16, 64), "float16", "int16", "float32", (False, False, True), 32),
    "turned": ((16, 16, 32), "float16", "int16", "float32", (True, True, False)),
    "metadata turned": ((16, 8, 64), "int8", "int32", "int32", (False, True, True)),
    "bytes of metadata": ((16, 8, 32), "int8", "uint8", "int32"),
    "one of two": ((16, 16, 32), "float32", "int16", "float32", (False,) * 3, 16),
    "registers": ((32, 16, 32), "float16", "int16", "float32", (False,) * 3, 0, True),
    "a prime number of rows": ((7, 5, 32), "float32", "int32", "float32"),
}


@pytest.mark.in_turn(7)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", CASES)
def test_it_is_the_product_with_the_zeros(name: str, target: str) -> None:
    (M, N, K), dtype, meta, accum, *more = CASES[name]
    a, e, b = more[0] if more else (False, False, False)
    group = group_of(dtype)
    dense, places = with_zeros(M, K, group)
    kept, words = compressed(dense, places, group, meta)
    factor = np.random.default_rng(1).integers(-4, 5, (K, N))
    result = np.full((M, N), 77, accum)
    tile.compile(product(*CASES[name]), target=target)(
        turned(kept.astype(dtype), a), turned(words, e), turned(factor.astype(dtype), b), result
    )
    np.testing.assert_array_equal(result, dense @ factor)


def refused(kind: type[TileError], body: Any) -> str:
    def kernel(A: T.Tensor((16, 16), "float16")):  # type: ignore[valid-type]
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((16, 16), "float16")
            b = T.alloc_shared((32, 8), "float16")
            e = T.alloc_shared((16, 2), "int16")
            c = T.alloc_fragment((16, 8), "float32")
            body(A, a, b, e, c)

    with pytest.raises(kind) as raised:
        T.prim_func(kernel).kernel
    return raised.value.message


def test_what_makes_no_sense_is_refused() -> None:
    assert refused(ScopeMismatch, lambda A, a, b, e, c: T.gemm_sp(A, e, b, c)) == (
        "A_sparse of T.gemm_sp must be a shared or fragment tile, but 'A' is in global memory"
    )
    assert refused(DtypeMismatch, lambda A, a, b, e, c: T.gemm_sp(a, a, b, c)) == (
        "the metadata of T.gemm_sp are integers, not float16"
    )
    assert refused(GemmShapeMismatch, lambda A, a, b, e, c: T.gemm_sp(a, e[:, 0:1], b, c)) == (
        "the metadata of T.gemm_sp describe 16 rows of 16 elements, and a[16, 16] is 16 rows of 32"
    )
    assert "T.gemm N shape check failed" in refused(
        GemmShapeMismatch, lambda A, a, b, e, c: T.gemm_sp(a, e, b[:, 0:4], c)
    )
