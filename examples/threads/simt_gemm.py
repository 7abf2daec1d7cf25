"""C = A @ B without tile operators: every thread computes 4 x 4 numbers in registers.

A (M, K), B (K, N), C (M, N) float32; 16 x 16 threads stage tiles of 64 x 16 and 16 x 64.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(64, 64, 32), (70, 100, 45)]


@tilelang.jit(out_idx=[-1])
def simt_matmul(M, N, K, side=16, each=4):
    """Multiply thread by thread, with a barrier before and after each use of shared memory."""
    block = side * each

    @T.prim_func
    def main(
        A: T.Tensor((M, K), "float32"),
        B: T.Tensor((K, N), "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=(side, side)) as (bx, by):
            tx, ty = T.get_thread_binding(0), T.get_thread_binding(1)
            A_shared = T.alloc_shared((block, side), "float32")
            B_shared = T.alloc_shared((side, block), "float32")
            acc = T.alloc_local((each, each), "float32")
            a = T.alloc_local((each,), "float32")
            b = T.alloc_local((each,), "float32")
            T.clear(acc)
            for k in T.serial(T.ceildiv(K, side)):
                for r in T.serial(each):
                    A_shared[ty + r * side, tx] = A[by * block + ty + r * side, k * side + tx]
                    B_shared[ty, tx + r * side] = B[k * side + ty, bx * block + tx + r * side]
                T.sync_threads()
                for kk in T.serial(side):
                    for r in T.unroll(each):
                        a[r] = A_shared[ty * each + r, kk]
                        b[r] = B_shared[kk, tx * each + r]
                    for i, j in T.grid(each, each):
                        acc[i, j] += a[i] * b[j]
                T.sync_threads()
            for i, j in T.grid(each, each):
                C[by * block + ty * each + i, bx * block + tx * each + j] = acc[i, j]

    return main


def check(M, N, K):
    """Compare one size with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (M, K)).astype("float32")
    b = rng.integers(-3, 4, (K, N)).astype("float32")
    np.testing.assert_array_equal(simt_matmul(M, N, K)(a, b), a @ b)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMM thread by thread: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
