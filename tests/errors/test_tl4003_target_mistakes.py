# ruff: noqa: E501 - messages are compared as they are printed
"""TL4003: target strings that name no machine, where users write them."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake
from tile_core.errors import TargetError

MISTAKES = [
    Mistake(
        "a machine that does not exist",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, target="cpu:pentium")
        """,
        """
        [TL4003] no processor is called 'pentium'
         --> program.py:5:1
          |
        5 | tile.compile(kernel, target="cpu:pentium")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: use one of aarch64, alderlake, apple-m1, apple-m2, apple-m3, apple-m4, broadwell, cascadelake, cooperlake, cortex-a72, haswell, icelake-server, neoverse-n1, neoverse-n2, neoverse-v1, neoverse-v2, sapphirerapids, skylake, skylake-avx512, x86-64-v2, x86-64-v3, x86-64-v4, znver2, znver3, znver4, znver5, or 'cpu' for this machine
        """,
        whole=True,
    ),
    Mistake(
        "a number",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, target=90)
        """,
        """
        [TL4003] 90 is not a target
         --> program.py:5:1
          |
        5 | tile.compile(kernel, target=90)
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: spell it kind[:arch][@executor], such as 'cpu', 'cpu:haswell', 'cuda:sm_90a' or 'auto'
        """,
        whole=True,
    ),
    Mistake(
        "nothing",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.compile(kernel, target="")
        """,
        """
        [TL4003] '' is not a target
         --> program.py:5:1
          |
        5 | tile.compile(kernel, target="")
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: spell it kind[:arch][@executor], such as 'cpu', 'cpu:haswell', 'cuda:sm_90a' or 'auto'
        """,
        whole=True,
    ),
    Mistake(
        "a machine without a kind",
        """
        @T.prim_func
        def kernel(A: T.Tensor((16,), "float32")):
            with T.Kernel(1):
                A[0] = 1.0
        tile.lower(kernel, target={"arch": "sm_90"})
        """,
        """
        [TL4003] {'arch': 'sm_90'} names no kind of machine
         --> program.py:5:1
          |
        5 | tile.lower(kernel, target={"arch": "sm_90"})
          | ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: write {"kind": "cuda", …}
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake):
    error = mistake.error()
    assert type(error) is TargetError
    assert isinstance(error, ValueError)
    assert str(error) == mistake.expected
