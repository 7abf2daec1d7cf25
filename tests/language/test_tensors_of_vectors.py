"""Vector types of tensors, workspaces, outputs and variables: arrays have the lanes last."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import counted
from tile_core.errors import ArgumentShapeError, FrontendTypeError


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "int32"])
@pytest.mark.parametrize(("n", "lanes"), [(1, 4), (13, 2), (37, 4)])
def test_parameters(run, dtype, n, lanes):
    size = T.dynamic("size")

    @T.prim_func
    def main(A: T.Tensor((size,), f"{dtype}x{lanes}"), B: T.Tensor((2, size), f"{dtype}x{lanes}")):
        with T.Kernel(T.ceildiv(size, 16), threads=16) as b:
            at = b * 16 + T.get_thread_binding()
            if at < size:
                B[0, at] = A[at] + A[at]
                B[1, at] = A[size - 1 - at]

    a = (np.arange(n * lanes) % 50).reshape(n, lanes).astype(dtype)
    b = np.zeros((2, n, lanes), dtype)
    run(main, a, b)
    assert np.array_equal(b, [a + a, a[::-1]])


def test_tiles_strides_workspaces_and_casts(run):
    step = T.dynamic("step")

    @T.prim_func
    def main(
        A: T.StridedTensor((4, 4), (step, 1), "int8x4"),
        B: T.Tensor((4, 4), "int32x4"),
        C: T.Tensor((4, 4), "int8x4"),
    ):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            kept = T.alloc_global((4, 4), "int8x4")
            tile = T.alloc_shared((4, 4), "int8x4")
            kept[t // 4, t % 4] = A[t // 4, t % 4]
            B[t // 4, t % 4] = T.cast(kept[t // 4, t % 4], "int32x4") * 1000
            T.copy(A, tile)
            T.copy(tile, C)

    whole = counted(4, 9, 4).astype(np.int8)
    a, b, c = whole[:, :4], np.zeros((4, 4, 4), np.int32), np.zeros((4, 4, 4), np.int8)
    run(main, a, b, c)
    assert np.array_equal(b, a.astype(np.int32) * 1000)
    assert np.array_equal(c, a)


def test_variables(run):
    @T.prim_func
    def main(
        A: T.Tensor((64,), "float32"),
        B: T.Tensor((3, 8), "float32x4"),
        C: T.Tensor((8,), "int32x2"),
    ):
        with T.Kernel(1, threads=8):
            t = T.get_thread_binding()
            total, nothing = T.alloc_var("float32x4"), T.alloc_var(T.float32x4)
            count = T.alloc_var("int32x2", init=7)
            for k in T.serial(2):
                total = total + A[T.Ramp(t * 8 + k * 4, 1, 4)]
            B[1, t] = total
            if t < 4:
                total = total * T.float32(2)
            count += 1
            B[0, t] = total
            B[2, t] = nothing
            C[t] = count

    a, b, c = (
        np.arange(64, dtype=np.float32),
        np.ones((3, 8, 4), np.float32),
        np.zeros((8, 2), "i4"),
    )
    run(main, a, b, c)
    sums = a.reshape(8, 2, 4).sum(1)
    assert np.array_equal(b, [sums * np.where(np.arange(8) < 4, 2, 1)[:, None], sums, sums * 0])
    assert (c == 8).all()


def test_outputs_of_eager_functions():
    @tile.jit(target="cpu")
    def thrice(A):
        n = T.const("n")
        A: T.Tensor((n,), "float32x4")
        B = T.empty((n,), "float32x4")
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            if t < n:
                B[t] = A[t] * T.float32(3)
        return B

    a = np.arange(52, dtype=np.float32).reshape(13, 4)
    assert np.array_equal(thrice(a), a * 3)


def test_arrays_without_lanes_are_refused():
    @T.prim_func
    def main(A: T.Tensor((16,), "float32x4")):
        with T.Kernel(1, threads=16):
            A[T.get_thread_binding()] = 0

    compiled, a = tile.compile(main, target="cpu"), np.ones((16, 4), np.float32)
    with pytest.raises(ArgumentShapeError):
        compiled(a.ravel())
    compiled(a)
    assert not a.any()


def test_updates_in_place(run):
    @T.prim_func
    def main(A: T.Tensor((16,), "float32x4")):
        with T.Kernel(1, threads=16):
            t = T.get_thread_binding()
            A[t] += 1
            A[t] *= A[t]

    a = counted(16, 4).astype(np.float32)
    wanted = (a + 1) ** 2
    run(main, a)
    assert np.array_equal(a, wanted)


def test_vectors_are_no_conditions():
    with pytest.raises(FrontendTypeError, match="a vector of 4 values is used as the condition"):

        @T.prim_func
        def main(A: T.Tensor((16,), "float32x4")):
            with T.Kernel(1, threads=16):
                if A[0] > 0:
                    A[0] = 0


def test_all_elements_are_printed(run, capfd):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32x4")):
        with T.Kernel(1, threads=1):
            T.print(A[1], msg="all")

    run(main, np.arange(8, dtype=np.int32).reshape(2, 4))
    assert [int(word) for word in capfd.readouterr().out.split() if word.isdigit()][-4:] == [
        4,
        5,
        6,
        7,
    ]


def test_parts_of_tensors_are_no_values():
    with pytest.raises(FrontendTypeError, match=r"^\[TL1003\] a part of 'A' is not a scalar value"):

        @T.prim_func
        def main(A: T.Tensor((4,), "int32x4")):
            with T.Kernel(1, threads=4):
                A[0] = A[1] + A[0:2]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("target", ["interpret", "cpu", "cuda:sm_90@sim", "hip:gfx942@sim"])
@pytest.mark.parametrize("dtype", ["float32x4", "float16x2", "int32x3"])
def test_atomics(target, dtype):
    name, lanes = dtype.split("x")

    @T.prim_func
    def main(
        A: T.Tensor((7,), dtype),
        B: T.Tensor((7,), dtype),
        C: T.Tensor((7 * int(lanes),), name),
        D: T.Tensor((4, 7), dtype),
    ):
        with T.Kernel(3, threads=8) as b:
            t = T.get_thread_binding()
            cells = T.alloc_shared((7,), dtype)
            if t < 7:
                cells[t] = B[t]
                T.atomic_add(cells[t], cells[t])
                T.atomic_add(A[t], cells[t])
                T.atomic_add(A[t], 1)
                T.atomic_add(C[T.Ramp(t * int(lanes), 1, int(lanes))], B[t])
                if b == 0:
                    D[0, t] = T.atomic_add(D[1, t], B[t], return_prev=True)
                    T.atomic_max(D[2, t], B[t])
                    T.atomic_store(D[3, t], T.atomic_load(D[2, t]))

    a, b = (k + counted(7, int(lanes)).astype(name) for k in (2, 5))
    c, d = np.zeros(a.size, name), np.full((4, *a.shape), 3, name)
    tile.compile(main, target=target)(a, b, c, d)
    assert np.array_equal(a, 2 + counted(7, int(lanes)) + 3 * (2 * b + 1))
    assert np.array_equal(c, 3 * b.ravel())
    assert np.array_equal(d, [np.full(b.shape, 3), 3 + b, b, b])


def test_atomics_of_all_elements(run):
    @T.prim_func
    def main(A: T.Tensor((7,), "int32x2"), B: T.Tensor((7,), "int32x2")):
        with T.Kernel(3, threads=32):
            for i in T.Parallel(7):
                T.atomic_add(A[i], B[6 - i])
            T.atomic_add(A, B)

    a, b = np.zeros((7, 2), np.int32), counted(7, 2)
    run(main, a, b)
    assert np.array_equal(a, 3 * (b + b[::-1]))


def test_atomics_of_other_lanes():
    with pytest.raises(FrontendTypeError, match="4 elements got a vector of 2"):

        @T.prim_func
        def main(A: T.Tensor((7,), "float32x4"), B: T.Tensor((7,), "float32x2")):
            with T.Kernel(1, threads=1):
                T.atomic_add(A[0], B[0])
