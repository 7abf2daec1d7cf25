"""Instructions of NVIDIA GPUs by name."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def ptx_cp_async():
    """`T.ptx_cp_async` copies 4, 8 or 16 bytes by one thread, which does not wait.

    Runs on: cuda:sm_80, cuda:sm_90a.
    """

    @tile.jit
    def transposed(A: T.Tensor((32, 32), "float32")):
        B = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            a = T.alloc_shared((32, 36), "float32")
            for i in T.unroll(8):
                T.ptx_cp_async(T.access_ptr(a[tx, 4 * i], "w"), T.access_ptr(A[tx, 4 * i], "r"), 4)
            T.ptx_commit_group()
            T.ptx_wait_group(0)
            T.sync_threads()
            for i in T.serial(32):
                B[i, tx] = a[tx, i]
        return B

    a = np.arange(1024, dtype="float32").reshape(32, 32)
    assert (transposed(a) == a.T).all()


def ptx_mma():
    """`T.ptx_mma` multiplies by one warp, `T.ptx_ldmatrix` loads its operands.

    Runs on: cuda:sm_80, cuda:sm_90a.
    """

    @tile.jit
    def product(A: T.Tensor((16, 16), "float16"), B: T.Tensor((8, 16), "float16")):
        C = T.empty((16, 8), "float32")
        with T.Kernel(1, threads=32):
            lane = T.get_lane_idx()
            tile_a = T.alloc_shared((16, 16), "float16")
            tile_b = T.alloc_shared((8, 16), "float16")
            a = T.alloc_local((8,), "float16")
            b = T.alloc_local((4,), "float16")
            c = T.alloc_local((4,), "float32")
            T.copy(A, tile_a)
            T.copy(B, tile_b)
            T.clear(c)
            T.ptx_ldmatrix(False, 4, ".b16", a, 0, tile_a, lane % 16 * 16 + lane // 16 * 8)
            T.ptx_ldmatrix(False, 2, ".b16", b, 0, tile_b, lane % 8 * 16 + lane // 8 % 2 * 8)
            T.ptx_mma("m16n8k16", "row", "col", "fp16", "fp16", "fp32", a, 0, b, 0, c, 0, False)
            for i, j in T.grid(2, 2):
                C[i * 8 + lane // 4, lane % 4 * 2 + j] = c[i * 2 + j]
        return C

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((16, 16), (8, 16)))
    assert (product(a, b) == a.astype("float32") @ b.astype("float32").T).all()
