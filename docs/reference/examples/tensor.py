"""Tensors, tiles as parameters, addresses, expressions."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def PrimExpr():
    """`T.PrimExpr` is a value of a kernel: what functions take that compute in one."""

    def gelu(x: T.PrimExpr) -> T.PrimExpr:
        return x / 2 * (1 + T.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    @tile.jit
    def activated(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "float32")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(32):
                B[i] = gelu(A[i])
        return B

    a = np.linspace(-3, 3, 32, dtype="float32")
    expected = a / 2 * (1 + np.tanh(0.7978845608 * (a + 0.044715 * a**3)))
    np.testing.assert_allclose(activated(a), expected, rtol=1e-4, atol=1e-6)


def Tensor():
    """`T.Tensor` declares what a kernel is given; names of extents are those of the calls.

    `T.StridedTensor` need not be contiguous.
    """
    m, n, step = T.dynamic("m, n, step")

    @T.prim_func
    def summed(
        A: T.Tensor((m, n), "int32"),
        B: T.StridedTensor((m, n), (step, 1), "int32"),
        C: T.Tensor((m, n), "int32"),
    ):
        with T.Kernel(m, threads=32) as row:
            for j in T.Parallel(n):
                C[row, j] = A[row, j] + B[row, j]

    kernel = tile.compile(summed, out_idx=[-1])
    wide = np.arange(120, dtype="int32").reshape(5, 24)
    for columns in (7, 20):
        a = np.ones((5, columns), "int32")
        assert (kernel(a, wide[:, :columns]) == a + wide[:, :columns]).all()


def SharedBuffer():
    """Tiles as parameters of macros: `T.SharedBuffer`, `T.FragmentBuffer`, `T.LocalBuffer`."""

    @T.macro
    def add_rows(a: T.SharedBuffer((8, 32), "int32"), total: T.FragmentBuffer((32,), "int32")):
        for i in T.Parallel(32):
            total[i] = 0
        for row in T.serial(8):
            for i in T.Parallel(32):
                total[i] += a[row, i]

    @T.macro
    def swap(pair: T.LocalBuffer((2,), "int32")):
        first = pair[0]
        pair[0] = pair[1]
        pair[1] = first

    @tile.jit
    def computed(A: T.Tensor((8, 32), "int32")):
        B = T.empty((32,), "int32")
        C = T.empty((32, 2), "int32")
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8, 32), "int32")
            total = T.alloc_fragment((32,), "int32")
            T.copy(A, a)
            add_rows(a, total)
            T.copy(total, B)
            tx = T.get_thread_binding()
            pair = T.alloc_local((2,), "int32")
            pair[0] = A[0, tx]
            pair[1] = A[1, tx]
            swap(pair)
            C[tx, 0] = pair[0]
            C[tx, 1] = pair[1]
        return B, C

    a = np.arange(256, dtype="int32").reshape(8, 32)
    total, pairs = computed(a)
    assert (total == a.sum(0)).all()
    assert (pairs == a[[1, 0]].T).all()


def Buffer():
    """`T.Buffer` is the old name of `T.Tensor`, and says so."""
    import warnings

    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")

        @T.prim_func
        def doubled(A: T.Buffer((32,), "int32"), B: T.Tensor((32,), "int32")):
            with T.Kernel(1, threads=32):
                for i in T.Parallel(32):
                    B[i] = A[i] * 2

    assert "use T.Tensor" in str(said[0].message)
    a = np.arange(32, dtype="int32")
    assert (tile.compile(doubled, out_idx=[-1])(a) == 2 * a).all()


def ptr():
    """`T.ptr`, also `T.handle` and `T.Ptr`, is an address; kernels say what lies there."""

    @T.prim_func
    def added(n: T.int32, A: T.ptr("int32"), B: T.handle, C: T.Ptr):
        with T.Kernel(T.ceildiv(n, 32), threads=32) as bx:
            a = T.make_tensor(A, (n,), "int32")
            b = T.make_tensor(B, (n,), "int32")
            c = T.make_tensor(C, (n,), "int32")
            for i in T.Parallel(32):
                c[bx * 32 + i] = a[bx * 32 + i] + b[bx * 32 + i]

    a, b = np.arange(80, dtype="int32").reshape(2, 40)
    c = np.zeros(40, "int32")
    tile.compile(added)(40, a, b, c)  # or numbers: a.ctypes.data
    assert (c == a + b).all()
