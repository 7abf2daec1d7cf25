"""C = A @ B on a few persistent blocks that ask a scheduler object for their next tile.

A (M, K), B (K, N), C (M, N) float32. The scheduler walks over the tiles in groups, so that
neighbouring blocks share what they load.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 64), (130, 200, 50)]


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block=32, workers=3):
    """Multiply on `workers` blocks."""

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(workers, threads=128) as worker:
            A_shared = T.alloc_shared((block, block), "float32")
            B_shared = T.alloc_shared((block, block), "float32")
            C_local = T.alloc_fragment((block, block), "float32")
            scheduler = T.PersistentTileScheduler(
                T.ceildiv(M, block), T.ceildiv(N, block), num_workers=workers, swizzle_size=2
            )
            scheduler.init(worker)
            while scheduler.valid():
                row, column = scheduler.m_idx * block, scheduler.n_idx * block
                T.clear(C_local)
                for k in T.Pipelined(T.ceildiv(K, block), num_stages=2):
                    T.copy(A[row, k * block], A_shared)
                    T.copy(B[k * block, column], B_shared)
                    T.gemm(A_shared, B_shared, C_local)
                T.copy(C_local, C[row, column])
                scheduler.next_tile()

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (M, K)).astype("float32")
    b = rng.integers(-3, 4, (K, N)).astype("float32")
    np.testing.assert_array_equal(matmul(M, N, K)(a, b), a @ b)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM with a tile scheduler: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
