"""Other views of memory, and addresses."""

import numpy as np

import tile_api as tile
import tile_api.language as T


def reshape():
    """`T.reshape` is the same tile with other extents; `T.view` also with another type."""

    @tile.jit
    def packed(A: T.Tensor((8, 8), "int32"), B: T.Tensor((8, 4), "uint8")):
        C = T.empty((4, 16), "int32")
        D = T.empty((8, 1), "uint32")
        with T.Kernel(1, threads=32):
            a = T.alloc_shared((8, 8), "int32")
            T.copy(A, a)
            T.copy(T.reshape(a, (4, -1)), C)
            b = T.alloc_shared((8, 4), "uint8")
            T.copy(B, b)
            T.copy(T.view(b, dtype="uint32"), D)
        return C, D

    a = np.arange(64, dtype="int32").reshape(8, 8)
    b = np.arange(32, dtype="uint8").reshape(8, 4)
    c, d = packed(a, b)
    assert (c == a.reshape(4, 16)).all()
    assert (d == b.view("uint32")).all()


def make_tensor():
    """`T.make_tensor` is the tensor at an address, `T.match_buffer` too: here one of a table.

    `T.make_tensor_from_addr` takes an integer.
    """

    @tile.jit
    def sums(table: T.Tensor((2,), T.ptr), B: T.ptr, address: T.int64, n: int):
        C = T.empty((n,), "int32")
        b = T.match_buffer(B, (n,), "int32")
        with T.Kernel(1, threads=32):
            second = T.make_tensor(table[1], (n,), "int32")
            third = T.make_tensor_from_addr(address, (n,), "int32")
            for i in T.Parallel(n):
                C[i] = second[i] + 10 * b[i] + 100 * third[i]
        return C

    a, b, c = np.arange(96, dtype="int32").reshape(3, 32)
    addresses = np.array([0, a.ctypes.data], "int64")
    assert (sums(addresses, b, c.ctypes.data, 32) == a + 10 * b + 100 * c).all()


def access_ptr():
    """`T.access_ptr` and `T.address_of` hand places to C functions; a barrier knows which.

    `T.tvm_access_ptr` is the address in TVM's words.

    Runs on: cpu, cuda:sm_80, hip:gfx942.
    """
    text = """
    void scale(const float *x, float *y, int n) { for (int i = 0; i < n; i++) y[i] = 2 * x[i]; }
    float first(const float *x) { return *x; }
    """

    @tile.jit
    def doubled(A: T.Tensor((32,), "float32")):
        B = T.empty((32,), "float32")
        C = T.empty((2,), "float32")
        T.import_source(text)
        with T.Kernel(1, threads=1):
            T.call_extern("void", "scale", T.access_ptr(A[4], "r"), T.access_ptr(B, "w"), 28)
            T.call_extern("void", "scale", A.data, T.access_ptr(B, "w", offset=28), 4)
            C[0] = T.call_extern("float32", "first", T.address_of(A[5]))
            kind = T.type_annotation("float32")
            C[1] = T.call_extern("float32", "first", T.tvm_access_ptr(kind, A.data, 7, 1, 1))
        return B, C

    a = np.arange(32, dtype="float32")
    b, c = doubled(a)
    assert (b == np.roll(a, -4) * 2).all()
    assert c.tolist() == [5, 7]


def index_to_coordinates():
    """`T.index_to_coordinates` finds where an element is that is counted by rows."""

    @tile.jit
    def numbered():
        B = T.empty((4, 6, 8), "int32")
        with T.Kernel(1, threads=64):
            for k in T.Parallel(192):
                plane, row, column = T.index_to_coordinates(k, (4, 6, 8))
                B[plane, row, column] = k
        return B

    assert (numbered() == np.arange(192).reshape(4, 6, 8)).all()
