"""Warnings are told once per line of the user, however often passes copy it."""

from __future__ import annotations

import warnings

import tile_api as tile
import tile_api.language as T
from tile_core.errors import Span, TileWarning
from tile_core.remarks import warn, warning_once


def told(run) -> list[tuple[str, str, int]]:
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        run()
    return [(str(w.message), w.filename.rsplit("/", 1)[-1], w.lineno) for w in found]


def test_once_per_line_and_words():
    def run():
        with warning_once():
            for line in (3, 3, 4):
                for words in ("slow", "slow", "large"):
                    warn(words, Span("kernel.py", line, 0, 1), pass_name="p")
            warn("slow", None, pass_name="p")
            warn("slow", None, pass_name="p")

    found = told(run)
    assert [f for f in found if f[1] == "kernel.py"] == [
        ("slow", "kernel.py", 3), ("large", "kernel.py", 3),
        ("slow", "kernel.py", 4), ("large", "kernel.py", 4),
    ]  # fmt: skip
    assert found[4:] == [("slow", "test_warn_once.py", found[4][2])]


def test_another_compilation_tells_again():
    def run():
        for _ in range(2):
            with warning_once():
                warn("slow", Span("kernel.py", 3, 0, 1), pass_name="p")
        warn("slow", Span("kernel.py", 3, 0, 1), pass_name="p")

    assert told(run) == [("slow", "kernel.py", 3)] * 3


def test_a_product_in_a_pipelined_loop_is_told_of_once():
    @T.prim_func
    def kernel(
        A: T.Tensor((80, 96), "float16"),
        B: T.Tensor((96, 80), "float16"),
        C: T.Tensor((80, 80), "float32"),
    ):
        with T.Kernel(1, threads=96):
            a = T.alloc_shared((80, 32), "float16")
            b = T.alloc_shared((32, 80), "float16")
            c = T.alloc_fragment((80, 80), "float32")
            T.clear(c)
            for k in T.Pipelined(3, num_stages=3):
                T.copy(A[:, k * 32 : k * 32 + 32], a)
                T.copy(B[k * 32 : k * 32 + 32, :], b)
                T.gemm(a, b, c)
            T.copy(c, C)

    found = told(lambda: tile.lower(kernel, target="cuda:sm_80"))
    assert [w[:2] for w in found] == [
        (
            "3 warps cannot partition a matrix product of 80 x 80 with policy Square: it has 5 x "
            "10 pieces "
            "of 16 x 8, and no grid of warps divides them; it is computed without matrix "
            "instructions (use threads=32 or 64 or 160, or a tile with more divisors)",
            "test_warn_once.py",
        )
    ]
    assert issubclass(TileWarning, UserWarning)
