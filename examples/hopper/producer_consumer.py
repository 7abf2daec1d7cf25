"""C = A @ B on Hopper GPUs by hand: a warp group copies, two multiply, barriers between them.

A (M, K), B (K, N), C (M, N) float16; K and N are multiples of 8. Tiles are in a circular buffer:
`full` says that a pair has arrived, `empty` that its slot may be filled again. The two groups hand
their product to the copy engine through shared memory.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(128, 128, 128), (200, 264, 456), (384, 256, 64)]


@tilelang.jit(out_idx=[-1])
def matmul(M, N, K, block_M=128, block_N=128, block_K=64, stages=3):
    """Multiply with a circular buffer of `stages` pairs of tiles."""
    steps = T.ceildiv(K, block_K)

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=384) as (bx, by):
            A_shared = T.alloc_shared((stages, block_M, block_K), "float16")
            B_shared = T.alloc_shared((stages, block_K, block_N), "float16")
            C_shared = T.alloc_shared((block_M, block_N), "float16")
            full = T.alloc_barrier([128] * stages)
            empty = T.alloc_barrier([256] * stages)

            with T.ws(2):
                T.dec_max_nreg(40)
                for k in T.serial(steps):
                    slot, phase = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(empty[slot], phase ^ 1)
                    T.tma_copy(
                        A[by * block_M, k * block_K], A_shared[slot, :, :], barrier=full[slot]
                    )
                    T.tma_copy(
                        B[k * block_K, bx * block_N], B_shared[slot, :, :], barrier=full[slot]
                    )
                    T.mbarrier_arrive(full[slot])

            with T.ws(0, 1):
                T.inc_max_nreg(232)
                C_local = T.alloc_fragment((block_M, block_N), "float32")
                T.clear(C_local)
                for k in T.serial(steps):
                    slot, phase = k % stages, k // stages % 2
                    T.mbarrier_wait_parity(full[slot], phase)
                    T.gemm(A_shared[slot, :, :], B_shared[slot, :, :], C_local)
                    T.mbarrier_arrive(empty[slot])
                T.copy(C_local, C_shared)
                T.tma_copy(C_shared, C[by * block_M, bx * block_N])
                T.tma_store_wait()

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (M, K)).astype("float16")
    b = rng.integers(-2, 3, (K, N)).astype("float16")
    c = matmul(M, N, K)(a, b)
    np.testing.assert_array_equal(c, (a.astype("float32") @ b.astype("float32")).astype("float16"))


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM with producers and consumers by hand: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
