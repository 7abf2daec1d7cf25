"""C = op(A) @ op(B), where each operand may be stored transposed: NN, NT, TN and TT.

A is (M, K) or (K, M), B is (K, N) or (N, K), C is (M, N). Sides need not be multiples of the
block's: overhanging loads give zeros, overhanging stores do nothing.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [
    (False, False, 64, 64, 64),
    (False, True, 100, 72, 40),
    (True, False, 65, 33, 97),
    (True, True, 30, 130, 50),
]


@tilelang.jit(out_idx=[-1])
def matmul(trans_A, trans_B, M, N, K, block_M=64, block_N=64, block_K=32):
    """Multiply matrices in the given storage orders."""
    A_shape = (K, M) if trans_A else (M, K)
    B_shape = (N, K) if trans_B else (K, N)
    A_tile = (block_K, block_M) if trans_A else (block_M, block_K)
    B_tile = (block_N, block_K) if trans_B else (block_K, block_N)

    @T.prim_func
    def main(
        A: T.Tensor(A_shape, "float32"),
        B: T.Tensor(B_shape, "float32"),
        C: T.Tensor((M, N), "float32"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared(A_tile, "float32")
            B_shared = T.alloc_shared(B_tile, "float32")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                if trans_A:
                    T.copy(A[k * block_K, by * block_M], A_shared)
                else:
                    T.copy(A[by * block_M, k * block_K], A_shared)
                if trans_B:
                    T.copy(B[bx * block_N, k * block_K], B_shared)
                else:
                    T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local, trans_A, trans_B)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return main


def check(trans_A, trans_B, M, N, K):
    """Compare one combination with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-3, 4, (M, K)).astype("float32")
    b = rng.integers(-3, 4, (K, N)).astype("float32")
    kernel = matmul(trans_A, trans_B, M, N, K)
    stored_a = np.ascontiguousarray(a.T) if trans_A else a
    stored_b = np.ascontiguousarray(b.T) if trans_B else b
    np.testing.assert_array_equal(kernel(stored_a, stored_b), a @ b)


def main():
    """Check all combinations."""
    for size in SIZES:
        check(*size)
    print("GEMM with transposed operands: NN, NT, TN and TT agree with NumPy")


if __name__ == "__main__":
    main()
