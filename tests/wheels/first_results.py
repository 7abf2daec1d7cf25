"""The first results of a new user, run by the Python of an environment that holds wheels alone."""

from __future__ import annotations

import subprocess
import sys
import time

import numpy as np

import tile_api as tile
import tile_api.language as T


@tile.function
def softmax(x):
    """Return the softmax of rows."""
    e = np.exp(x - x.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@tile.jit(out_idx=[-1])
def matmul(M, N, K, block=32):
    """Return a product of blocks."""

    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=128) as (bx, by):
            a = T.alloc_shared((block, block), "float32")
            b = T.alloc_shared((block, block), "float32")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                T.copy(A[by * block, k * block], a)
                T.copy(B[k * block, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])

    return gemm


def main() -> None:
    """Run an array function and a kernel, emulated too where that is installed; ask `doctor`."""
    start = time.monotonic()
    x = np.random.default_rng(0).standard_normal((70, 100)).astype("float32")
    np.testing.assert_allclose(softmax(x), softmax.func(x), rtol=1e-5)
    first = time.monotonic() - start
    targets = ["cpu", *sys.argv[1:]]
    for target in targets:
        product = tile.compile(matmul.get_tir(70, 70, 100), out_idx=[-1], target=target)
        np.testing.assert_allclose(product(x, x.T.copy()), x @ x.T, rtol=1e-4, atol=1e-4)
    assert "torch" not in sys.modules, "torch was loaded"
    told = subprocess.run(
        [sys.executable, "-m", "tile_api.cli", "doctor"], capture_output=True, text=True, check=True
    )
    assert "cpu" in told.stdout, told.stdout
    version = ".".join(map(str, sys.version_info[:2]))
    print(
        f"Python {version}, NumPy {np.__version__}: {first:.1f} s to the first result, "
        f"{time.monotonic() - start:.0f} s in all, on {', '.join(targets)}"
    )


if __name__ == "__main__":
    main()
