"""TL6505: threads that share a tile operation mean different places."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import UndefinedOperation

HINT = (
    "all threads share one tile operation: go through the places in a loop over T.Parallel, or "
    "copy to T.alloc_local, which each thread has for itself"
)

MISTAKES = [
    Mistake(
        "a row for each thread, into shared memory",
        """
        tx = T.get_thread_binding()
        T.copy(A[tx % 12, 4:8], S[0, 4:8])
        """,
        """
        [TL6505] 'tx', used in a tile operation, must be the same for all threads, and is 0 and 1
         --> program.py:7:9
          |
        7 |         T.copy(A[tx % 12, 4:8], S[0, 4:8])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "a row for each thread, from a fragment, by a name and beside what is common",
        """
        tx = T.get_thread_binding()
        row: T.int32 = tx // 64 + n * 2
        T.copy(F[0, :], A[row - 1, :])
        """,
        """
        [TL6505] 'row', used in a tile operation, must be the same for all threads, and \
differs between threads 0 and 64
         --> program.py:8:9
          |
        8 |         T.copy(F[0, :], A[row - 1, :])
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "places of the threads that a condition lets through",
        """
        tx = T.get_thread_binding()
        if tx // 32 == 2 and n > 0:
            T.fill(S[tx - 64 : tx - 60, :], 0)
        """,
        """
        [TL6505] 'tx', used in a tile operation, must be the same for all threads, and is 64 and 65
         --> program.py:8:13
          |
        8 |             T.fill(S[tx - 64 : tx - 60, :], 0)
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "places of the threads that a condition leaves over",
        """
        tx = T.get_thread_binding()
        if tx < 126:
            T.copy(A[0, :], S[0, :])
        else:
            T.reduce_sum(S[tx % 2 : tx % 2 + 4, :], F[0, :], dim=0)
        """,
        """
        [TL6505] 'tx', used in a tile operation, must be the same for all threads, and \
is 126 and 127
          --> program.py:10:13
           |
        10 |             T.reduce_sum(S[tx % 2 : tx % 2 + 4, :], F[0, :], dim=0)
           |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "factors that differ inside of a range of threads",
        """
        tx = T.get_thread_binding()
        G = T.alloc_fragment((16, 16), "float32")
        with T.ws(0):
            T.gemm(S[tx // 64 * 4 : tx // 64 * 4 + 8, 0:8], S[0:8, :], G[0:8, :])
        """,
        """
        [TL6505] 'tx', used in a tile operation, must be the same for all threads, and is 0 and 64
         --> program.py:9:13
          |
        9 |             T.gemm(S[tx // 64 * 4 : tx // 64 * 4 + 8, 0:8], S[0:8, :], G[0:8, :])
          |             ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "the first round of a loop that begins elsewhere in each thread",
        """
        tx = T.get_thread_binding()
        for i in range(tx, 16, 128):
            T.copy(A[i, :], S[i, :])
        """,
        """
        [TL6505] 'i', used in a tile operation, must be the same for all threads, and is 0 and 1
         --> program.py:8:13
          |
        8 |             T.copy(A[i, :], S[i, :])
          |             ^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "a value of each thread's for a tile of all",
        """
        tx = T.get_thread_binding()
        T.fill(S, tx)
        """,
        """
        [TL6505] 'tx', used in a tile operation, must be the same for all threads, and is 0 and 1
         --> program.py:7:9
          |
        7 |         T.fill(S, tx)
          |         ^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "a row for each thread in a loop that they share out",
        """
        tx = T.get_thread_binding()
        for i, j in T.Parallel(4, 8):
            A[tx // 64 + i, j] = i
        """,
        """
        [TL6505] 'tx', used in a tile operation, must be the same for all threads, and is 0 and 64
         --> program.py:8:13
          |
        8 |             A[tx // 64 + i, j] = i
          |             ^^^^^^^^^^^^^^^^^^
        """,
    ),
    Mistake(
        "a name of each thread's in a loop that they share out, and in one inside",
        """
        row = T.get_thread_binding() % 4
        for i in T.Parallel(8):
            for k in T.serial(n):
                if A[k, i] > A[row + n, i]:
                    A[k, i] = 0
        """,
        """
        [TL6505] 'row', used in a tile operation, must be the same for all threads, and is 0 and 1
         --> program.py:9:17
          |
        9 |                 if A[k, i] > A[row + n, i]:
          |                 ^^^^^^^^^^^^^^^^^^^^^^^^^^^
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is UndefinedOperation
    assert str(error) == f"{mistake.expected}\nhint: {HINT}"
