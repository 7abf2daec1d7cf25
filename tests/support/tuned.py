"""A kernel that is tuned, for tests of what the autotuner says."""

from __future__ import annotations

import tile_api as tile
import tile_api.language as T


def tuned_double(configs, target="cpu", **options):
    """Return a function that doubles `n` elements; ``block=7`` fails in the user's own code."""

    @tile.autotune(configs=configs, **options)
    @tile.jit(out_idx=[-1], target=target)
    def double(n, block=64):
        if block == 7:
            raise KeyError("seven")

        @T.prim_func
        def main(A: T.Tensor((n,), "float32"), B: T.Tensor((n,), "float32")):
            with T.Kernel(n // block) as bx:
                for i in T.Parallel(block):
                    B[bx * block + i] = A[bx * block + i] * 2

        return main

    return double
