"""Register tiles larger than shared memory: what threads exchange passes it in batches."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.layout import Fragment

TARGETS = ("cuda:sm_75@sim", "cuda:sm_89@sim", "hip:gfx942@sim")
SIZES = ((128, 256, 256), (127, 200, 128), (16, 300, 100))
"""Rows, columns and threads: 131 072, 101 600 and 19 200 bytes of float32."""
NINETY = 90 * 1024
"""Bytes of a tile that leaves little room for exchanges."""


def by_rows(rows, columns, threads):
    at = lambda i, j: i * columns + j  # noqa: E731
    return Fragment((rows, columns), lambda i, j: (at(i, j) % threads, at(i, j) // threads))


def by_columns(rows, columns, threads):
    at = lambda i, j: j * rows + i  # noqa: E731
    return Fragment((rows, columns), lambda i, j: (at(i, j) % threads, at(i, j) // threads))


def scattered(rows, columns, threads):
    """Rows whose lanes are no cube of bits: their parts meet in memory."""
    at = lambda i, j: i * columns + j  # noqa: E731
    return Fragment((rows, columns), lambda i, j: (at(i, j) * 7 % threads, at(i, j) // threads))


def conversion(rows, columns, threads):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((rows, columns), "float32")
            b = T.alloc_fragment((rows, columns), "float32")
            T.annotate_layout(
                {a: by_rows(rows, columns, threads), b: by_columns(rows, columns, threads)}
            )
            T.copy(A, a)
            T.copy(a, b)
            T.copy(b, B)

    return main, lambda a: a


def reduction(scope, dim):
    def made(rows, columns, threads):
        kept = columns if dim == 0 else rows

        @T.prim_func
        def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((kept,), "float32")):
            with T.Kernel(1, threads=threads):
                a = T.alloc_fragment((rows, columns), "float32")
                T.annotate_layout({a: scattered(rows, columns, threads)})
                T.copy(A, a)
                if scope == "fragment":
                    b = T.alloc_fragment((kept,), "float32")
                else:
                    b = T.alloc_shared((kept,), "float32")
                T.fill(b, 3)
                T.reduce_sum(a, b, dim=dim, clear=False)
                T.copy(b, B)

        return main, lambda a: a.sum(dim) + 3

    return made


def scan(rows, columns, threads):
    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), B: T.Tensor((rows, columns), "float32")):
        with T.Kernel(1, threads=threads):
            a = T.alloc_fragment((rows, columns), "float32")
            T.copy(A, a)
            T.cumsum(a, dim=1, reverse=True)
            T.copy(a, B)

    return main, lambda a: np.flip(np.flip(a, 1).cumsum(1), 1)


MAKERS = {
    "conversion": conversion,
    "reduction of rows": reduction("fragment", 1),
    "reduction of columns": reduction("fragment", 0),
    "reduction to shared memory": reduction("shared", 1),
    "scan": scan,
}


IN_TURN = [
    pytest.param(what, size, TARGETS[(first + second) % 3], id=f"{what}-{size}")
    for first, what in enumerate(MAKERS)
    for second, size in enumerate(SIZES)
]
"""Each exchange meets each target and each size, and each size each target."""


@pytest.mark.in_turn(8)
@pytest.mark.filterwarnings("ignore:'b' is whole in each thread")
@pytest.mark.parametrize(("what", "size", "target"), IN_TURN)
def test_tiles_pass_shared_memory_in_batches(what, size, target):
    program, meaning = MAKERS[what](*size)
    given = np.random.default_rng(0).integers(-9, 9, size[:2]).astype("float32")
    wanted = meaning(given)
    found = np.full(wanted.shape, np.nan, "float32")
    tile.compile(program, target=target)(given, found)
    np.testing.assert_array_equal(found, wanted)


@pytest.mark.parametrize("target", ["cuda:sm_89@sim", "cuda:sm_90a@sim"])
def test_batches_leave_the_kernels_tiles_alone(target):
    """A tile that lives beside the exchange keeps its place and its elements."""
    rows, columns = 64, 64

    @T.prim_func
    def main(A: T.Tensor((rows, columns), "float32"), K: T.Tensor((NINETY,), "uint8"),
             B: T.Tensor((rows, columns), "float32"), L: T.Tensor((NINETY,), "uint8")):  # fmt: skip
        with T.Kernel(1, threads=128):
            kept = T.alloc_shared((NINETY,), "uint8")
            a = T.alloc_fragment((rows, columns), "float32")
            b = T.alloc_fragment((rows, columns), "float32")
            T.annotate_layout({a: by_rows(rows, columns, 128), b: by_columns(rows, columns, 128)})
            T.copy(K, kept)
            T.copy(A, a)
            T.copy(a, b)
            T.copy(b, B)
            T.copy(kept, L)

    rng = np.random.default_rng(0)
    given = rng.integers(-9, 9, (rows, columns)).astype("float32")
    bytes_ = rng.integers(0, 256, NINETY).astype("uint8")
    found, left = np.full_like(given, np.nan), np.zeros_like(bytes_)
    tile.compile(main, target=target)(given, bytes_, found, left)
    np.testing.assert_array_equal(found, given)
    np.testing.assert_array_equal(left, bytes_)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("columns", [37, 48, 64])
@pytest.mark.parametrize("target", TARGETS)
def test_each_thread_has_a_part_of_a_reducer(target, columns):
    """The parts of all threads are more than a block's memory; they need not pass it."""

    @T.prim_func
    def main(A: T.Tensor((2, 7, columns), "float32"), B: T.Tensor((7, columns), "float32")):
        with T.Kernel(1, threads=128):
            parts = T.alloc_reducer((7, columns), "float32", op="max")
            total = T.alloc_fragment((7, columns), "float32")
            T.reducer_init(parts, 5)
            for i, j, k in T.Parallel(2, 7, columns):
                T.reducer_update(parts[j, k], A[i, j, k])
            T.finalize_reducer(parts, total)
            T.copy(total, B)

    given = np.random.default_rng(0).integers(-99, 99, (2, 7, columns)).astype("float32")
    found = np.full((7, columns), np.nan, "float32")
    tile.compile(main, target=target)(given, found)
    np.testing.assert_array_equal(found, np.maximum(given.max(0), 5))
