"""Barriers and stages used as what they are not: code, line, reason and way out."""

from __future__ import annotations

import pytest

import tile_api as tile
import tile_api.language as T
from support.hopper_mistakes import mistake
from support.mistakes import Mistake
from tile_core.errors import UnsupportedOnTarget

MISTAKES = [
    mistake(
        "as many arrivals as no barrier counts",
        "q = T.alloc_barrier(1 << 20)",
        """
        [TL1002] a barrier counts up to 1048575 arrivals, got 1048576
         --> program.py:6:13
          |
        6 |         q = T.alloc_barrier(1 << 20)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the number of threads that arrive in each phase
        """,
    ),
    mistake(
        "arrivals known at run time",
        "q = T.alloc_barrier(n)",
        """
        [TL1002] the arrival count of a barrier must be a positive integer, got a int32 value
         --> program.py:6:13
          |
        6 |         q = T.alloc_barrier(n)
          |             ^^^^^^^^^^^^^^^^^^
        hint: write T.alloc_barrier(128), or T.alloc_barrier([128] * stages)
        """,
    ),
    mistake(
        "two barriers at once",
        "T.mbarrier_arrive(full[0:2])",
        """
        [TL1002] 'full' holds 2 barriers, and the barrier of T.mbarrier_arrive must be one of them
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(full[0:2])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: full is declared here
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write full[0] or full[k % 2]
        """,
    ),
    mistake(
        "a block that the cluster does not have",
        "T.mbarrier_arrive(full[0], 2)",
        """
        [TL1002] there is no block 2 in a cluster of 2
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(full[0], 2)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use ranks 0 to 1
        """,
        more=", cluster_dims=2",
    ),
    mistake(
        "another block without clusters",
        "T.mbarrier_arrive(full[0], 1)",
        """
        [TL1002] there is no block 1 in a cluster of 1
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(full[0], 1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write T.Kernel(..., cluster_dims=2)
        """,
    ),
    mistake(
        "a block with a negative number",
        "T.mbarrier_arrive(full[0], -1)",
        """
        [TL1002] the rank of a block must be at least 0, got -1
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(full[0], -1)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass 0 or more
        """,
        more=", cluster_dims=2",
    ),
    mistake(
        "more bytes than a barrier counts",
        "T.mbarrier_expect_tx(full[0], 1 << 20)",
        """
        [TL1002] a barrier counts up to 1048575 bytes in a phase, got 1048576
         --> program.py:6:9
          |
        6 |         T.mbarrier_expect_tx(full[0], 1 << 20)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: share the bytes out to several barriers
        """,
    ),
    mistake(
        "a barrier that is assigned to",
        "full[0] = 1",
        """
        [TL1003] 'full' holds barriers, which are not written as numbers
         --> program.py:6:9
          |
        6 |         full[0] = 1
          |         ^^^^^^^
        note: full is declared here
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.mbarrier_arrive and T.mbarrier_wait_parity; barriers are ready from the start
        """,
    ),
    mistake(
        "a barrier that is computed with",
        "S[0, 0] = full[0] + 1",
        """
        [TL1003] 'full' holds barriers, which are not read as numbers
         --> program.py:6:19
          |
        6 |         S[0, 0] = full[0] + 1
          |                   ^^^^^^^
        note: full is declared here
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.mbarrier_arrive and T.mbarrier_wait_parity; barriers are ready from the start
        """,
    ),
    mistake(
        "a barrier that is cleared",
        "T.clear(full)",
        """
        [TL1003] 'full' holds barriers, which are not written as numbers
         --> program.py:6:9
          |
        6 |         T.clear(full)
          |         ^^^^^^^^^^^^^
        note: full is declared here
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.mbarrier_arrive and T.mbarrier_wait_parity; barriers are ready from the start
        """,
    ),
    mistake(
        "a barrier that is printed",
        "T.print(full)",
        """
        [TL1003] 'full' holds barriers, which are not read as numbers
         --> program.py:6:9
          |
        6 |         T.print(full)
          |         ^^^^^^^^^^^^^
        note: full is declared here
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use T.mbarrier_arrive and T.mbarrier_wait_parity; barriers are ready from the start
        """,
    ),
    mistake(
        "a number that no barrier has",
        "T.sync_threads(16, 128)",
        """
        [TL1002] there is no barrier 16: they have numbers from 0 to 15
         --> program.py:6:9
          |
        6 |         T.sync_threads(16, 128)
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of these numbers, or T.alloc_barrier for more of them
        """,
    ),
    mistake(
        "half a warp at a barrier",
        "T.sync_threads(1, 100)",
        """
        [TL1002] 100 threads cannot meet at a barrier of a block of 256: whole warps do
         --> program.py:6:9
          |
        6 |         T.sync_threads(1, 100)
          |         ^^^^^^^^^^^^^^^^^^^^^^
        hint: give a multiple of 32, up to 256
        """,
    ),
    mistake(
        "more threads at a barrier than there are",
        "T.named_barrier_arrive(1, 512)",
        """
        [TL1002] 512 threads cannot meet at a barrier of a block of 256: whole warps do
         --> program.py:6:9
          |
        6 |         T.named_barrier_arrive(1, 512)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give a multiple of 32, up to 256
        """,
    ),
    mistake(
        "a negative number of a barrier",
        "T.sync_threads(-1)",
        """
        [TL1002] the number of a barrier must be at least 0, got -1
         --> program.py:6:9
          |
        6 |         T.sync_threads(-1)
          |         ^^^^^^^^^^^^^^^^^^
        hint: pass 0 or more
        """,
    ),
    mistake(
        "more tiles in flight than ever fit",
        """
        for k in T.Pipelined(4, num_stages=128):
            T.copy(A, S)
        """,
        """
        [TL1002] num_stages=128: no more than 64 tiles can be in flight
         --> program.py:6:18
          |
        6 |         for k in T.Pipelined(4, num_stages=128):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: 2 to 8 are usual; the iterations come first: T.Pipelined(iterations, num_stages=3)
        """,
    ),
    mistake(
        "a schedule of words",
        """
        for k in T.Pipelined(4, order="ab", stage=[0, 1]):
            T.copy(A, S)
        """,
        """
        [TL1003] the entries of order= are integers, got 'a'
         --> program.py:6:18
          |
        6 |         for k in T.Pipelined(4, order="ab", stage=[0, 1]):
          |                  ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give a number for each statement of the body, such as [0, 1]
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a", "cuda:sm_100a"])
def test_operators_of_gpus_take_barriers_and_targets_say_what_they_have(target: str) -> None:
    @T.prim_func
    def main(A: T.Tensor((64, 64), "float16"), C: T.Tensor((64, 64), "float32")):
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            bar = T.alloc_barrier(1)
            T.copy(A, a)
            T.gemm(a, a, c, mbar=bar)
            T.copy(c, C)

    with pytest.raises(UnsupportedOnTarget, match="tcgen05_gemm"):
        tile.lower(main, target=target)
