"""Ranges of threads and barriers in memory, used wrongly: code, line, reason and way out."""

from __future__ import annotations

import pytest

from support.hopper_mistakes import mistake
from support.mistakes import Mistake

MISTAKES = [
    mistake(
        "a group that the block does not have",
        """
        with T.ws(2):
            T.clear(S)
        """,
        """
        [TL1002] there is no warp group 2 in a block of 256 threads: a group has 128 threads
         --> program.py:6:14
          |
        6 |         with T.ws(2):
          |              ^^^^^^^
        hint: ask for threads=384 or more in T.Kernel
        """,
    ),
    mistake(
        "a group named twice",
        """
        with T.ws(0, 0):
            T.clear(S)
        """,
        """
        [TL1002] warp groups 0, 0 are not neighbours, each named once
         --> program.py:6:14
          |
        6 |         with T.ws(0, 0):
          |              ^^^^^^^^^^
        hint: give groups side by side, such as T.ws(1, 2), and others a part of their own
        """,
    ),
    mistake(
        "no group at all",
        """
        with T.ws():
            T.clear(S)
        """,
        """
        [TL1002] T.ws names no warp group
         --> program.py:6:14
          |
        6 |         with T.ws():
          |              ^^^^^^
        hint: write T.ws(0) or T.ws(1, 2)
        """,
    ),
    mistake(
        "a part that names nothing",
        """
        with T.ws:
            T.clear(S)
        """,
        """
        [TL1003] `with` cannot enter the function ws
         --> program.py:6:9
          |
        6 |         with T.ws:
          |         ^^^^^^^^^^
        hint: call it, as in `with T.ws(0):`
        """,
    ),
    mistake(
        "a part that is a number",
        """
        with 0:
            T.clear(S)
        """,
        """
        [TL1003] `with` cannot enter an object of type int
         --> program.py:6:9
          |
        6 |         with 0:
          |         ^^^^^^^
        hint: use T.Kernel(...) or T.ws(...)
        """,
    ),
    mistake(
        "a part inside of a part",
        """
        with T.ws(0):
            with T.ws(1):
                T.clear(S)
        """,
        """
        [TL1006] T.ws cannot stand inside of another T.ws: its threads are chosen already
         --> program.py:7:13
          |
        7 |             with T.ws(1):
          |             ^^^^^^^^^^^^^
        hint: write the parts one after the other: they run at the same time
        """,
    ),
    mistake(
        "a part inside of a loop over elements",
        """
        for i in T.Parallel(64):
            with T.ws(0):
                T.clear(S)
        """,
        """
        [TL1006] T.ws cannot stand in T.Parallel, whose elements all threads share out
         --> program.py:7:13
          |
        7 |             with T.ws(0):
          |             ^^^^^^^^^^^^^
        hint: put the loop into the part: with T.ws(0): for i in T.Parallel(...)
        """,
    ),
    mistake(
        "a number for a barrier",
        "T.mbarrier_arrive(3)",
        """
        [TL1003] the barrier of T.mbarrier_arrive must be a barrier, got 3
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(3)
          |         ^^^^^^^^^^^^^^^^^^^^
        hint: allocate it with bar = T.alloc_barrier(128), and pass bar or bar[i]
        """,
    ),
    mistake(
        "a tile for a barrier",
        "T.mbarrier_arrive(S[0, 0])",
        """
        [TL1003] the barrier of T.mbarrier_arrive must be a barrier, got 'S'
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(S[0, 0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: S is declared here
         --> program.py:4:13
          |
        4 |         S = T.alloc_shared((64, 64), "float16")
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: allocate it with bar = T.alloc_barrier(128), and pass bar or bar[i]
        """,
    ),
    mistake(
        "several barriers for one",
        "T.mbarrier_arrive(full)",
        """
        [TL1002] 'full' holds 2 barriers, and the barrier of T.mbarrier_arrive must be one of them
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(full)
          |         ^^^^^^^^^^^^^^^^^^^^^^^
        note: full is declared here
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write full[0] or full[k % 2]
        """,
    ),
    mistake(
        "a barrier that is not there",
        "T.mbarrier_arrive(full[2])",
        """
        [TL2003] 2 is outside dimension 0 of 'full', which has 2 elements
         --> program.py:6:27
          |
        6 |         T.mbarrier_arrive(full[2])
          |                           ^^^^^^^
        note: full is declared here
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: only global tensors are checked at run time; stay inside shared.barrier buffers
        """,
    ),
    mistake(
        "a parity of two",
        "T.mbarrier_wait_parity(full[0], 2)",
        """
        [TL1002] the parity of a phase is 0 or 1, not 2
         --> program.py:6:9
          |
        6 |         T.mbarrier_wait_parity(full[0], 2)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write parity % 2: phases of a barrier alternate between 0 and 1
        """,
    ),
    mistake(
        "a parity with a fraction",
        "T.mbarrier_wait_parity(full[0], 0.5 * n)",
        """
        [TL1003] the parity of a phase is an integer, got a float32 value
         --> program.py:6:9
          |
        6 |         T.mbarrier_wait_parity(full[0], 0.5 * n)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write k // stages % 2
        """,
    ),
    mistake(
        "too few registers",
        """
        with T.ws(0):
            T.set_max_nreg(20, True)
        """,
        """
        [TL1002] 20 registers: the number must be a multiple of 8 between 24 and 240
         --> program.py:7:13
          |
        7 |             T.set_max_nreg(20, True)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: round it to a multiple of 8
        """,
    ),
    mistake(
        "barriers on an older GPU",
        "T.mbarrier_arrive(full[0])",
        """
        [TL4001] no rule lowers 'barrier_init' on cuda:sm_80@sim
         --> program.py:5:16
          |
        5 |         full = T.alloc_barrier([128] * 2)
          |                ^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: simt.barrier_init: cuda:sm_80@sim has no barriers that count bytes
        hint: change the operands as the notes ask, or compile for another target
        """,
        target="cuda:sm_80@sim",
    ),
    mistake(
        "nobody arrives on a CPU",
        "T.mbarrier_wait_parity(full[0], 0)",
        """
        [TL6504] threads of a block wait for ever at barriers that nobody completes
         --> program.py:6:9
          |
        6 |         T.mbarrier_wait_parity(full[0], 0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: count arrivals and compare parities; target 'interpret' tells who waits for what
        """,
        target="cpu",
    ),
    mistake(
        "parts that wait for each other on a CPU",
        """
        with T.ws(0):
            T.mbarrier_wait_parity(full[1], 0)
        with T.ws(1):
            T.mbarrier_arrive(full[0])
            T.mbarrier_wait_parity(full[0], 1)
        """,
        """
        [TL6504] threads of a block wait for ever at barriers that nobody completes
         --> program.py:6:9
          |
        6 |         with T.ws(0):
          |         ^^^^^^^^^^^^^
        hint: count arrivals and compare parities; target 'interpret' tells who waits for what
        """,
        target="cpu",
    ),
    mistake(
        "a barrier beyond the last on a CPU",
        "T.mbarrier_arrive(full[n + 1])",
        """
        [TL6009] device assertion failed: there is no barrier of this number in full[2]
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(full[n + 1])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
        target="cpu",
    ),
    mistake(
        "nobody arrives",
        "T.mbarrier_wait_parity(full[0], 0)",
        """
        [TL6504] threads of block 0 wait for ever: nobody can go on
         --> program.py:6:9
          |
        6 |         T.mbarrier_wait_parity(full[0], 0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: 256 threads from 0 on wait here: phase 0 of full[0] lacks 128 of 128 arrivals
         --> program.py:6:9
          |
        6 |         T.mbarrier_wait_parity(full[0], 0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: count what arrives at each barrier, and compare parities: the first phase has 0
        """,
        target="interpret",
    ),
    mistake(
        "a barrier beyond the last",
        "T.mbarrier_arrive(full[n + 1])",
        """
        [TL6501] there is no barrier 2 in full[2]
         --> program.py:6:9
          |
        6 |         T.mbarrier_arrive(full[n + 1])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give T.alloc_barrier a count of arrivals for each barrier
        """,
        target="interpret",
    ),
    mistake(
        "parts that wait for each other",
        """
        with T.ws(0):
            T.mbarrier_arrive(full[0])
            T.mbarrier_wait_parity(full[1], 0)
        with T.ws(1):
            T.mbarrier_wait_parity(full[0], 0)
            T.tma_copy(A, S, barrier=full[1])
            T.mbarrier_wait_parity(full[0], 1)
        """,
        """
        [TL6504] threads of block 0 wait for ever: nobody can go on
         --> program.py:8:13
          |
        8 |             T.mbarrier_wait_parity(full[1], 0)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: 128 threads from 0 on wait here: phase 0 of full[1] lacks 128 of 128 arrivals
         --> program.py:8:13
          |
        8 |             T.mbarrier_wait_parity(full[1], 0)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: 128 threads from 128 on wait here: phase 1 of full[0] lacks 128 of 128 arrivals
          --> program.py:12:13
           |
        12 |             T.mbarrier_wait_parity(full[0], 1)
           |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: count what arrives at each barrier, and compare parities: the first phase has 0
        """,
        target="interpret",
    ),
    mistake(
        "bytes that never come",
        """
        with T.ws(0):
            T.mbarrier_arrive_expect_tx(full[0], 16)
        with T.ws(1):
            T.mbarrier_wait_parity(full[0], 0)
        """,
        """
        [TL6504] threads of block 0 wait for ever: 1 of 2 parts have finished
         --> program.py:9:13
          |
        9 |             T.mbarrier_wait_parity(full[0], 0)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: 128 threads from 128 on wait here: phase 0 of full[0] lacks 2048 bytes
         --> program.py:9:13
          |
        9 |             T.mbarrier_wait_parity(full[0], 0)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: count what arrives at each barrier, and compare parities: the first phase has 0
        """,
        target="interpret",
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected
