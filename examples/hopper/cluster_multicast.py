"""C = A @ B in clusters of two blocks that share each tile of B: one of them fetches it for both.

A (M, K), B (K, N) float16, C (M, N) float32; K and N are multiples of 8, M fills whole clusters.
A slot of the circular buffer is free for the next tile of B once the consumers of both blocks have
left it, so they arrive at the `empty` barriers of both.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(256, 128, 192), (512, 200, 328)]


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M=128, block_N=128, block_K=64, stages=3):
    """Multiply; the blocks of a cluster stand one below the other."""
    steps = T.ceildiv(K, block_K)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.ClusterKernel(
            T.ceildiv(M, block_M), T.ceildiv(N, block_N), cluster_dims=2, threads=256
        ) as (by, bx):
            A_shared = T.alloc_shared((stages, block_M, block_K), "float16")
            B_shared = T.alloc_shared((stages, block_K, block_N), "float16")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_cluster_barrier([2 * 128] * stages)

            with T.ws(1):
                T.dec_max_nreg(40)
                for k in T.serial(steps):
                    slot, phase = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(empty[slot], phase ^ 1)
                    T.tma_copy(
                        A[by * block_M, k * block_K], A_shared[slot, :, :], barrier=full[slot]
                    )
                    T.tma_copy(
                        B[k * block_K, bx * block_N],
                        B_shared[slot, :, :],
                        barrier=full[slot],
                        cluster_mask=0b11,
                    )
                    T.mbarrier_arrive(full[slot])

            with T.ws(0):
                T.inc_max_nreg(232)
                C_local = T.alloc_fragment((block_M, block_N), "float32")
                T.clear(C_local)
                for k in T.serial(steps):
                    slot, phase = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(full[slot], phase)
                    T.gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                    T.mbarrier_arrive(empty[slot], 0)
                    T.mbarrier_arrive(empty[slot], 1)
                T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    b = rng.integers(-2, 3, (K, N)).astype("float16")
    c = matmul(M, N, K)(a, b)
    np.testing.assert_array_equal(c, a.astype("float32") @ b.astype("float32"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM with tiles shared by clusters: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
