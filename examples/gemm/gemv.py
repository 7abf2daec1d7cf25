"""y = A @ x three ways: with tiles, with a cross-thread reduction, with warp shuffles.

A (N, K), x (K,), y (N,); float16 with float32 sums.
"""

import numpy as np

import tile_api as tilelang
import tile_api.language as T

SIZES = [(32, 128), (70, 300)]


@tilelang.jit(out_idx=[-1])
def gemv_tiles(N, K, block_N=64, block_K=64):
    """Multiply tiles of A by a strip of x, then add up each row."""

    @T.prim_func
    def main(
        A: T.Tensor((N, K), "float16"), x: T.Tensor((K,), "float16"), y: T.Tensor((N,), "float32")
    ):
        with T.Kernel(T.ceildiv(N, block_N), threads=128) as bn:
            A_shared = T.alloc_shared((block_N, block_K), "float16")
            x_shared = T.alloc_shared((block_K,), "float16")
            products = T.alloc_fragment((block_N, block_K), "float32")
            sums = T.alloc_fragment((block_N,), "float32")
            T.clear(products)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=2):
                T.copy(A[bn * block_N, k * block_K], A_shared)
                T.copy(x[k * block_K], x_shared)
                for i, j in T.Parallel(block_N, block_K):
                    products[i, j] += A_shared[i, j].astype("float32") * x_shared[j].astype(
                        "float32"
                    )
            T.reduce_sum(products, sums, dim=1)
            T.copy(sums, y[bn * block_N])

    return main


@tilelang.jit(out_idx=[-1])
def gemv_allreduce(N, K, rows=4, lanes=32, width=8):
    """Give each row to 32 threads, which read vectors and add up with one all-reduce."""

    @T.prim_func
    def main(
        A: T.Tensor((N, K), "float16"), x: T.Tensor((K,), "float16"), y: T.Tensor((N,), "float32")
    ):
        with T.Kernel(T.ceildiv(N, rows), threads=(lanes, rows)) as bn:
            lane = T.get_thread_binding(0)
            row = T.get_thread_binding(1)
            A_local = T.alloc_local((width,), "float16")
            x_local = T.alloc_local((width,), "float16")
            partial = T.alloc_local((1,), "float32")
            total = T.alloc_local((1,), "float32")
            T.clear(partial)
            for k in T.serial(T.ceildiv(K, lanes * width)):
                for v in T.vectorized(width):
                    A_local[v] = A[bn * rows + row, (k * lanes + lane) * width + v]
                    x_local[v] = x[(k * lanes + lane) * width + v]
                for v in T.serial(width):
                    partial[0] += A_local[v].astype("float32") * x_local[v].astype("float32")
            with T.attr(
                T.comm_reducer(lambda a, b: a + b, [T.float32(0)]),
                "reduce_scope",
                T.reinterpret(T.uint64(0), dtype="handle"),
            ):
                T.evaluate(
                    T.tvm_thread_allreduce(
                        T.uint32(1), partial[0], True, total[0], lane, dtype="handle"
                    )
                )
            if lane == 0:
                y[bn * rows + row] = total[0]

    return main


@tilelang.jit(out_idx=[-1])
def gemv_shuffles(N, K, rows=4):
    """Give each row to a warp, which adds up by halves with shuffles."""

    @T.prim_func
    def main(
        A: T.Tensor((N, K), "float16"), x: T.Tensor((K,), "float16"), y: T.Tensor((N,), "float32")
    ):
        with T.Kernel(T.ceildiv(N, rows), threads=32 * rows) as bn:
            lane = T.get_lane_idx()
            row = bn * rows + T.get_warp_idx()
            total = T.alloc_var("float32", init=0.0)
            for k in T.serial(T.ceildiv(K, 32)):
                at = k * 32 + lane
                total = total + A[row, at].astype("float32") * x[at].astype("float32")
            for half in T.unroll(5):
                total = total + T.shfl_xor(total, 16 >> half)
            if lane == 0:
                y[row] = total

    return main


def check(N, K):
    """Compare the three with NumPy."""
    rng = np.random.default_rng(0)
    a = rng.integers(-2, 3, (N, K)).astype("float16")
    x = rng.integers(-2, 3, K).astype("float16")
    expected = a.astype("float32") @ x.astype("float32")
    for gemv in (gemv_tiles, gemv_allreduce, gemv_shuffles):
        np.testing.assert_array_equal(gemv(N, K)(a, x), expected)


def main():
    """Check all sizes."""
    for size in SIZES:
        check(*size)
    print(f"GEMV with tiles, all-reduce and shuffles: {len(SIZES)} sizes agree with NumPy")


if __name__ == "__main__":
    main()
