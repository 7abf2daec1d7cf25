# ruff: noqa: E501 - messages are compared as they are printed
"""TL4005: the tiles of one block do not fit the memory the machine offers them."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import OutOfScratch

MISTAKES = [
    Mistake(
        "tiles larger than memory",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                big = T.alloc_shared((65536, 65536), "float32")
                small = T.alloc_fragment((64, 64), "float32")
                T.clear(big)
                T.clear(small)
        tile.compile(kernel, target="cpu")
        """,
        """
        [TL4005] the tiles of one block take 16 GiB, and a block on the CPU has 1 GiB
         --> program.py:4:15
          |
        4 |         big = T.alloc_shared((65536, 65536), "float32")
          |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: big takes 16 GiB
         --> program.py:4:15
          |
        4 |         big = T.alloc_shared((65536, 65536), "float32")
          |               ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: small takes 16 KiB
         --> program.py:5:17
          |
        5 |         small = T.alloc_fragment((64, 64), "float32")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: choose smaller tiles and loop over them, or a narrower element type; T.alloc_global makes a workspace of any size
        """,
        whole=True,
    ),
    Mistake(
        "a fragment larger than registers",
        """
        @T.prim_func
        def kernel(A: T.Tensor((4096, 4096), "float32")):
            with T.Kernel(1, threads=128):
                tile_ = T.alloc_fragment((4096, 4096), "float32")
                T.copy(A, tile_)
                T.copy(tile_, A)
        tile.lower(kernel, target="cuda:sm_80")
        """,
        """
        [TL4005] the fragment tile_ takes 131072 registers of each of 128 threads, and a thread of sm_80 has 255
         --> program.py:4:17
          |
        4 |         tile_ = T.alloc_fragment((4096, 4096), "float32")
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: choose a smaller tile and loop over it, or more threads: T.Kernel(..., threads=...); T.alloc_shared tiles are kept once for all threads
        """,
        whole=True,
    ),
    Mistake(
        "one round larger than shared memory",
        """
        @T.prim_func
        def kernel(A: T.Tensor((256, 2048), "float16"), B: T.Tensor((2048, 128), "float16"), C: T.Tensor((256, 128), "float32")):
            with T.Kernel(1, threads=128):
                A_shared = T.alloc_shared((256, 256), "float16")
                B_shared = T.alloc_shared((256, 128), "float16")
                C_local = T.alloc_fragment((256, 128), "float32")
                T.clear(C_local)
                for k in T.Pipelined(8, num_stages=3):
                    T.copy(A[0, k * 256], A_shared)
                    T.copy(B[k * 256, 0], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C)
        tile.compile(kernel, target="cuda:sm_80@sim")
        """,
        """
        [TL4005] a block needs 196608 bytes of shared memory, and sm_80 gives it 166912
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, threads=128):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: A_shared[256, 256] of float16 takes 131072 bytes
         --> program.py:4:20
          |
        4 |         A_shared = T.alloc_shared((256, 256), "float16")
          |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: B_shared[256, 128] of float16 takes 65536 bytes
         --> program.py:5:20
          |
        5 |         B_shared = T.alloc_shared((256, 128), "float16")
          |                    ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use smaller tiles or a narrower element type
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is OutOfScratch
    assert str(error) == mistake.expected
