# ruff: noqa: E501 - messages are compared as they are printed
"""What can be wrong with a call of a GPU's kernel: code, parameter, reason and hint."""

from __future__ import annotations

import pytest

from support.mistakes import Mistake

COPY = """
@T.prim_func
def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
    with T.Kernel(1, threads=128):
        a = T.alloc_fragment((64, 64), "float16")
        T.copy(A, a)
        T.copy(a, B)
"""

MISTAKES = [
    Mistake(
        "a tensor of another rank",
        COPY
        + """tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros(64, "float16"), np.zeros((64, 64), "float16"))""",
        """
        [TL6004] kernel.A.ndim: expected 2 [64, 64], got 1 [64]
        note: the parameter is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: reshape it to 2 dimensions
        """,
        whole=True,
    ),
    Mistake(
        "a tensor of another extent",
        COPY
        + """tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros((64, 32), "float16"), np.zeros((64, 64), "float16"))""",
        """
        [TL6004] kernel.A.shape[1]: expected 64, got 32
        note: the parameter is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass a tensor of that extent; T.dynamic declares dimensions of any extent
        """,
        whole=True,
    ),
    Mistake(
        "a tensor of another element type",
        COPY
        + """tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros((64, 64), "float32"), np.zeros((64, 64), "float16"))""",
        """
        [TL6005] kernel.A.dtype: expected float16, got float32
        note: the parameter is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: convert it first: x.to(torch.float16), or x.astype('float16')
        """,
        whole=True,
    ),
    Mistake(
        "every second column",
        COPY
        + """tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros((64, 128), "float16")[:, ::2], np.zeros((64, 64), "float16"))""",
        """
        [TL6006] kernel.A.strides[0]: expected 64, got 128
        note: the parameter is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass x.contiguous() or numpy.ascontiguousarray(x), or declare the parameter as T.StridedTensor
        """,
        whole=True,
    ),
    Mistake(
        "elements that begin between vectors",
        COPY
        + """tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros(64 * 64 + 64, "float16")[1 : 64 * 64 + 1].reshape(64, 64), np.zeros((64, 64), "float16"))""",
        """
        [TL6006] kernel.A.data: expected an address that is a multiple of 16 bytes, got one that lies 2 behind
        note: the parameter is declared here
         --> program.py:2:12
          |
        2 | def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
          |            ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: pass x.clone() or numpy.copy(x): views may begin anywhere, tensors of their own are aligned
        """,
        whole=True,
    ),
    Mistake(
        "no tensor at all",
        COPY
        + """tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros((64, 64), "float16"), None)""",
        """
        [TL6001] kernel.B: expected a tensor, got None
        note: the parameter is declared here
         --> program.py:2:46
          |
        2 | def kernel(A: T.Tensor((64, 64), "float16"), B: T.Tensor((64, 64), "float16")):
          |                                              ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: None stands for tensors that the kernel never reads or writes
        """,
        whole=True,
    ),
    Mistake(
        "a grid that turns out too wide",
        """
        @T.prim_func
        def kernel(A: T.Tensor((T.dynamic("m"), 4), "float32")):
            with T.Kernel(1, A.shape[0], threads=128) as (bx, by):
                for i in T.Parallel(4):
                    A[by, i] = 0
        tile.compile(kernel, target="cuda:sm_80@sim")(np.zeros((70000, 4), "float32"))
        """,
        """
        [TL6001] 70000 blocks along y are more than sm_80 runs: 65535
         --> program.py:3:5
          |
        3 |     with T.Kernel(1, A.shape[0], threads=128) as (bx, by):
          |     ^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^^
        hint: give the longest extent first: T.Kernel(long, short)
        """,
        whole=True,
    ),
]


@pytest.mark.parametrize("mistake", MISTAKES, ids=str)
def test_message(mistake: Mistake) -> None:
    assert str(mistake.error()) == mistake.expected
