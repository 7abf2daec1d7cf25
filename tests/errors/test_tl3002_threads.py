# ruff: noqa: E501 - messages are compared as they are printed
"""TL3002: loops and operators whose tiles are spread over threads differently."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import drawn
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
    Mistake(
        "an element that one thread changes in a tile that each holds whole",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                tx = T.get_thread_binding()
                x = T.alloc_fragment((64,), "float32")
                T.copy(A, x)
                if tx == 3:
                    x[5] = 7
                T.copy(x, A)

        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL3002] 'x' is whole in each thread, and here threads change it apart, each its own copy
         --> program.py:8:13
          |
        8 |             x[5] = 7
          |             ^^^^
        note: it is read as one tile here
         --> program.py:9:9
          |
        9 |         T.copy(x, A)
          |         ^^^^^^^^^^^^
        hint: make it a T.alloc_shared tile, which threads share; or let a T.Parallel loop, which shares its elements out, write x; or use T.alloc_local for what each thread keeps for itself
        """,
        whole=True,
    ),
    Mistake(
        "elements of other threads in a tile that each holds whole",
        """
        @T.prim_func
        def kernel(A: T.Tensor((64,), "float32")):
            with T.Kernel(1, threads=64):
                tx = T.get_thread_binding()
                x = T.alloc_fragment((64,), "float32")
                x[tx] = A[tx]
                T.sync_threads()
                A[tx] = x[63 - tx]

        tile.compile(kernel, target="hip:gfx942@sim")
        """,
        """
        [TL3002] 'x' is whole in each thread, and here threads change it apart, each its own copy
         --> program.py:6:9
          |
        6 |         x[tx] = A[tx]
          |         ^^^^^
        note: it is read as one tile here
         --> program.py:8:17
          |
        8 |         A[tx] = x[63 - tx]
          |                 ^^^^^^^^^^
        hint: make it a T.alloc_shared tile, which threads share; or let a T.Parallel loop, which shares its elements out, write x; or use T.alloc_local for what each thread keeps for itself
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    error = mistake.error()
    assert type(error) is LayoutConflict
    assert str(error) == mistake.expected


def count_apart(how: str) -> Any:
    @T.prim_func
    def kernel(A: T.Tensor((64,), "float32"), n: T.int32):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            x = T.alloc_fragment((64, 2), "float32")
            T.clear(x)
            if how == "while":
                left = T.alloc_var("int32", init=0)
                left = tx
                while left > 0:
                    x[n, 0] = 1
                    left -= 1
            elif how == "for":
                for _ in T.serial(tx):
                    x[n, 0] = 1
            else:
                for k in T.serial(2):
                    x[tx, k] = k
            for i in T.Parallel(64):
                A[i] = x[i, 0]

    return kernel


@pytest.mark.parametrize("how", ["while", "for", "place"])
@pytest.mark.parametrize("target", ["cuda:sm_80", "cuda:sm_90a", "hip:gfx942"])
def test_threads_that_change_a_whole_tile_apart(target: str, how: str) -> None:
    with pytest.raises(LayoutConflict, match="'x' is whole in each thread, and here threads"):
        tile.lower(count_apart(how), target=target)


@T.prim_func
def own_elements(A: T.Tensor((64,), "int32"), n: T.int32, B: T.Tensor((64,), "int32")):
    with T.Kernel(1, threads=64):
        tx = T.get_thread_binding()
        x = T.alloc_fragment((64, 3), "int32")
        total = T.alloc_fragment((1,), "int32")
        T.clear(x)
        T.clear(total)
        at = tx
        for k in T.serial(3):
            x[63 - at, k] = A[tx] + k
        if n > 3:
            total[0] = n
        for k in T.serial(3):
            x[63 - tx, 0] += x[63 - tx, k]
        B[tx] = x[63 - at, 0] + total[0]


@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_80@sim", "hip:gfx942@sim"])
def test_threads_may_keep_elements_of_their_own_in_a_whole_tile(target: str) -> None:
    a, b = drawn(64, dtype="int32"), np.zeros(64, np.int32)
    tile.compile(own_elements, target=target)(a, 5, b)
    np.testing.assert_array_equal(b, 4 * a + 3 + 5)
