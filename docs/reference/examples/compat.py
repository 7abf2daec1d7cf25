"""Words of programs for other compilers."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def decl_buffer():
    """TVM's buffers: `T.allocate`, `T.sblock_alloc_buffer`, `T.decl_buffer`, `T.buffer_store`.

    With ``data`` a declared buffer is a view of another.
    """

    @tile.jit
    def doubled(A: T.Tensor((4, 8), "int32")):
        B = T.empty((4, 8), "int32")
        with T.Kernel(1, threads=32):
            a = T.allocate((4, 8), "int32", scope="shared")
            b = T.sblock_alloc_buffer((32,), "int32", scope="shared")
            flat = T.decl_buffer((32,), "int32", data=a.data)
            T.copy(A, a)
            for i in T.Parallel(32):
                T.buffer_store(b, flat[i] * 2, [i])
            for i, j in T.Parallel(4, 8):
                B[i, j] = b[i * 8 + j]
        return B

    a = np.arange(32, dtype="int32").reshape(4, 8)
    assert (doubled(a) == 2 * a).all()


def break_loop():
    """`T.break_loop` and `T.continue_loop` are `break` and `continue` as functions."""

    @tile.jit
    def sums(A: T.Tensor((32, 16), "int32")):
        B = T.empty((32,), "int32")
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            total = T.alloc_var("int32", init=0)
            for k in T.serial(16):
                if A[tx, k] < 0:
                    T.continue_loop()
                if A[tx, k] == 0:
                    T.break_loop()
                total += A[tx, k]
            B[tx] = total
        return B

    a = np.random.default_rng(0).integers(-3, 7, (32, 16)).astype("int32")
    before_zero = (a == 0).cumsum(1) == 0
    assert (sums(a) == np.where(before_zero, a.clip(min=0), 0).sum(1)).all()


def meta_var():
    """Hints to other compilers, which change nothing here: `T.meta_var`, `T.sblock_attr`.

    So do `T.ignore_loop_partition` and `T.tvm_thread_invariant`.
    """

    @tile.jit
    def copied(A: T.Tensor((40,), "int32")):
        B = T.empty((40,), "int32")
        with T.Kernel(2, threads=32) as bx:
            width = T.meta_var(32)
            with T.sblock("copy"):
                T.sblock_attr({"pragma": 1})
                i = bx * width + T.get_thread_binding()
                if T.tvm_thread_invariant(bx < 2):
                    if T.ignore_loop_partition(i < 40):
                        B[i] = A[i]
        return B

    a = np.arange(40, dtype="int32")
    assert (copied(a) == a).all()


def type_annotation():
    """`T.type_annotation` names the type of what `T.tvm_access_ptr` points to.

    Runs on: cpu, cuda:sm_80, hip:gfx942.
    """

    @tile.jit
    def seventh(A: T.Tensor((32,), "float32")):
        B = T.empty((1,), "float32")
        T.import_source("float first(const float *x) { return *x; }")
        with T.Kernel(1, threads=1):
            place = T.tvm_access_ptr(T.type_annotation("float32"), A.data, 7, 1, 1)
            B[0] = T.call_extern("float32", "first", place)
        return B

    assert seventh(np.arange(32, dtype="float32"))[0] == 7


def SizeVar():
    """`T.SizeVar`, in TVM's words, and `T.Var` are named extents that calls give."""
    n, m = T.SizeVar("n", "int32"), T.Var("m", "int32")

    @T.prim_func
    def doubled(A: T.Tensor((n, m), "int32"), B: T.Tensor((n, m), "int32")):
        with T.Kernel(n, threads=32) as row:
            for j in T.Parallel(m):
                B[row, j] = A[row, j] * 2

    kernel = tile.compile(doubled, out_idx=[-1])
    for shape in ((2, 3), (5, 40)):
        a = np.arange(shape[0] * shape[1], dtype="int32").reshape(shape)
        assert (kernel(a) == 2 * a).all()


def AnyDType():
    """`T.AnyDType` is what functions take that are given an element type: a name or a type."""

    def doubling(dtype: T.AnyDType):
        @T.prim_func
        def doubled(A: T.Tensor((32,), dtype), B: T.Tensor((32,), dtype)):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(32):
                    B[i] = A[i] * 2

        return tile.compile(doubled, out_idx=[-1])

    a = np.arange(32)
    for dtype in ("int32", T.float32):
        assert (doubling(dtype)(a.astype(str(dtype))) == 2 * a).all()
