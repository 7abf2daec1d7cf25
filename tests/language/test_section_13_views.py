"""Views of memory, tensors made of pointers, and pointers."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import TileError

SCOPES = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("scope", [*SCOPES, "global"])
@pytest.mark.parametrize("function", ["reshape", "view"])
def test_another_shape(run, scope, function):
    @T.prim_func
    def main(A: T.Tensor((4, 6), "int32"), B: T.Tensor((2, 12), "int32")):
        with T.Kernel(1, threads=32):
            S = A if scope == "global" else SCOPES[scope]((4, 6), "int32")
            if scope != "global":
                T.copy(A, S)
            V = getattr(T, function)(S, (2, 12))
            flat = T.reshape(V, (24,))
            flat[5] = -1
            T.copy(V, B)

    a, b = counted(4, 6), poisoned(2, 12)
    run(main, a, b)
    expected = counted(24)
    expected[5] = -1
    assert np.array_equal(b, expected.reshape(2, 12))


@T.macro
def seen(A, alloc, B):
    """Copy A, or a tile that holds it, as elements of the type of B."""
    S = A if alloc is None else alloc(A.shape, A.dtype)
    if alloc is not None:
        T.copy(A, S)
    V = T.view(S, dtype=B.dtype)
    T.copy(V, B)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("dtype", "other"),
    [
        ("float32", "int32"),
        ("float32", "int8"),
        ("float16", "uint16"),
        ("int8", "float32"),
        ("uint8", "int64"),
        ("bfloat16", "int16"),
        ("float8_e4m3fn", "uint8"),
    ],
)
def test_another_type(run, dtype, other):
    """Of tensors, and of tiles of each scope."""
    wide = poisoned(1, dtype=dtype).itemsize
    narrow = poisoned(1, dtype=other).itemsize
    result = T.Tensor((3, 8 * wide // narrow), other)

    @T.prim_func
    def main(A: T.Tensor((3, 8), dtype), B: result, C: result, D: result, E: result):
        with T.Kernel(1, threads=32):
            places = (None, *SCOPES.values())
            [seen(A, alloc, to) for alloc, to in zip(places, (B, C, D, E), strict=True)]

    a = counted(3, 8, dtype=dtype)
    found = [poisoned(3, 8 * wide // narrow, dtype=other) for _ in range(4)]
    run(main, a, *found)
    for b, scope in zip(found, ("global", *SCOPES), strict=True):
        assert np.array_equal(b.view(np.uint8), a.view(np.uint8)), scope


def test_packed_elements_seen_as_bytes(run):
    @T.prim_func
    def main(
        A: T.Tensor((2, 8), "int4"), B: T.Tensor((2, 4), "uint8"), C: T.Tensor((2, 8), "int32")
    ):
        with T.Kernel(1, threads=32):
            V = T.view(A, (2, 4), dtype="uint8")
            T.copy(V, B)
            S = T.alloc_shared((2, 4), "uint8")
            T.copy(V, S)
            W = T.view(S, (2, 8), dtype="int4")
            for i, j in T.Parallel(2, 8):
                C[i, j] = W[i, j]

    packed = np.arange(8, dtype=np.uint8).reshape(2, 4) * 33
    b, c = poisoned(2, 4, dtype="uint8"), poisoned(2, 8)
    run(main, packed, b, c)
    assert np.array_equal(b, packed)
    nibbles = np.stack([packed & 15, packed >> 4], -1).reshape(2, 8).astype(int)
    assert np.array_equal(c, np.where(nibbles > 7, nibbles - 16, nibbles))


def test_a_view_with_strides(run):
    @T.prim_func
    def main(A: T.Tensor((4, 6), "int32"), B: T.Tensor((6, 4), "int32")):
        with T.Kernel(1, threads=32):
            V = T.view(A, (6, 4), strides=(4, 1))
            W = T.make_tensor(A.data, (6, 4), "int32", strides=(1, 6))
            for i, j in T.Parallel(6, 4):
                B[i, j] = V[i, j] * 100 + W[i, j]

    b = poisoned(6, 4)
    run(main, counted(4, 6), b)
    assert np.array_equal(b, counted(6, 4) * 100 + counted(4, 6).T)
    with pytest.raises(ValueError, match="row-major"):

        @T.prim_func
        def other(A: T.Tensor((4, 6), "int32")):
            with T.Kernel(1, threads=32):
                T.view(A, (6, 4), strides=(1, 6))


def test_dynamic_views_of_tensors(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 4), "int32"), B: T.Tensor((n * 2, 2), "int32")):
        with T.Kernel(1, threads=32):
            V = T.reshape(A, (n * 2, 2))
            for i, j in T.Parallel(n * 2, 2):
                B[i, j] = V[i, j]

    for rows in (1, 5):
        b = poisoned(rows * 2, 2)
        run(main, counted(rows, 4), b)
        assert np.array_equal(b, counted(rows * 2, 2))


def test_sizes_must_agree():
    for other in ({"shape": (5, 5)}, {"shape": (24,), "dtype": "int8"}):
        with pytest.raises(AssertionError) as caught:

            @T.prim_func
            def main(A: T.Tensor((4, 6), "int32")):
                with T.Kernel(1):
                    T.view(A, **other)

        assert isinstance(caught.value, TileError)


def test_views_in_tile_operators(run):
    @T.prim_func
    def main(
        A: T.Tensor((256,), "float32"),
        C: T.Tensor((16, 16), "float32"),
        R: T.Tensor((16,), "float32"),
    ):
        with T.Kernel(1, threads=32):
            flat = T.alloc_shared((256,), "float32")
            square = T.view(flat, (16, 16))
            acc = T.alloc_fragment((16, 16), "float32")
            rows = T.alloc_fragment((16,), "float32")
            T.copy(A, flat)
            T.gemm(square, square, acc, clear_accum=True, transpose_B=True)
            T.copy(acc, C)
            T.reduce_sum(square, rows, dim=1)
            T.copy(rows, R)
            T.fill(square[0, :], 0)

    a, c, r = drawn(256), poisoned(16, 16, dtype="float32"), poisoned(16, dtype="float32")
    run(main, a, c, r)
    square = a.reshape(16, 16)
    assert np.array_equal(c, square @ square.T)
    assert np.array_equal(r, square.sum(1))


@pytest.mark.parametrize("way", ["make_tensor", "from_ptr", "match_buffer"])
def test_tensors_of_pointer_parameters(run, way):
    n = T.dynamic("n")

    @T.prim_func
    def main(p: T.ptr("float32"), B: T.Tensor((n, 3), "float32")):
        M = T.match_buffer(p, (n, 3), "float32") if way == "match_buffer" else None
        with T.Kernel(1, threads=32):
            if way == "make_tensor":
                A = T.make_tensor(p, (n, 3), "float32")
            elif way == "from_ptr":
                A = T.Tensor.from_ptr(p, (n, 3), "float32")
            else:
                A = M
            S = T.alloc_shared((4, 3), "float32")
            T.copy(A[0:4, 0:3], S)
            T.copy(S, B[0:4, 0:3])

    a, b = drawn(3, 3), poisoned(3, 3, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, a)


def test_tensors_of_strided_pointers(run):
    @T.prim_func
    def main(p: T.ptr("int32"), B: T.Tensor((3, 2), "int32")):
        with T.Kernel(1, threads=32):
            A = T.make_tensor(p, (3, 2), "int32", strides=(1, 3))
            T.copy(A, B)

    b = poisoned(3, 2)
    run(main, counted(6), b)
    assert np.array_equal(b, counted(2, 3).T)


@pytest.mark.parametrize("function", ["make_tensor", "make_tensor_from_addr"])
def test_a_table_of_addresses_of_groups(run, function):
    groups, n = 3, T.dynamic("n")

    @T.prim_func
    def main(
        table: T.Tensor((groups,), T.ptr),
        sizes: T.Tensor((groups,), "int32"),
        B: T.Tensor((groups, n), "float32"),
    ):
        with T.Kernel(groups, threads=32) as g:
            size = sizes[g]
            A = getattr(T, function)(table[g], (size,), "float32")
            S = T.alloc_shared((8,), "float32")
            T.copy(A[0:8], S)
            T.copy(S, B[g, 0:8])

    arrays = [drawn(k, seed=k) for k in (1, 5, 8)]
    table = np.array([a.ctypes.data for a in arrays], np.int64)
    b = poisoned(3, 8, dtype="float32")
    run(main, table, np.array([1, 5, 8], np.int32), b)
    for row, a in zip(b, arrays, strict=True):
        assert np.array_equal(row, np.concatenate([a, np.zeros(8 - len(a))]))


C_TEXT = """
#include <stdint.h>
void twice(const float *a, float *b, int n) { for (int i = 0; i < n; i++) b[i] = 2 * a[i]; }
float first(const float *a) { return a[0]; }
"""


def test_pointers_are_passed_to_c(run):
    if run.target == "interpret":
        pytest.skip("the interpreter does not run C text")

    @T.prim_func
    def main(
        A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((4,), "float32")
    ):
        T.import_source(C_TEXT)
        with T.Kernel(1, threads=1):
            S = T.alloc_shared((8,), "float32")
            T.call_extern("handle", "twice", T.access_ptr(A, "r"), S.access_ptr("w"), 8)
            T.call_extern("handle", "twice", T.address_of(S[2]), T.access_ptr(B[2], "w", 4), 4)
            T.call_extern("handle", "twice", A.data, T.access_ptr(B, "rw", offset=6), 2)
            C[0] = T.call_extern("float32", "first", T.access_ptr(A[3:5], "r"))
            C[1] = T.call_pure_extern(
                "float32", "first", T.tvm_access_ptr(T.type_annotation("float32"), A.data, 5, 1, 1)
            )

    a = counted(8, dtype="float32")
    b, c = poisoned(8, dtype="float32"), poisoned(4, dtype="float32")
    run(main, a, b, c)
    assert b.tolist() == [77, 77, 8, 12, 16, 20, 0, 2]
    assert c.tolist() == [3, 5, 77, 77]


def test_an_address_that_has_a_name_points_where_it_did(run):
    if run.target == "interpret":
        pytest.skip("the interpreter does not run C text")

    @T.prim_func
    def main(A: T.Tensor((8,), "float32"), C: T.Tensor((3,), "float32"), n: T.int32):
        T.import_source(C_TEXT)
        with T.Kernel(1, threads=1):
            k = T.alloc_var("int32", init=n)
            place, start = T.access_ptr(A[k + 1], "r"), A.data
            k = 5
            C[0] = T.call_extern("float32", "first", place)
            C[1] = T.call_extern("float32", "first", T.address_of(A[k]))
            C[2] = T.call_extern("float32", "first", start)

    c = poisoned(3, dtype="float32")
    run(main, counted(8, dtype="float32"), c, 2)
    assert c.tolist() == [3, 5, 0]


def test_an_address_as_an_integer(run):
    if run.target == "interpret":
        pytest.skip("the interpreter does not run C text")

    @T.prim_func
    def main(table: T.Tensor((1,), T.ptr), C: T.Tensor((1,), "float32"), p: T.ptr("float32")):
        T.import_source(C_TEXT)
        with T.Kernel(1, threads=1):
            C[0] = T.call_extern("float32", "first", table[0]) + T.call_extern(
                "float32", "first", p
            )

    a, c = counted(3, dtype="float32", start=5), poisoned(1, dtype="float32")
    b = counted(1, dtype="float32", start=100)
    run(main, np.array([a.ctypes.data], np.int64), c, b)
    assert c.tolist() == [105]


def test_the_interpreter_refuses_c_text():
    import tile_api as tile

    @T.prim_func
    def main(A: T.Tensor((1,), "float32")):
        T.import_source(C_TEXT)
        with T.Kernel(1, threads=1):
            A[0] = T.call_extern("float32", "first", T.access_ptr(A, "r"))

    with pytest.raises(TileError):
        tile.compile(main, target="interpret")(poisoned(1, dtype="float32"))


def test_index_to_coordinates(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 3, 4), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.serial(n * 12):
                a, b, c = T.index_to_coordinates(i, (n, 3, 4))
                A[a, b, c] = i

    a = poisoned(2, 3, 4)
    run(main, a)
    assert np.array_equal(a, counted(2, 3, 4))
