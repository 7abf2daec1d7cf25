"""What estimates look like, for kernels and machines that do not change."""

from __future__ import annotations

from collections.abc import Callable

import tile_api as tile
from support.gpu_kernels import gemm

Golden = Callable[..., None]


def test_gemm(golden: Golden) -> None:
    golden(str(tile.estimate(gemm(4096, 4096, 4096), "cuda:sm_80", machine="a100")))
