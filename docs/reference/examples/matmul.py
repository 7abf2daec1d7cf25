"""Products of tiles."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def gemm():
    """`T.gemm` adds a product of tiles to a third; ``clear_accum`` overwrites it."""

    @tile.jit
    def scores(Q: T.Tensor((64, 32), "float16"), K: T.Tensor((64, 32), "float16")):
        S = T.empty((64, 64), "float32")
        with T.Kernel(1, threads=128):
            q = T.alloc_shared((64, 32), "float16")
            k = T.alloc_shared((64, 32), "float16")
            s = T.alloc_fragment((64, 64), "float32")
            T.copy(Q, q)
            T.copy(K, k)
            T.gemm(q, k, s, transpose_B=True, clear_accum=True)
            T.copy(s, S)
        return S

    q, k = np.random.default_rng(0).integers(-4, 5, (2, 64, 32)).astype("float16")
    assert (scores(q, k) == q.astype("float32") @ k.astype("float32").T).all()


def GemmWarpPolicy():
    """`T.GemmWarpPolicy` says how warps share the result: whole rows make reductions cheap."""

    @tile.jit
    def largest(A: T.Tensor((64, 32), "float16"), B: T.Tensor((32, 64), "float16")):
        C = T.empty((64,), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 32), "float16")
            b = T.alloc_shared((32, 64), "float16")
            c = T.alloc_fragment((64, 64), "float32")
            most = T.alloc_fragment((64,), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.clear(c)
            T.gemm(a, b, c, policy=T.GemmWarpPolicy.FullRow)
            T.reduce_max(c, most)
            T.copy(most, C)
        return C

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((64, 32), (32, 64)))
    assert (largest(a, b) == (a.astype("float32") @ b.astype("float32")).max(1)).all()


def wgmma_gemm():
    """`T.wgmma_gemm` begins a product and does not wait; `T.wait_wgmma` does."""

    @tile.jit
    def two_products(A: T.Tensor((64, 64), "float16"), B: T.Tensor((2, 64, 64), "float16")):
        C = T.empty((2, 64, 64), "float32")
        with T.Kernel(1, threads=128):
            a = T.alloc_shared((64, 64), "float16")
            b = T.alloc_shared((2, 64, 64), "float16")
            first = T.alloc_fragment((64, 64), "float32")
            second = T.alloc_fragment((64, 64), "float32")
            T.copy(A, a)
            T.copy(B, b)
            T.wgmma_gemm(a, b[0, :, :], first, clear_accum=True)
            T.wgmma_gemm(a, b[1, :, :], second, clear_accum=True)
            T.wait_wgmma(1)  # the first is there, the second still runs
            T.copy(first, C[0, :, :])
            T.wait_wgmma(0)
            T.copy(second, C[1, :, :])
        return C

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((64, 64), (2, 64, 64)))
    assert (two_products(a, b) == a.astype("float32") @ b.astype("float32")).all()


def dp4a():
    """`T.dp4a` adds the product of four 8-bit integers and four others."""

    @tile.jit
    def dots(A: T.Tensor((32, 16), "int8"), x: T.Tensor((16,), "int8")):
        y = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            row = T.get_thread_binding()
            total = T.alloc_local((1,), "int32")
            total[0] = 0
            for k in T.serial(4):
                T.dp4a(A[row, 4 * k], x[4 * k], total)
            y[row] = total[0]
        return y

    rng = np.random.default_rng(0)
    a, x = (rng.integers(-128, 128, shape).astype("int8") for shape in ((32, 16), (16,)))
    assert (dots(a, x) == a.astype("int32") @ x.astype("int32")).all()
