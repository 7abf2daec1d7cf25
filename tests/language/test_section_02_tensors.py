"""Tensors, strides and the checks of arguments."""

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from support.arrays import counted, poisoned
from tile_core.errors import TileError

SPELLINGS = {
    "call": lambda: T.Tensor((3, 4), "int32"),
    "list": lambda: T.Tensor([3, 4], T.int32),
    "brackets": lambda: T.Tensor[(3, 4), "int32"],
    "brackets, dtype of torch": lambda: T.Tensor[(3, 4), torch.int32],
    "brackets, dtype of NumPy": lambda: T.Tensor[[3, 4], np.dtype("int32")],
    "strided": lambda: T.StridedTensor((3, 4), (4, 1), "int32"),
}


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_a_matrix(run, spelling):
    declared = SPELLINGS[spelling]()

    @T.prim_func
    def main(A: declared, B: declared):
        with T.Kernel(1):
            for i, j in T.Parallel(3, 4):
                B[i, j] = A[i, j] * 2

    b = poisoned(3, 4)
    run(main, counted(3, 4), b)
    assert np.array_equal(b, 2 * counted(3, 4))


VECTORS = {
    "an int": lambda: T.Tensor(8, "float32"),
    "parentheses only": lambda: T.Tensor(8),
    "brackets": lambda: T.Tensor[(8,)],
    "an expression": lambda: T.Tensor(T.dynamic("n") * 2),
}


@pytest.mark.parametrize("spelling", VECTORS)
def test_spellings_of_a_vector_of_float32(run, spelling):
    declared = VECTORS[spelling]()

    @T.prim_func
    def main(A: declared):
        with T.Kernel(1):
            for i in T.Parallel(8):
                A[i] = i

    a = poisoned(8, dtype="float32")
    run(main, a)
    assert a.tolist() == list(range(8))


def test_strided_tensors(run):
    m, n, s, t = T.dynamic("m, n, s, t")

    @T.prim_func
    def main(
        A: T.StridedTensor((m, n), (s, t), "int32"), B: T.StridedTensor((5, 3), (1, 5), "int32")
    ):
        with T.Kernel(1):
            for i, j in T.Parallel(m, n):
                B[i, j] = A[i, j] + s * 1000 + t * 10000

    whole = counted(20, 9)
    a = whole[2:17:3, ::4]
    b = poisoned(3, 5).T
    run(main, a, b)
    assert np.array_equal(b, a + 27 * 1000 + 4 * 10000)
    with pytest.raises(ValueError, match="stride"):
        T.StridedTensor((3, 4), (1,), "int32")


def test_buffer_is_an_old_name_of_tensor(run):
    with pytest.warns(UserWarning, match="T.Tensor"):
        declared = T.Buffer((3,), "int32")
    with pytest.warns(UserWarning, match="T.Tensor"):
        brackets = T.Buffer[(3,), "int32"]

    @T.prim_func
    def main(A: declared, B: brackets):
        with T.Kernel(1):
            T.copy(A, B)

    b = poisoned(3)
    run(main, counted(3), b)
    assert b.tolist() == [0, 1, 2]


def test_buffers_annotate_parameters_of_macros(run):
    @T.macro
    def double(
        S: T.SharedBuffer((4,), "int32"),
        F: T.FragmentBuffer((4,), "int32"),
        L: T.LocalBuffer((4,), "int32"),
    ):
        for i in T.Parallel(4):
            F[i] = S[i] * 2

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4,), "int32")
            F = T.alloc_fragment((4,), "int32")
            L = T.alloc_local((4,), "int32")
            T.copy(A, S)
            double(S, F, L)
            T.copy(F, A)

    a = counted(4)
    run(main, a)
    assert a.tolist() == [0, 2, 4, 6]


def test_a_table_of_addresses(run):
    @T.prim_func
    def main(table: T.Tensor((2,), T.ptr), B: T.Tensor((2, 5), "float32")):
        with T.Kernel(2) as b:
            A = T.make_tensor(table[b], (5,), "float32")
            for i in T.Parallel(5):
                B[b, i] = A[i] + 1

    rows = [counted(5, dtype="float32"), counted(5, dtype="float32", start=10)]
    table = np.array([r.ctypes.data for r in rows], np.int64)
    b = poisoned(2, 5, dtype="float32")
    run(main, table, b)
    assert np.array_equal(b, np.stack(rows) + 1)


@pytest.mark.parametrize("annotation", ["ptr", "handle"])
def test_pointer_parameters(run, annotation):
    pointer = T.ptr("int32") if annotation == "ptr" else T.handle("int32")

    @T.prim_func
    def main(p: pointer, n: T.int32):
        A = T.match_buffer(p, (n,), "int32") if annotation == "handle" else None
        with T.Kernel(1):
            B = A if annotation == "handle" else T.make_tensor(p, (n,), "int32")
            for i in T.Parallel(n):
                B[i] = B[i] + n

    a = counted(5)
    run(main, a, 5)
    assert a.tolist() == [5, 6, 7, 8, 9]


def test_scalars_of_every_kind(run):
    @T.prim_func
    def main(
        a: T.int8,
        b: T.int64,
        c: T.uint8,
        d: T.float16,
        e: T.float64,
        f: T.bool(),
        out: T.Tensor((6,), "float64"),
    ):
        with T.Kernel(1):
            out[0] = a
            out[1] = b
            out[2] = c
            out[3] = d
            out[4] = e
            out[5] = T.if_then_else(f, 1.0, 2.0)

    out = poisoned(6, dtype="float64")
    run(main, -3, 2**40, 250, 0.5, 1e300, True, out)
    assert out.tolist() == [-3, 2**40, 250, 0.5, 1e300, 1]
    for wrong in ((1.5, 1, 1, 1.0, 1.0, True), (1, 1, 1, 1.0, 1.0, 3)):
        with pytest.raises(TileError):
            run(main, *wrong, out)


def test_attributes_of_buffers(run):
    n = T.dynamic("n")
    seen = {}

    @T.prim_func
    def main(A: T.Tensor((n, 4), "float16"), B: T.StridedTensor((3, 4), (8, 2), "int32")):
        with T.Kernel(1):
            S = T.alloc_shared((2, 3), "int8")
            seen["A"] = (A.shape[1], A.dtype, A.scope(), A.name, len(A.shape))
            seen["B"] = tuple(B.strides)
            seen["S"] = (tuple(S.shape), S.dtype, S.scope(), S.data is not None)
            for i, j in T.Parallel(A.shape[0], A.shape[1]):
                A[i, j] = A.shape[0] + B[0, 0] * 0

    a = poisoned(3, 4, dtype="float16")
    run(
        main,
        a,
        np.zeros((3, 16), np.int32)[:, :8:2][:, :4]
        if False
        else np.zeros((3, 8), np.int32)[:, ::2],
    )
    assert a.tolist() == [[3.0] * 4] * 3
    assert seen["A"] == (4, "float16", "global", "A", 2)
    assert seen["B"] == (8, 2)
    assert seen["S"][:2] == ((2, 3), "int8")
    assert seen["S"][2].startswith("shared")


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["float8_e4m3fn", "float8_e5m2", "bfloat16", "bool", "uint16"])
def test_storage_types_of_tensors(run, kind):
    @T.prim_func
    def main(A: T.Tensor((5,), kind), B: T.Tensor((5,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(5):
                B[i] = T.cast(A[i], "float32")

    b = poisoned(5, dtype="float32")
    a = counted(5, dtype=kind)
    run(main, a, b)
    assert np.array_equal(b, a.astype("float32"))
    t, b = torch.arange(5).to(getattr(torch, kind)), torch.full((5,), 77.0)
    run(main, t, b)
    assert torch.equal(b, t.float())


@pytest.mark.parametrize("given", ["bool", "int8", "uint8"])
def test_bools_may_be_bytes(run, given):
    @T.prim_func
    def main(A: T.Tensor((4,), "bool"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = T.if_then_else(A[i], i + 1, 0)

    b = poisoned(4)
    run(main, np.array([1, 0, 1, 0], given), b)
    assert b.tolist() == [1, 0, 3, 0]


@pytest.mark.parametrize(
    ("declared", "given"),
    [("float8_e4m3fn", "float8_e4m3fnuz"), ("float8_e5m2", "float8_e5m2fnuz")],
)
def test_families_of_float8_are_interchangeable(run, declared, given):
    @T.prim_func
    def main(A: T.Tensor((4,), declared), B: T.Tensor((4,), "float32")):
        with T.Kernel(1):
            for i in T.Parallel(4):
                B[i] = A[i]

    b = poisoned(4, dtype="float32")
    a = counted(4, dtype=declared)
    run(main, a.view(counted(1, dtype=given).dtype), b)
    assert b.tolist() == [0, 1, 2, 3]


def checked():
    m = T.dynamic("m")

    @T.prim_func
    def main(
        A: T.Tensor((m, 4), "int32"),
        B: T.Tensor((m,), "float32"),
        n: T.int32,
        unused: T.Tensor((2,), "int8"),
    ):
        with T.Kernel(m) as b:
            B[b] = A[b, 1] + n

    return main


def test_a_tensor_that_is_not_touched_may_be_none(run):
    b = poisoned(3, dtype="float32")
    run(checked(), counted(3, 4), b, 1, None)
    assert b.tolist() == [2.0, 6.0, 10.0]


A, B, U = counted(3, 4), counted(3, dtype="float32"), counted(2, dtype="int8")


@pytest.mark.parametrize(
    "args",
    {
        "count": (A, B, 1),
        "kind": (A, 3, 1, U),
        "scalar": (A, B, A, U),
        "rank": (A[0], B, 1, U),
        "dtype": (A.astype("int64"), B, 1, U),
        "static extent": (counted(3, 5), B, 1, U),
        "symbolic extent": (A, counted(4, dtype="float32"), 1, U),
        "strides": (counted(4, 3).T, B, 1, U),
        "null": (None, B, 1, U),
        "fraction": (A, B, 1.5, U),
        "empty grid": (counted(0, 4), counted(0, dtype="float32"), 1, U),
    }.values(),
    ids=lambda args: None,
)
def test_arguments_that_are_refused(run, args):
    with pytest.raises(TileError):
        run(checked(), *args)


def test_strides_of_extents_of_one_do_not_matter(run):
    @T.prim_func
    def main(A: T.Tensor((3, 1), "int32"), B: T.Tensor((1, 3), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(3):
                B[0, i] = A[i, 0]

    b = poisoned(2, 3)[::2]
    a = counted(3, 1)
    a = np.lib.stride_tricks.as_strided(a, (3, 1), (4, 400))
    run(main, a, b)
    assert b.tolist() == [[0, 1, 2]]


def test_an_offset_view_starts_where_it_starts(run):
    @T.prim_func
    def main(A: T.Tensor((3,), "int32")):
        with T.Kernel(1):
            for i in T.Parallel(3):
                A[i] = -A[i]

    for make in (counted, lambda n: torch.arange(n, dtype=torch.int32)):
        whole = make(8)
        run(main, whole[2:5])
        assert whole.tolist() == [0, 1, -2, -3, -4, 5, 6, 7]


def test_packed_elements_count_twice(run):
    n, s = T.dynamic("n, s")

    @T.prim_func
    def main(A: T.StridedTensor((2, n), (s, 1), "int4"), B: T.Tensor((2, n), "int32")):
        with T.Kernel(1):
            for i, j in T.Parallel(2, n):
                B[i, j] = A[i, j]

    whole = np.array([[0x21, 0x43, 0x65], [0x0F, 0xF8, 0x77]], np.uint8)
    b = poisoned(2, 4)
    run(main, whole[:, :2], b)
    assert b.tolist() == [[1, 2, 3, 4], [-1, 0, -8, -1]]
    t, b = torch.from_numpy(whole), torch.full((2, 6), 77, dtype=torch.int32)
    run(main, t.view(torch.int8), b)
    assert b.tolist() == [[1, 2, 3, 4, 5, 6], [-1, 0, -8, -1, 7, 7]]


def test_sizes_that_several_extents_determine(run):
    m, n, k = T.dynamic("m, n, k")

    @T.prim_func
    def main(
        Q: T.Tensor((m // 4,), "int32"),
        B: T.Tensor((m + n * 2,), "int32"),
        A: T.Tensor((m,), "int32"),
        D: T.Tensor((n * k, 3), "int32"),
        out: T.Tensor((3,), "int32"),
    ):
        with T.Kernel(1):
            out[0] = m
            out[1] = n
            out[2] = k

    out = poisoned(3)
    run(main, counted(1), counted(7 + 4), counted(7), counted(10, 3), out)
    assert out.tolist() == [7, 2, 5]


def test_tensors_that_are_left_out(run):
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def single(A: T.Tensor((m, 4), "int32"), B: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=32):
            B[0] = m
            for _ in T.serial(m):
                B[1] = 7
            B[2] = T.ceildiv(m, 2) + 5

    @T.prim_func
    def shared(
        A: T.Tensor((m,), "int32"), B: T.Tensor((m, n), "int32"), C: T.Tensor((1,), "int32")
    ):
        with T.Kernel(1, threads=32):
            C[0] = m

    @T.prim_func
    def unused(A: T.Tensor((m,), "int32"), B: T.Tensor((m,), "int32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            C[0] = 1

    kernel = tile.compile(single, target=run.target)
    for a, size in ((None, 0), (np.zeros((3, 4), "int32"), 3), (None, 0), (None, 0)):
        b = np.zeros(3, "int32")
        kernel(a, b)
        assert b.tolist() == [size, 7 if size else 0, -(-size // 2) + 5]
    kernel, c = tile.compile(shared, target=run.target), np.zeros(1, "int32")
    for a, b, size in (
        (np.zeros(5, "int32"), None, 5),
        (None, np.zeros((3, 2), "int32"), 3),
        (None, np.zeros((0, 2), "int32"), 0),
    ):
        kernel(a, b, c)
        assert c[0] == size
    run(unused, None, None, c)
    assert c[0] == 1
