"""Facts and hints."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def annotate_layout():
    """`T.annotate_layout` fixes where elements lie: here rows are shifted against each other."""

    @tile.jit
    def transposed(A: T.Tensor((32, 32), "float32")):
        B = T.empty((32, 32), "float32")
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((32, 32), "float32")
            T.annotate_layout({a: lambda i, j: (i, j ^ i)})  # columns hit all banks
            T.copy(A, a)
            for i, j in T.Parallel(32, 32):
                B[i, j] = a[j, i]
        return B

    a = np.arange(1024, dtype="float32").reshape(32, 32)
    assert (transposed(a) == a.T).all()


def annotate_safe_value():
    """`T.annotate_safe_value` says what reads outside a tensor give: 0 if nothing is said."""

    @tile.jit
    def smallest_neighbours(A: T.Tensor((32,), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: 2**31 - 1})
            for i in T.Parallel(32):
                B[i] = T.min(A[i - 1], A[i], A[i + 1])
        return B

    a = np.random.default_rng(0).integers(1, 100, 32).astype("int32")
    padded = np.pad(a, 1, constant_values=100)
    assert (smallest_neighbours(a) == np.minimum(np.minimum(padded[:-2], a), padded[2:])).all()


def use_swizzle():
    """`T.use_swizzle` walks blocks in panels, so that neighbours in time share a cache."""

    @tile.jit
    def product(A: T.Tensor((128, 32), "float16"), B: T.Tensor((32, 128), "float16")):
        C = T.empty((128, 128), "float32")
        with T.Kernel(4, 4, threads=128) as (bx, by):
            T.use_swizzle(2, order="column")
            a = T.alloc_shared((32, 32), "float16")
            b = T.alloc_shared((32, 32), "float16")
            c = T.alloc_fragment((32, 32), "float32")
            T.copy(A[by * 32, 0], a)
            T.copy(B[0, bx * 32], b)
            T.gemm(a, b, c, clear_accum=True)
            T.copy(c, C[by * 32, bx * 32])
        return C

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((128, 32), (32, 128)))
    assert (product(a, b) == a.astype("float32") @ b.astype("float32")).all()


def annotate_restrict_buffers():
    """`T.annotate_restrict_buffers` says that arguments may overlap: results are in place."""

    @T.prim_func
    def shifted(A: T.Tensor((8,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            T.annotate_restrict_buffers(A, B)
            for i in T.serial(7):
                B[7 - i] = A[6 - i]

    a = np.arange(8, dtype="int32")
    tile.compile(shifted)(a, a)
    assert a.tolist() == [0, 0, 1, 2, 3, 4, 5, 6]


def annotate_compile_flags():
    """What a kernel asks of its compilation: `T.annotate_compile_flags`, and pass configurations.

    `T.annotate_pass_configs` sets these, `T.func_attr` attaches what has no effect.
    """

    @tile.jit
    def doubled(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "float32")
        T.func_attr({"author": "me"})
        T.annotate_pass_configs({"tl.disable_tma_lower": True})
        T.annotate_compile_flags(["-O2"])
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = A[i] * 2
        return B

    a = np.arange(32, dtype="float32")
    assert (doubled(a) == 2 * a).all()


def annotate_l2_hit_ratio():
    """Hints for GPUs: `T.annotate_l2_hit_ratio` keeps a tensor in the cache of all blocks.

    `T.annotate_min_blocks_per_sm` limits registers so that so many blocks run at a time.
    """

    @tile.jit
    def scaled(A: T.Tensor((64, 32), "float32"), weights: T.Tensor((32,), "float32")):
        B = T.empty((64, 32), "float32")
        with T.Kernel(64, threads=32) as row:
            T.annotate_l2_hit_ratio({weights: 1.0})
            T.annotate_min_blocks_per_sm(4)
            for i in T.Parallel(32):
                B[row, i] = A[row, i] * weights[i]
        return B

    a, weights = np.arange(2048, dtype="float32").reshape(64, 32), np.arange(32, dtype="float32")
    assert (scaled(a, weights) == a * weights).all()


def inc_max_nreg():
    """Registers of warp groups: `T.dec_max_nreg` gives some back, `T.inc_max_nreg` takes them.

    `T.set_max_nreg` does either.

    Runs on: cuda:sm_90a, cuda:sm_100a.
    """

    @tile.jit
    def doubled(A: T.Tensor((64, 64), "float32")):
        B = T.empty((64, 64), "float32")
        with T.Kernel(1, threads=384):
            a = T.alloc_shared((64, 64), "float32")
            come = T.alloc_barrier(128)
            with T.ws(0):
                T.dec_max_nreg(24)
                T.tma_copy(A, a, barrier=come)
                T.mbarrier_arrive(come)
            with T.ws(1):
                T.inc_max_nreg(240)
                T.mbarrier_wait_parity(come, 0)
                for i, j in T.Parallel(32, 64):
                    B[i, j] = a[i, j] * 2
            with T.ws(2):
                T.set_max_nreg(240, 1)  # more
                T.mbarrier_wait_parity(come, 0)
                for i, j in T.Parallel(32, 64):
                    B[32 + i, j] = a[32 + i, j] * 2
        return B

    a = np.arange(4096, dtype="float32").reshape(64, 64)
    assert (doubled(a) == 2 * a).all()


def annotate_producer_reg_dealloc():
    """How many registers the groups have that the compiler makes: those that copy, and compute.

    `T.annotate_producer_reg_dealloc` and `T.annotate_consumer_reg_alloc`;
    `T.disable_warp_group_reg_alloc`, also `T.no_set_max_nreg`, leaves them as they are.
    """

    def kernel(annotate):
        @T.prim_func
        def product(
            A: T.Tensor((64, 128), "float16"),
            B: T.Tensor((128, 64), "float16"),
            C: T.Tensor((64, 64), "float32"),
        ):
            with T.Kernel(1, threads=128):
                annotate()
                a = T.alloc_shared((64, 32), "float16")
                b = T.alloc_shared((32, 64), "float16")
                c = T.alloc_fragment((64, 64), "float32")
                T.clear(c)
                for k in T.Pipelined(4, num_stages=2):
                    T.copy(A[0, k * 32], a)
                    T.copy(B[k * 32, 0], b)
                    T.gemm(a, b, c)
                T.copy(c, C)

        return tile.compile(product, out_idx=[-1])

    def given():
        T.annotate_producer_reg_dealloc(32)
        T.annotate_consumer_reg_alloc(160)

    rng = np.random.default_rng(0)
    a, b = (rng.integers(-4, 5, shape).astype("float16") for shape in ((64, 128), (128, 64)))
    expected = a.astype("float32") @ b.astype("float32")
    for annotate in (given, T.disable_warp_group_reg_alloc, T.no_set_max_nreg):
        assert (kernel(annotate)(a, b) == expected).all()
