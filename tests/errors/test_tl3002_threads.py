# ruff: noqa: E501 - messages are compared as they are printed
"""TL3002: loops and operators whose tiles are spread over threads differently."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import LayoutConflict

MISTAKES = [
    Mistake(
        "two tiles that annotations spread differently",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=64):
                a = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                d = T.alloc_fragment((64, 64), "float32")
                T.annotate_layout({
                    c: T.Fragment((64, 64), lambda i, j: (i, j)),
                    d: T.Fragment((64, 64), lambda i, j: (j, i)),
                })
                T.copy(A, c)
                T.copy(A, d)
                for i, j in T.Parallel(64, 64):
                    O[i, j] = c[i, j] + d[i, j]

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3002] T.Parallel cannot touch 'd' together with its other tiles: they are spread over the threads differently
          --> program.py:14:33
           |
        14 |             O[i, j] = c[i, j] + d[i, j]
           |                                 ^^^^^^^
        note: T.annotate_layout fixed 'd' as Fragment((64, 64), lambda i, j: (j, i))
         --> program.py:7:9
          |
        7 |         T.annotate_layout({
          |         ^^^^^^^^^^^^^^^^^^^
        note: element (0, 1) is needed by thread 0, but it is in register 0 of thread 1
        note: the iterations follow 'c', which T.annotate_layout fixed
         --> program.py:7:9
          |
        7 |         T.annotate_layout({
          |         ^^^^^^^^^^^^^^^^^^^
        hint: T.copy 'd' to a second fragment first, which exchanges elements among the threads, or to a T.alloc_shared tile
        """,
        whole=True,
    ),
    Mistake(
        "one element outside of a parallel loop",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64, 64), "float16"), O: T.Tensor((1,), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.copy(A, a)
                T.gemm(a, a, c, clear_accum=True)
                O[0] = c[3, 5]

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3002] 'c' is spread over the threads and cannot be accessed outside of T.Parallel: no thread holds all of it
         --> program.py:8:9
          |
        8 |         O[0] = c[3, 5]
          |         ^^^^
        note: gemm fixed Fragment((64, 64), lambda i, j: (j // 32 * 64 + i // 32 * 32 + i % 8 * 4 + j // 2 % 4, i // 16 % 2 * 16 + j // 8 % 4 * 4 + i // 8 % 2 * 2 + j % 2))
         --> program.py:7:9
          |
        7 |         T.gemm(a, a, c, clear_accum=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: access it in a T.Parallel loop, reduce it with T.reduce_sum or T.reduce_max, or copy it to a T.alloc_shared tile first
        """,
        whole=True,
    ),
    Mistake(
        "an annotation against a product",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64, 64), "float16"), O: T.Tensor((64, 64), "float32")):
            with T.Kernel(1, threads=128):
                a = T.alloc_shared((64, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.annotate_layout({c: T.Fragment((64, 64), lambda i, j: (i * 2 + j // 32, j % 32))})
                T.copy(A, a)
                T.gemm(a, a, c, clear_accum=True)
                T.copy(c, O)

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3002] the registers of 'c' cannot be spread as both T.annotate_layout and gemm demand
         --> program.py:8:9
          |
        8 |         T.gemm(a, a, c, clear_accum=True)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: T.annotate_layout fixed Fragment((64, 64), lambda i, j: (i * 2 + j // 32, j % 32))
         --> program.py:6:9
          |
        6 |         T.annotate_layout({c: T.Fragment((64, 64), lambda i, j: (i * 2 + j // 32, j % 32))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: element (0, 2) would be in register 2 of thread 0 for T.annotate_layout and in register 0 of thread 1 for gemm
        hint: remove the annotation, or copy the tile to a second fragment for that operator
        """,
        whole=True,
    ),
    Mistake(
        "a sequential loop along what threads share out",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16, 32), "float32"), O: T.Tensor((16,), "float32")):
            with T.Kernel(1, threads=32):
                x = T.alloc_fragment((16, 32), "float32")
                T.annotate_layout({x: T.Fragment((16, 32), lambda i, j: (j, i))})
                T.copy(A, x)
                for i in T.Parallel(16):
                    for k in T.serial(32):
                        O[i] += x[i, k]

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3002] T.Parallel cannot walk through 'x', which is spread over the threads
         --> program.py:9:25
          |
        9 |                 O[i] += x[i, k]
          |                         ^^^^^^^
        note: T.annotate_layout fixed 'x' as Fragment((16, 32), lambda i, j: (j, i))
         --> program.py:5:9
          |
        5 |         T.annotate_layout({x: T.Fragment((16, 32), lambda i, j: (j, i))})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: element (0, 1) is needed by thread 0, but it is in register 0 of thread 1
        note: a sequential loop or an index known only at run time would need elements of other threads
        hint: T.copy 'x' to a second fragment first, which exchanges elements among the threads, or to a T.alloc_shared tile
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    error = mistake.error()
    assert type(error) is LayoutConflict
    assert str(error) == mistake.expected
