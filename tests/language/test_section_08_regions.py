"""Regions, indices, and what lies outside of a tensor."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import IndexMismatch, OutOfBounds, TileError


def test_what_an_operand_may_be(run):
    @T.prim_func
    def main(A: T.Tensor((4, 6, 8), "int32"), B: T.Tensor((4, 6, 8), "int32"), k: T.int32):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((6, 8), "int32")
            T.copy(A[0, :, :], S)
            T.copy(S, B[0, :, :])
            T.copy(A[1, 0, 0], S)
            T.copy(S, B[1, 0, 0])
            tile_of_a = A[k, 1:4, 2:7]
            T.copy(tile_of_a, S[0:3, 0:5])
            T.copy(S[0:3, 0:5], B[k, 1:4, 2:7])
            T.copy(A[3, k : k + 2, :], B[3, k : k + 2, :])

    a, b = counted(4, 6, 8), np.full((4, 6, 8), -1, np.int32)
    run(main, a, b, 2)
    expected = np.full_like(b, -1)
    expected[:2] = a[:2]
    expected[2, 1:4, 2:7] = a[2, 1:4, 2:7]
    expected[3, 2:4] = a[3, 2:4]
    assert np.array_equal(b, expected)


def test_fewer_indices_than_dimensions_are_refused():
    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((4, 6), "int32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((6,), "int32")
                T.copy(A[0], S)


def test_ones_are_dropped_and_broadcast(run):
    @T.prim_func
    def main(
        A: T.Tensor((1, 3, 1, 5), "int32"),
        B: T.Tensor((3, 5), "int32"),
        C: T.Tensor((4, 5), "int32"),
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((3, 5), "int32")
            F = T.alloc_fragment((4, 5), "int32")
            T.copy(A[0:1, 0:3, 0:1, 0:5], S)
            T.copy(S, B)
            T.copy(S[1:2, 0:5], F)
            T.copy(F, C)

    a, b, c = counted(1, 3, 1, 5), poisoned(3, 5), poisoned(4, 5)
    run(main, a, b, c)
    assert np.array_equal(b, a[0, :, 0])
    assert np.array_equal(c, np.broadcast_to(a[0, 1, 0], (4, 5)))


def test_an_element_faces_an_element(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            T.copy(A[1], B[2])

    b = poisoned(4)
    run(main, counted(4), b)
    assert b.tolist() == [77, 77, 1, 77]


def test_only_the_common_part_of_unequal_regions_is_defined(run):
    @T.prim_func
    def main(A: T.Tensor((3, 6), "int32"), B: T.Tensor((3, 6), "int32")):
        with T.Kernel(1, threads=32):
            T.copy(A[:, :2], B[:, :3])

    a, b = counted(3, 6), poisoned(3, 6)
    run(main, a, b)
    assert np.array_equal(b[:, :2], a[:, :2])
    assert (b[:, 3:] == 77).all()


def test_whole_buffers_of_other_shapes_are_refused():
    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((4, 6), "int32"), B: T.Tensor((6, 4), "int32")):
            with T.Kernel(1, threads=32):
                T.copy(A, B)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("shape", [(1, 1), (7, 13), (16, 16), (17, 5), (31, 33)])
@pytest.mark.parametrize("scope", ["shared", "fragment"])
def test_tiles_that_hang_over_the_edge(run, shape, scope):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(
        A: T.Tensor((m, n), "float32"),
        B: T.Tensor((m, n), "float32"),
        P: T.Tensor((16, 16), "float32"),
    ):
        with T.Kernel(T.ceildiv(n, 16), T.ceildiv(m, 16), threads=32) as (bx, by):
            S = (
                T.alloc_shared((16, 16), "float32")
                if scope == "shared"
                else T.alloc_fragment((16, 16), "float32")
            )
            T.copy(A[by * 16 : by * 16 + 16, bx * 16 : (bx + 1) * 16], S)
            for i, j in T.Parallel(16, 16):
                S[i, j] = S[i, j] + 1
            T.copy(S, B[by * 16, bx * 16])
            if bx == T.ceildiv(n, 16) - 1 and by == T.ceildiv(m, 16) - 1:
                T.copy(S, P)

    a, b, p = drawn(*shape), poisoned(*shape, dtype="float32"), poisoned(16, 16, dtype="float32")
    run(main, a, b, p)
    assert np.array_equal(b, a + 1)
    last = np.ones((16, 16), "float32")
    rows, cols = (shape[0] - 1) // 16 * 16, (shape[1] - 1) // 16 * 16
    rest = a[rows:, cols:]
    last[: rest.shape[0], : rest.shape[1]] += rest
    assert np.array_equal(p, last)


def test_a_slice_may_exceed_the_tensor(run):
    @T.prim_func
    def main(A: T.Tensor((5,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((8,), "int32")
            T.copy(A[0:8], S)
            T.copy(S, B)

    b = poisoned(8)
    run(main, counted(5, start=1), b)
    assert b.tolist() == [1, 2, 3, 4, 5, 0, 0, 0]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("way", ["load", "copy"])
@pytest.mark.parametrize(
    ("dtype", "safe"), [("float32", -1.5), ("int32", 9), ("float16", float("-inf"))]
)
def test_safe_values(run, way, dtype, safe):
    @T.prim_func
    def main(A: T.Tensor((5,), dtype), B: T.Tensor((8,), "float32"), k: T.int32):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: safe})
            S = T.alloc_shared((8,), "float32")
            if way == "copy":
                T.copy(A[k : k + 8], S)
                T.copy(S, B)
            else:
                for i in T.Parallel(8):
                    B[i] = A[i + k]

    b = poisoned(8, dtype="float32")
    run(main, counted(5, dtype=dtype), b, 2)
    assert b.tolist() == [2, 3, 4] + [safe] * 5


def test_the_innermost_safe_value_wins(run):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32"), B: T.Tensor((3, 4), "int32")):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: 5})
            for r in T.serial(2):
                T.annotate_safe_value({A: 6})
                T.copy(A[0:4], B[r, 0:4])
            for i in T.Parallel(4):
                B[2, i] = A[i]

    b = poisoned(3, 4)
    run(main, counted(2), b)
    assert b.tolist() == [[0, 1, 6, 6], [0, 1, 6, 6], [0, 1, 5, 5]]


def test_stores_and_atomics_outside_are_skipped(run):
    @T.prim_func
    def main(A: T.Tensor((5,), "int32"), P: T.Tensor((8,), "int32"), k: T.int32):
        with T.Kernel(1, threads=32):
            T.annotate_safe_value({A: -3})
            S = T.alloc_shared((8,), "int32")
            T.fill(S, 10)
            for i in T.Parallel(8):
                A[i - k] = i
            T.atomic_add(A[k : k + 8], S)
            for i in T.Parallel(8):
                P[i] = T.atomic_add(A[i + 2], 100, return_prev=True)

    whole, p = poisoned(9), poisoned(8)
    run(main, whole[2:7], p, 2)
    inside = np.array([2, 3, 14, 15, 16])
    assert p.tolist() == [14, 15, 16, -3, -3, -3, -3, -3]
    inside[2:] += 100
    assert whole.tolist() == [77, 77, *inside, 77, 77]


def test_negative_indices(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(
        A: T.Tensor((n,), "int32"),
        M: T.Tensor((3, 4), "int32"),
        B: T.Tensor((6, 12), "int32"),
        k: T.int32,
    ):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4,), "int32")
            for i in T.serial(4):
                S[i] = i * 2
            T.clear(B)
            B[0, 0] = A[-1]
            B[0, 1] = M[-1, -2]
            B[0, 2] = S[-3]
            for i in T.serial(6):
                B[1, i] = A[-i - 1]
            for i in T.Parallel(12):
                B[2, i] = A[i - 10]
            B[3, 0] = A[k]
            A[-2] = 50
            T.copy(A[-3:-1], B[4, 0:2])

    a, b = counted(6, start=1), poisoned(6, 12)
    run(main, a, counted(3, 4), b, -1)
    assert b[0, :3].tolist() == [6, 10, 2]
    assert b[1, :6].tolist() == [6, 5, 4, 3, 2, 1]
    assert b[2].tolist() == [0] * 10 + [1, 2]
    assert b[3, 0] == 0
    assert a.tolist() == [1, 2, 3, 4, 50, 6]
    assert b[4, :2].tolist() == [4, 50]


def test_lanes_of_a_ramp_are_wrapped_one_by_one(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((4,), "int32"), k: T.int32):
        with T.Kernel(1):
            B[T.Ramp(0, 1, 4)] = A[T.Ramp(k, 1, 4)]

    b = poisoned(4)
    run(main, counted(8), b, -2)
    assert b.tolist() == [6, 7, 0, 1]


def test_fill_with_bounds_known_at_run_time(run):
    @T.prim_func
    def main(A: T.Tensor((4, 9), "int32"), a: T.int32, b: T.int32):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 9), "int32")
            T.copy(A, S)
            T.fill(S[1, a:b], 5)
            part = S[2:4, a : a + 2]
            T.clear(part)
            T.copy(S, A)
            T.fill(A[0, a:b], 6)

    x = counted(4, 9)
    run(main, x, 2, 7)
    expected = counted(4, 9)
    expected[1, 2:7], expected[0, 2:7] = 5, 6
    expected[2:4, 2:4] = 0
    assert np.array_equal(x, expected)


def test_guards_can_be_switched_off(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), k: T.int32):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                A[i + k] = i

    a = poisoned(8)
    run(main, a, 2, pass_configs={"tl.disable_safe_memory_legalize": True})
    assert a.tolist() == [77, 77, 0, 1, 2, 3, 77, 77]


def test_assumptions_remove_guards_and_are_checked(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), k: T.int32):
        T.assume(k >= 0)
        with T.Kernel(1, threads=32):
            T.assume(k <= 4)
            for i in T.Parallel(4):
                A[i + k] = i

    a = poisoned(8)
    run(main, a, 4)
    assert a.tolist() == [77, 77, 77, 77, 0, 1, 2, 3]
    with pytest.raises(TileError, match="k"):
        run(main, a, 5)
    with pytest.raises(TileError, match="k"):
        run(main, a, -1)


@pytest.mark.parametrize("scope", ["shared", "fragment", "local"])
def test_scratch_is_never_guarded(scope):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), k: T.int32):
        with T.Kernel(1, threads=32):
            S = {"shared": T.alloc_shared, "fragment": T.alloc_fragment, "local": T.alloc_local}[
                scope
            ]((4,), "int32")
            for i in T.serial(4):
                S[i + k] = i

    with pytest.raises(OutOfBounds):
        tile.compile(main, target="interpret")(poisoned(8), 1)


def test_dynamic_slices_of_strided_tensors(run):
    n, s = T.dynamic("n, s")

    @T.prim_func
    def main(A: T.StridedTensor((n, 3), (s, 1), "int32"), B: T.Tensor((4, 3), "int32"), k: T.int32):
        with T.Kernel(1, threads=32):
            T.copy(A[k : k + 4, :], B)

    a, b = counted(7, 5)[:, 1:4], poisoned(4, 3)
    run(main, a, b, 5)
    assert np.array_equal(b, np.concatenate([a[5:], np.zeros((2, 3), int)]))


@pytest.mark.parametrize("empty", [0, 3])
def test_empty_slices_have_no_elements_and_nothing_happens_to_them(run, empty):
    """As in Python; kernels whose slices are computed need no case of their own."""
    e = empty

    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32"), k: T.int32):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 8), "int32")
            F = T.alloc_fragment((4, 8), "int32")
            T.copy(A, S)
            T.copy(A, F)
            T.copy(B[e:e, :], S[e:e, :])
            T.copy(B[0:0, 0:0], F[e:e, e:e])
            T.copy(B[k:k, k:k], S[k:k, k:k])
            T.copy(A[e:e, e:e], B[e:e, e:e])
            T.fill(S[:, e:e], 7)
            T.clear(F[e:e, e:e])
            T.atomic_add(B[e:e, :], S[e:e, :])
            for i, j in T.Parallel(0, 0):
                S[i, j] = 7
            T.copy(S, B)
            for i, j in T.Parallel(4, 8):
                B[i, j] = B[i, j] * 100 + F[i, j]

    a, b = counted(4, 8), poisoned(4, 8)
    run(main, a, b, 2)
    assert np.array_equal(b, a * 101)


def test_what_is_reduced_over_no_elements(run):
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((3, 8), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4, 8), "int32")
            sums = T.alloc_fragment((8,), "int32")
            T.copy(A, S)
            T.reduce_sum(S[2:2, :], sums, dim=0)
            T.copy(sums, B[0, :])
            T.fill(sums, 5)
            T.reduce_sum(S[2:2, :], sums, dim=0, clear=False)
            T.copy(sums, B[1, :])
            T.reduce_max(S[0:0, :], sums, dim=0)
            T.copy(sums, B[2, :])

    a, b = counted(4, 8), poisoned(3, 8)
    run(main, a, b)
    assert [set(row.tolist()) for row in b] == [{0}, {5}, {-(2**31)}]


def test_slices_that_are_empty_at_run_time(run):
    @T.prim_func
    def main(A: T.Tensor((4, 8), "int32"), B: T.Tensor((4, 8), "int32"), m: T.int32, n: T.int32):
        with T.Kernel(1, threads=32):
            T.copy(A[m:n, m:n], B[m:n, m:n])

    a = counted(4, 8)
    for m, n in ((0, 0), (3, 3), (1, 3)):
        b = np.full((4, 8), -1, np.int32)
        run(main, a, b, m, n)
        expected = np.full((4, 8), -1, np.int32)
        expected[m:n, m:n] = a[m:n, m:n]
        assert np.array_equal(b, expected)


def test_slices_that_end_before_they_start_are_refused():
    with pytest.raises(IndexMismatch, match="the slice of dimension 0 of 'A' ends 4 before"):

        @T.prim_func
        def main(A: T.Tensor((16,), "int32")):
            with T.Kernel(1, threads=32):
                T.fill(A[8:4], 0)
