"""Layouts of tiles on the CPU: what is followed, what is left out, what is told."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import UnsupportedOnTarget
from tile_cpu.lowering.buffer_addresses import row_strides

N = 32


def _product(annotate: Any) -> Any:
    """Return a kernel for ``A @ (2 B + A)`` whose tiles `annotate` may lay out."""

    @T.prim_func
    def main(
        A: T.Tensor((N, N), "float32"),
        B: T.Tensor((N, N), "float32"),
        C: T.Tensor((N, N), "float32"),
    ):
        with T.Kernel(1, threads=32):
            left = T.alloc_shared((N, N), "float32")
            right = T.alloc_shared((N, N), "float32")
            total = T.alloc_fragment((N, N), "float32")
            annotate(left, right)
            T.copy(A, left)
            for i, j in T.Parallel(N, N):
                right[i, j] = B[i, j] * 2 + left[i, j]
            T.clear(total)
            T.gemm(left, right, total)
            T.copy(total, C)

    return main


def _run(kernel: Any) -> None:
    rng = np.random.default_rng(0)
    a, b = (rng.integers(-3, 4, (N, N)).astype("float32") for _ in "ab")
    c = np.full((N, N), np.nan, "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, a @ (2 * b + a))


def test_padded_rows_are_followed_in_every_operator() -> None:
    def annotate(left: Any, right: Any) -> None:
        T.annotate_layout(
            {
                left: T.Layout((N, N), lambda i, j: (i * 48 + j,)),
                right: T.Layout((N, N), lambda i, j: (i * 40 + j,)),
            }
        )

    kernel = tile.compile(_product(annotate), target="cpu")
    report = kernel.layouts()
    assert report["left"].layout.affine() == (0, (48, 1))
    assert report["right"].layout.affine() == (0, (40, 1))
    reason = report["left"].reason
    assert reason.who == "T.annotate_layout"
    assert reason.span is not None
    assert reason.span.file == __file__
    _run(kernel)


def test_layouts_that_tear_rows_apart_are_left_out() -> None:
    def annotate(left: Any, right: Any) -> None:
        T.annotate_layout({left: lambda i, j: (j, i), right: lambda i, j: (i, j ^ (i % 8))})

    kernel = tile.compile(_product(annotate), target="cpu")
    assert "T.annotate_layout" not in str(kernel.layouts())
    _run(kernel)


def test_tiles_under_views_stay_as_they_are() -> None:
    @T.prim_func
    def main(A: T.Tensor((N, N), "float32"), B: T.Tensor((N * N,), "float32")):
        with T.Kernel(1, threads=32):
            square = T.alloc_shared((N, N), "float32")
            T.annotate_layout({square: T.Layout((N, N), lambda i, j: (i * 48 + j,))})
            line = T.reshape(square, (N * N,))
            T.copy(A, square)
            T.copy(line, B)

    kernel = tile.compile(main, target="cpu")
    a = np.arange(N * N, dtype="float32").reshape(N, N)
    b = np.zeros(N * N, "float32")
    kernel(a, b)
    np.testing.assert_array_equal(b, a.reshape(-1))


def test_a_picture_shows_addresses() -> None:
    kernel = tile.compile(_product(lambda left, right: None), target="cpu")
    lines = kernel.layouts()["total"].draw(2, 3).splitlines()
    assert lines[0].split()[:4] == ["|", "0", "1", "2"]
    assert lines[2].split()[:5] == ["0", "|", "0", "1", "2"]
    assert "total: float32" in kernel.layouts().draw()


def test_the_interpreter_has_none() -> None:
    kernel = tile.compile(_product(lambda left, right: None), target="interpret")
    with pytest.raises(UnsupportedOnTarget, match="have no layouts to show"):
        kernel.layouts()


@pytest.mark.parametrize(
    ("place", "strides"),
    [
        (lambda i, j: (i * 8 + j,), (8, 1)),
        (lambda i, j: (i * 12 + j,), (12, 1)),
        (lambda i, j: (i * 8 + j + 8,), None),
        (lambda i, j: (i + j * 4,), None),
        (lambda i, j: (i * 4 + j,), None),
        (lambda i, j: (i * 8 + (j ^ 1),), None),
    ],
    ids=["dense", "padded", "later", "columns", "overlapping", "swizzled"],
)
def test_rows_are_runs_of_elements(place: Any, strides: tuple[int, ...] | None) -> None:
    assert row_strides(T.Layout((4, 8), place)) == strides
