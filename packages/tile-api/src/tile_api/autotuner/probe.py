"""The small kernel with which ``tile doctor`` tries targets."""

from __future__ import annotations

import tile_api.language as T

COUNT = 256
"""Elements of its tensors."""


@T.prim_func
def add_one(A: T.Tensor((COUNT,), "float32"), B: T.Tensor((COUNT,), "float32")) -> None:  # type: ignore[valid-type]
    """Write ``A + 1`` to `B`."""
    with T.Kernel(1, threads=64):
        for i in T.Parallel(COUNT):
            B[i] = A[i] + 1
