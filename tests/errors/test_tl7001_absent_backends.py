"""TL7001: targets that need a plugin which is not installed."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import BackendNotFound

MISTAKES = [
    Mistake(
        "a machine nobody knows",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, target="tpu")
        """,
        """
        [TL7001] no backend serves target 'tpu'; installed: cpu, cuda, hip, interpret, toy
         --> program.py:5:1
          |
        5 | tile.compile(kernel, target="tpu")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: did you mean 'cpu'?
        """,
        whole=True,
    ),
    Mistake(
        "an executor nobody has",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, target="cpu@emulator")
        """,
        """
        [TL7001] no backend serves target 'cpu@emulator'; installed: cpu, cuda, hip, interpret, toy
         --> program.py:5:1
          |
        5 | tile.compile(kernel, target="cpu@emulator")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: leave '@emulator' out: no executor runs code for cpu
        """,
        whole=True,
    ),
    Mistake(
        "an executor that is called otherwise",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, target="hip@simulator")
        """,
        """
        [TL7001] no backend serves target 'hip@simulator'; installed: cpu, cuda, hip, interpret, toy
         --> program.py:5:1
          |
        5 | tile.compile(kernel, target="hip@simulator")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: code for hip runs as 'hip@isa' or 'hip@sim'
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is BackendNotFound
    assert str(error) == mistake.expected
