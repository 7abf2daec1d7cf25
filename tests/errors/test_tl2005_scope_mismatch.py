"""TL2005: an operand lives in a memory scope the operator cannot use."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import ScopeMismatch

MISTAKES = [
    Mistake(
        "a matrix product of tensors",
        """
        T.gemm(A, A, F)
        """,
        """
        [TL2005] A of T.gemm must be a shared or fragment tile, but 'A' is in global memory
         --> program.py:6:9
          |
        6 |         T.gemm(A, A, F)
          |         ^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy it into a tile made with T.alloc_shared first
        """,
    ),
    Mistake(
        "a matrix product into a tensor",
        """
        T.gemm(S, S, A)
        """,
        """
        [TL2005] C of T.gemm must be a shared or fragment tile, but 'A' is in global memory
         --> program.py:6:9
          |
        6 |         T.gemm(S, S, A)
          |         ^^^^^^^^^^^^^^^
        note: A is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((16, 16), "float32"), n: T.int32):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: copy it into a tile made with T.alloc_shared first
        """,
    ),
    Mistake(
        "an atomic addition to a fragment",
        """
        T.atomic_add(F[0, 0], 1.0)
        """,
        """
        [TL2005] T.atomic_add updates memory that threads share, but 'F' is in local.fragment memory
         --> program.py:6:9
          |
        6 |         T.atomic_add(F[0, 0], 1.0)
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: update a global or shared buffer; nothing else needs to be atomic
        """,
    ),
    Mistake(
        "an asynchronous copy back",
        """
        T.async_copy(S, A)
        """,
        """
        [TL2005] an asynchronous copy goes from global to shared memory, not from shared to global
         --> program.py:6:9
          |
        6 |         T.async_copy(S, A)
          |         ^^^^^^^^^^^^^^^^^^
        hint: use T.copy
        """,
    ),
    Mistake(
        "a safe value of a tile",
        """
        T.annotate_safe_value({S: 0.0})
        """,
        """
        [TL2005] only global tensors have a safe value; 'S' is in shared memory
         --> program.py:6:9
          |
        6 |         T.annotate_safe_value({S: 0.0})
          |         ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: reads outside other buffers are errors
        """,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is ScopeMismatch
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
