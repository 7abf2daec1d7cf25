# ruff: noqa: E501 - messages are compared as they are printed
"""What is told of signals between ranks that are missing or misplaced, and of ranks that are not."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake

MISTAKES = [
    Mistake(
        "a put that is not waited for",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                T.copy(B, row)
                T.copy(row, A.at(after))
                T.signal(F.at(after)[0])
                T.copy(A, row)
        a, b = (np.ones((2, 8), "float32") for _ in range(2))
        tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
        """,
        """
        [TL6503] block 0 of rank 1 writes A[0, 0], which was read by block 0 of rank 0 without a signal in between
         --> program.py:7:9
          |
        7 |         T.copy(row, A.at(after))
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        note: read here
         --> program.py:9:9
          |
        9 |         T.copy(A, row)
          |         ^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: signal behind the one, and wait in front of the other: T.signal(F.at(p)[i]), T.wait_signal(F[i])
        """,
        whole=True,
    ),
    Mistake(
        "a signal above the put",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                T.copy(B, row)
                T.signal(F.at(after)[0])
                T.copy(row, A.at(after))
                T.wait_signal(F[0])
                T.copy(A, row)
        a, b = (np.ones((2, 8), "float32") for _ in range(2))
        tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
        """,
        """
        [TL6503] block 0 of rank 1 reads A[1, 0], which was written by block 0 of rank 0 without a signal in between
          --> program.py:10:9
           |
        10 |         T.copy(A, row)
           |         ^^^^^^^^^^^^^^
        note: written here
         --> program.py:8:9
          |
        8 |         T.copy(row, A.at(after))
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: signal behind the one, and wait in front of the other: T.signal(F.at(p)[i]), T.wait_signal(F[i])
        """,
        whole=True,
    ),
    Mistake(
        "more signals expected than come",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                T.signal(F.at(after)[0])
                T.wait_signal(F[0], 2)
        a, b = (np.ones((2, 8), "float32") for _ in range(2))
        tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
        """,
        """
        [TL6504] block 0 of rank 0 waits for ever: F[0] of rank 0 must be at least 2, and is 1
         --> program.py:7:9
          |
        7 |         T.wait_signal(F[0], 2)
          |         ^^^^^^^^^^^^^^^^^^^^^^
        note: block 0 of rank 1 waits here: F[0] of rank 1 must be at least 2, and is 1
         --> program.py:7:9
          |
        7 |         T.wait_signal(F[0], 2)
          |         ^^^^^^^^^^^^^^^^^^^^^^
        note: F is raised here
         --> program.py:6:9
          |
        6 |         T.signal(F.at(after)[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: count the signals that each flag gets, and signal before waiting for others
        """,
        whole=True,
    ),
    Mistake(
        "a flag that there is not",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                T.signal(F.at(after)[T.ranks()])
        a, b = (np.ones((2, 8), "float32") for _ in range(2))
        tile.compile(tile.ranks_as_blocks(kernel), target="interpret")(a, b)
        """,
        """
        [TL6501] there is no flag F[2] of rank 1: there are 2 ranks, and 2 flags on each
         --> program.py:6:9
          |
        6 |         T.signal(F.at(after)[T.ranks()])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: F is declared here
         --> program.py:2:75
          |
        2 | def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
          |                                                                           ^^^^^^^^^^^^^^^^^^
        hint: declare more flags, or take the rank modulo T.ranks()
        """,
        whole=True,
    ),
    Mistake(
        "a wait for another rank's flag",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                T.wait_signal(F.at(after)[0])
        """,
        """
        [TL1002] a rank waits for its own flags, and this one of 'F' is another's
         --> program.py:6:9
          |
        6 |         T.wait_signal(F.at(after)[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: let the other rank signal: T.signal(F.at(p)[i]) there, T.wait_signal(F[i]) here
        """,
        whole=True,
    ),
    Mistake(
        "a signal of one thread",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                if T.get_thread_binding() == 0:
                    T.signal(F.at(after)[0])
        """,
        """
        [TL6505] the whole block signals and waits, and only some of its threads may come here
         --> program.py:7:13
          |
        7 |             T.signal(F.at(after)[0])
          |             ^^^^^^^^^^^^^^^^^^^^^^^^
        note: threads part here
         --> program.py:6:9
          |
        6 |         if T.get_thread_binding() == 0:
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: move it out of the branch, or let the branch depend on the block alone
        """,
        whole=True,
    ),
    Mistake(
        "a rank that the last rank has not",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                T.copy(B, row)
                T.copy(row, A.at(T.rank() + 1))
        """,
        """
        [TL2003] there is no rank rank + 1: ranks go from 0 to T.ranks() - 1
         --> program.py:7:9
          |
        7 |         T.copy(row, A.at(T.rank() + 1))
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: take it modulo the number of ranks: (T.rank() + 1) % T.ranks()
        """,
        whole=True,
    ),
    Mistake(
        "a flag as a number",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                if F[0] > 0:
                    T.clear(row)
        """,
        """
        [TL1003] 'F' holds signals, which are not read as numbers
         --> program.py:6:9
          |
        6 |         if F[0] > 0:
          |         ^^^^^^^^^^^^
        note: F is declared here
         --> program.py:2:75
          |
        2 | def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
          |                                                                           ^^^^^^^^^^^^^^^^^^
        hint: use T.signal, T.wait_signal and T.barrier_ranks: a launch finds all flags 0
        """,
        whole=True,
    ),
    Mistake(
        "a tensor as a flag",
        """
        @T.prim_func
        def kernel(A: T.Symmetric((8,), "float32"), B: T.Tensor((8,), "float32"), F: T.Signals((2,))):
            with T.Kernel(1, threads=32):
                row = T.alloc_fragment((8,), "float32")
                after = (T.rank() + 1) % T.ranks()
                T.signal(A.at(after)[0])
        """,
        """
        [TL1003] T.signal takes one flag of a parameter of type T.Signals, got 'A'
         --> program.py:6:9
          |
        6 |         T.signal(A.at(after)[0])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^
        hint: declare F: T.Signals((n,)), and name one of them: F[i], or F.at(p)[i]
        """,
        whole=True,
    ),
    Mistake(
        "a signal outside of the kernel's blocks",
        """
        @T.prim_func
        def kernel(F: T.Signals((2,))):
            T.signal(F[0])
        """,
        """
        [TL1004] T.signal can only be used inside `with T.Kernel(...)`
         --> program.py:3:5
          |
        3 |     T.signal(F[0])
          |     ^^^^^^^^^^^^^^
        hint: move it into the body of the launch
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    assert str(mistake.error()) == mistake.expected
