"""Persistent GEMM: C = A @ B, where a few blocks each walk over many tiles of C.

A (M, K), B (K, N), C (M, N), float16 with float32 sums. Two spellings of the same schedule:
the loop by hand and `T.Persistent`, which also groups tiles for locality.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(128, 128, 64, False), (200, 150, 80, False), (200, 150, 80, True)]


@tilelang.jit(out_idx=[-1])
def matmul_persistent(
    M, N, K, use_primitive, block_M=64, block_N=64, block_K=32, workers=4, threads=128, num_stages=3
):
    """Multiply on `workers` blocks."""
    m_tiles, n_tiles = T.ceildiv(M, block_M), T.ceildiv(N, block_N)
    waves = T.ceildiv(m_tiles * n_tiles, workers)
    dtype = "float16"

    @T.macro
    def one_tile(A, B, C, A_shared, B_shared, C_local, by, bx):
        T.clear(C_local)
        for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=num_stages):
            T.copy(A[by * block_M, k * block_K], A_shared)
            T.copy(B[k * block_K, bx * block_N], B_shared)
            T.gemm(A_shared, B_shared, C_local)
        T.copy(C_local, C[by * block_M, bx * block_N])

    @T.prim_func
    def main(A: T.Tensor((M, K), dtype), B: T.Tensor((K, N), dtype), C: T.Tensor((M, N), dtype)):
        with T.Kernel(workers, threads=threads) as worker:
            A_shared = T.alloc_shared((block_M, block_K), dtype)
            B_shared = T.alloc_shared((block_K, block_N), dtype)
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            if use_primitive:
                for by, bx in T.Persistent([m_tiles, n_tiles], workers, worker, group_size=2):
                    one_tile(A, B, C, A_shared, B_shared, C_local, by, bx)
            else:
                for wave in T.serial(waves):
                    tile = wave * workers + worker
                    if tile < m_tiles * n_tiles:
                        by = tile // n_tiles
                        bx = tile % n_tiles
                        one_tile(A, B, C, A_shared, B_shared, C_local, by, bx)

    return main


def check(M, N, K, use_primitive, **tiles):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    b = rng.integers(-2, 3, (K, N)).astype("float16")
    c = matmul_persistent(M, N, K, use_primitive, **tiles)(a, b)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"persistent GEMM: {len(SIZES)} sizes and spellings agree with NumPy")


if __name__ == "__main__":
    main()
