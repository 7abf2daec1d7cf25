"""Slices as vectors, buffers of vectors, vector atomics, and atomics of a tile with one value."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned


def test_a_slice_is_a_vector_where_one_is_stored(run):
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((3, 16), "float32")):
        with T.Kernel(1, threads=1):
            B[0, 0:4] = A[2:6]
            B[0, 4:12] = T.Broadcast(A[1], 8)
            B[0, 12:16] = A[0:16:4]
            x = A[1:16:4]
            B[1, 0:4] = x * 2
            B[1, 4:16:3] = x
            B[2, 0:16:2] = 1.5
            B[2, 1:16:2] = A[1:16:2]

    a, b = drawn(16), np.zeros((3, 16), np.float32)
    run(main, a, b)
    wanted = np.zeros((3, 16), np.float32)
    wanted[0, 0:4], wanted[0, 4:12], wanted[0, 12:16] = a[2:6], a[1], a[0:16:4]
    wanted[1, 0:4], wanted[1, 4:16:3] = a[1::4] * 2, a[1::4]
    wanted[2, 0::2], wanted[2, 1::2] = 1.5, a[1::2]
    assert np.array_equal(b, wanted)


@pytest.mark.parametrize("step", [2, 3])
def test_copies_of_slices_with_steps(run, step):
    n = len(range(1, 33, step))

    @T.prim_func
    def main(A: T.Tensor((2, 33), "float32"), B: T.Tensor((2, 33), "int32"), k: T.int32):
        with T.Kernel(2, threads=32) as b:
            tile = T.alloc_fragment((1, n), "float32")
            line = T.alloc_shared((n,), "float32")
            T.copy(A[b, 1:33:step], tile)
            T.copy(tile, line)
            T.copy(line, B[b, k : k + 33 - 1 : step])

    a, b = counted(2, 33).astype(np.float32), np.zeros((2, 33), np.int32)
    run(main, a, b, 1)
    wanted = np.zeros_like(b)
    wanted[:, 1:33:step] = a[:, 1:33:step]
    assert np.array_equal(b, wanted)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_vector_atomics_return_what_was_there(run, dtype):
    @T.prim_func
    def main(
        A: T.Tensor((16,), dtype),
        B: T.Tensor((16,), dtype),
        P: T.Tensor((16,), dtype),
        S: T.Tensor((8,), dtype),
    ):
        with T.Kernel(1, threads=4):
            shared = T.alloc_shared((8,), dtype)
            T.clear(shared)
            for i in T.Parallel(4):
                P[i * 2 : i * 2 + 2] = T.atomic_addx2(A[i * 2], B[i * 2], return_prev=True)
                T.atomic_addx2(shared[i * 2], B[i * 2 : i * 2 + 2])
            t = T.get_thread_binding()
            if t < 2:
                before = T.atomic_addx4(A[8 + t * 4 : 12 + t * 4], B[8 + t * 4], return_prev=True)
                P[8 + t * 4 : 12 + t * 4] = before + before
            T.copy(shared, S)

    def small(values):
        return np.asarray(values).astype(poisoned(1, dtype=dtype).dtype)

    a, b, p, s = (
        small(np.arange(16)),
        small(np.full(16, 3)),
        poisoned(16, dtype=dtype),
        poisoned(8, dtype=dtype),
    )
    run(main, a, b, p, s)
    assert a.astype(int).tolist() == list(range(3, 19))
    assert p.astype(int).tolist() == [*range(8), *range(16, 32, 2)]
    assert s.astype(int).tolist() == [3] * 8


def test_atomics_of_a_tile_with_one_value(run):
    @T.prim_func
    def main(
        A: T.Tensor((7, 8), "float32"),
        M: T.Tensor((5,), "int32"),
        L: T.Tensor((5,), "int32"),
        C: T.Tensor((4,), "float32"),
        n: T.int32,
    ):
        with T.Kernel(3, threads=32) as b:
            shared = T.alloc_shared((4,), "float32")
            T.clear(shared)
            T.atomic_add(A, 2.0)
            T.atomic_add(A[0:n, b], b)
            T.atomic_max(M, b)
            T.atomic_min(L[1:9], -b)
            T.atomic_add(shared, 1)
            for i in T.Parallel(4):
                T.atomic_add(shared[0:2], i)
            T.atomic_add(C, shared)

    a, m, low, c = (
        np.zeros((7, 8), np.float32),
        np.zeros(5, np.int32),
        np.zeros(5, np.int32),
        np.zeros(4, np.float32),
    )
    run(main, a, m, low, c, 3)
    wanted = np.full((7, 8), 6.0)
    wanted[0:3, 1] += 1
    wanted[0:3, 2] += 2
    assert np.array_equal(a, wanted)
    assert m.tolist() == [2] * 5
    assert low.tolist() == [0, -2, -2, -2, -2]
    assert c.tolist() == [21, 21, 3, 3]


@pytest.mark.in_turn(2)
@pytest.mark.parametrize(("base", "lanes"), [("float32", 4), ("bfloat16", 2), ("int32", 8)])
def test_buffers_of_vectors(run, base, lanes):
    vector = getattr(T, f"{base}x{lanes}", f"{base}x{lanes}")

    @T.prim_func
    def main(A: T.Tensor((4, lanes), base), B: T.Tensor((6, lanes), base)):
        with T.Kernel(1, threads=4):
            t = T.get_thread_binding()
            own = T.alloc_local((2,), vector)
            shared = T.alloc_shared((4, 1), vector)
            assert own.shape == (2,)
            assert own.dtype == vector
            own[0] = T.cast(0, vector)
            own[1] = A[t, 0:lanes]
            own[0] = own[0] + own[1] * own[1]
            shared[t, 0] = own[0]
            T.sync_threads()
            B[t, 0:lanes] = shared[3 - t, 0]
            if t == 0:
                T.copy(shared[1, :], B[4, :])
                B[5, 0] = T.extract_lane(shared[2, 0], lanes - 1)

    a = counted(4, lanes).astype(poisoned(1, dtype=base).dtype)
    b = np.zeros((6, lanes), a.dtype)
    run(main, a, b)
    square = (a.astype(np.float32) ** 2).astype(a.dtype)
    assert np.array_equal(b[:4], square[::-1])
    assert np.array_equal(b[4], square[1])
    assert b[5, 0] == square[2, -1]


def test_macro_parameters_that_are_values_or_places(run):
    @T.macro
    def put(A, i: T.Var, value: T.Var):
        A[i] = value + 1

    @T.macro
    def seven(place: T.Var):
        place = 7

    @T.prim_func
    def main(A: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=1):
            for i in T.serial(8):
                put(A, i, i * 2)
            x = T.alloc_var("int32", 1)
            seven(x)
            put(A, 3, x)
            seven(A[5])
            put(A, 6, A[5])

    a = poisoned(8)
    run(main, a)
    assert a.tolist() == [1, 3, 5, 8, 9, 7, 8, 15]


def test_buffers_are_allocated_anywhere(run):
    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        work = T.alloc_buffer((16,), "float32")
        early = T.alloc_buffer((16,), "float32", scope="shared")
        with T.Kernel(1, threads=16):
            for r in T.serial(2):
                tile = T.alloc_buffer([16], "float32", scope="local.fragment")
                T.copy(A, tile)
                T.copy(tile, early)
                if r == 1:
                    late = T.alloc_buffer((16,), "float32", scope="shared.dyn")
                    T.copy(early, late)
                    T.copy(late, work)
            for i in T.Parallel(16):
                own = T.alloc_buffer((2,), "float32", scope="local")
                own[0] = work[i]
                own[1] = 1
                B[i] = own[0] + own[1]

    a, b = drawn(16), poisoned(16, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, a + 1)


def test_reducers_end_in_any_memory(run):
    @T.prim_func
    def main(
        A: T.Tensor((6, 8), "float32"),
        G: T.Tensor((6,), "float32"),
        H: T.Tensor((2, 6), "float32"),
        n: T.int32,
    ):
        with T.Kernel(1, threads=32):
            total = T.alloc_reducer((6,), "float32", "sum")
            shared = T.alloc_shared((6, 1), "float32")
            if n > 0:
                for r in T.serial(2):
                    T.reducer_init(total, T.cast(r, "float32"))
                    for k in T.serial(2):
                        for i, j in T.Parallel(6, 4):
                            T.reducer_update(total[i], A[i, k * 4 + j])
                    T.finalize_reducer(total, H[r, :], batch=2)
            T.reducer_init(total)
            for i, j in T.Parallel(6, 8):
                T.reducer_update(total[i], A[i, j])
            T.finalize_reducer(total, shared)
            T.copy(shared[:, 0], G)

    a, g, h = drawn(6, 8), poisoned(6, dtype="float32"), poisoned(2, 6, dtype="float32")
    run(main, a, g, h, 1)
    assert np.array_equal(g, a.sum(1))
    assert np.array_equal(h, [a.sum(1), a.sum(1) + 1])
