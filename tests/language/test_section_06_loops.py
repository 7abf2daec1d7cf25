"""Loops: parallel, pipelined, serial, unrolled, vectorised, persistent."""

import math

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import TileError


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("shape", [(1,), (7,), (13, 3), (1, 1), (5, 1, 7), (2, 3, 5, 2)])
def test_parallel_of_any_rank(run, shape):
    rank = len(shape)

    @T.prim_func
    def main(A: T.Tensor(shape, "int32"), B: T.Tensor(shape, "int32")):
        with T.Kernel(1, threads=32):
            if rank == 1:
                for i in T.Parallel(shape[0]):
                    B[i] = A[i] + i
            elif rank == 2:
                for i, j in T.Parallel(*shape):
                    B[i, j] = A[i, j] + i
            elif rank == 3:
                for i, j, k in T.Parallel(*shape):
                    B[i, j, k] = A[i, j, k] + i
            else:
                for i, j, k, l in T.Parallel(*shape):
                    B[i, j, k, l] = A[i, j, k, l] + i

    b = poisoned(*shape)
    run(main, counted(*shape), b)
    assert np.array_equal(b, counted(*shape) + np.indices(shape)[0])


def test_parallel_with_symbolic_extents_and_hints(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 5), "float32"), m: T.int32):
        with T.Kernel(1, threads=32):
            for i, j in T.Parallel(
                n, m, coalesced_width=2, prefer_async=False, annotations={"x": 1}
            ):
                A[i, j] = A[i, j] * 2.0

    for rows in (1, 4, 7):
        a = counted(rows, 5, dtype="float32")
        run(main, a, 3)
        expected = counted(rows, 5, dtype="float32")
        expected[:, :3] *= 2
        assert np.array_equal(a, expected)


def test_directly_nested_parallel_loops_are_one(run):
    @T.prim_func
    def main(A: T.Tensor((3, 7), "int32")):
        with T.Kernel(1, threads=32):
            for i in T.Parallel(3):
                for j in T.Parallel(7):
                    A[i, j] = i * 10 + j

    a = poisoned(3, 7)
    run(main, a)
    i, j = np.indices((3, 7))
    assert np.array_equal(a, i * 10 + j)


def test_loops_copies_and_variables_inside_parallel(run):
    @T.prim_func
    def main(
        A: T.Tensor((5, 8), "int32"), B: T.Tensor((5,), "int32"), C: T.Tensor((5, 8), "int32")
    ):
        with T.Kernel(1, threads=32):
            F = T.alloc_fragment((5,), "int32")
            for i in T.Parallel(5):
                v = T.alloc_var("int32", 0)
                for k in T.serial(8):
                    v += A[i, k]
                for k in T.unroll(2):
                    v = v + k
                F[i] = v
                for k in T.vectorized(8):
                    C[i, k] = A[i, k]
            for i in T.Parallel(5):
                T.copy(F[i], B[i])

    b, c = poisoned(5), poisoned(5, 8)
    a = counted(5, 8)
    run(main, a, b, c)
    assert np.array_equal(b, a.sum(1) + 1)
    assert np.array_equal(c, a)


def test_a_tile_operator_inside_parallel_is_refused():
    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((5, 8), "int32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((8,), "int32")
                for _ in T.Parallel(5):
                    T.clear(S)


def test_a_replicated_fragment_and_an_if(run):
    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), B: T.Tensor((6,), "int32")):
        with T.Kernel(1, threads=32):
            f = T.alloc_fragment((1,), "int32")
            f[0] = A[3]
            for i in T.Parallel(6):
                if A[i] > f[0]:
                    B[i] = f[0]
                else:
                    B[i] = A[i]

    b = poisoned(6)
    run(main, counted(6), b)
    assert b.tolist() == [0, 1, 2, 3, 3, 3]


def test_loop_layout_changes_nothing(run):
    @T.prim_func
    def main(A: T.Tensor((8, 8), "int32")):
        with T.Kernel(1, threads=64):
            for i, j in T.Parallel(
                8, 8, loop_layout=T.Fragment((8, 8), forward_fn=lambda i, j: (i * 8 + j, 0))
            ):
                A[i, j] = A[i, j] + 1

    a = counted(8, 8)
    run(main, a)
    assert np.array_equal(a, counted(8, 8) + 1)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("trips", [0, 1, 2, 5])
@pytest.mark.parametrize("stages", [0, 1, 2, 4])
def test_pipelined_is_the_sequential_loop(run, stages, trips):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((40, 4), "int32"), B: T.Tensor((4,), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((8, 4), "int32")
            F = T.alloc_fragment((4,), "int32")
            T.clear(F)
            for k in T.Pipelined(n, num_stages=stages):
                T.copy(A[k * 8, 0], S)
                for j in T.Parallel(4):
                    F[j] = F[j] * 3 + S[k, j]
            T.copy(F, B)

    a, b = drawn(40, 4, dtype="int32"), poisoned(4)
    run(main, a, b, trips)
    expected = np.zeros(4, np.int32)
    for k in range(trips):
        expected = expected * 3 + a[k * 8 + k]
    assert np.array_equal(b, expected)


def test_pipelined_from_a_start_with_manual_stages(run):
    @T.prim_func
    def main(A: T.Tensor((16, 4), "int32"), B: T.Tensor((16, 4), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((1, 4), "int32")
            U = T.alloc_shared((1, 4), "int32")
            for k in T.Pipelined(3, 16, order=[0, 2, 1], stage=[0, 1, 1]):
                base = k
                T.copy(A[base, 0], S)
                T.copy(S, U)
                for j in T.Parallel(4):
                    B[base, j] = S[0, j] + k

    b = poisoned(16, 4)
    run(main, counted(16, 4), b)
    expected = counted(16, 4) + np.arange(16)[:, None]
    expected[:3] = 77
    assert np.array_equal(b, expected)


SERIAL = [(5,), (0,), (1,), (2, 7), (3, 3), (0, 10, 3), (10, 0, -3), (9, 0, -1), (7, 2)]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("kind", ["serial", "Serial", "unroll", "Unroll", "range"])
def test_serial_and_unrolled_loops(run, kind):
    loops = {"range": range}.get(kind) or getattr(T, kind)

    @T.macro
    def counted_in(A, row, bounds):
        count = T.alloc_var("int32", 0)
        for i in loops(*bounds):
            A[row, i] = count
            count += 1

    @T.prim_func
    def main(A: T.Tensor((len(SERIAL), 12), "int32")):
        with T.Kernel(1):
            [counted_in(A, row, bounds) for row, bounds in enumerate(SERIAL)]

    a, expected = poisoned(len(SERIAL), 12), poisoned(len(SERIAL), 12)
    for row, bounds in enumerate(SERIAL):
        expected[row, list(range(*bounds))] = np.arange(len(range(*bounds)))
    run(main, a)
    assert a.tolist() == expected.tolist()


def test_options_of_serial_and_unrolled_loops(run):
    @T.prim_func
    def main(A: T.Tensor((4, 6), "int32"), n: T.int32):
        with T.Kernel(1):
            for i in T.serial(6, annotations={"pragma": 1}):
                A[0, i] = i
            for i in T.unroll(6, explicit=True):
                A[1, i] = i
            for i in T.unroll(0, n, unroll_factor=4):
                A[2, i] = i
            for i in T.Vectorized(1, 5):
                A[3, i] = i

    a = poisoned(4, 6)
    run(main, a, 5)
    assert a.tolist() == [[0, 1, 2, 3, 4, 5]] * 2 + [[0, 1, 2, 3, 4, 77], [77, 1, 2, 3, 4, 77]]
    with pytest.raises(ValueError, match="step"):

        @T.prim_func
        def zero(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                for i in T.serial(0, 4, 0):
                    A[i] = 1

    with pytest.raises(TileError):

        @T.prim_func
        def both(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                for i in T.unroll(4, explicit=True, unroll_factor=2):
                    A[i] = 1


def test_a_symbolic_step_warns(run):
    with pytest.warns(UserWarning, match="step"):

        @T.prim_func
        def main(A: T.Tensor((9,), "int32"), s: T.int32):
            with T.Kernel(1):
                for i in T.serial(0, 9, s):
                    A[i] = i

    a = poisoned(9)
    run(main, a, 4)
    assert a.tolist() == [0, 77, 77, 77, 4, 77, 77, 77, 8]


def test_grid_and_raw_loops(run):
    @T.prim_func
    def main(A: T.Tensor((3, 4), "int32"), B: T.Tensor((4,), "int32"), C: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=8):
            n = T.alloc_var("int32", 0)
            for i, j in T.grid(3, 4):
                A[i, j] = n
                n += 1
            for i in T.parallel(4):
                B[i] = i * i

    a, b, c = poisoned(3, 4), poisoned(4), poisoned(8)
    run(main, a, b, c)
    assert np.array_equal(a, counted(3, 4))
    assert b.tolist() == [0, 1, 4, 9]


def test_thread_binding_loops(run):
    @T.prim_func
    def main(C: T.Tensor((8,), "int32")):
        with T.Kernel(1, threads=8):
            for t in T.thread_binding(8, thread="threadIdx.x"):
                C[t] = t * 2

    c = poisoned(8)
    run(main, c)
    assert c.tolist() == [0, 2, 4, 6, 8, 10, 12, 14]


THREADS = 32
"""Of a block; each of them runs an atomic addition that stands in no parallel loop."""


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("domain", "wave", "group"),
    [((7, 5), 4, 8), ((7, 5), 4, 2), ((3, 10), 6, 3), ((4, 4), 20, 8), ((2, 3, 5), 4, 2)],
)
def test_persistent_visits_every_tile_once(run, domain, wave, group):
    rank = len(domain)

    @T.prim_func
    def main(A: T.Tensor(domain, "int32"), B: T.Tensor(domain, "int32")):
        with T.Kernel(wave, threads=THREADS) as block:
            if rank == 2:
                for i, j in T.Persistent(list(domain), wave, block, group_size=group):
                    T.atomic_add(A[i, j], 1)
                    B[i, j] = block
            else:
                for i, j, k in T.Persistent(list(domain), wave, block, group_size=group):
                    T.atomic_add(A[i, j, k], 1)
                    B[i, j, k] = block

    a, b = np.zeros(domain, np.int32), poisoned(*domain)
    run(main, a, b)
    assert (a == THREADS).all()
    total = math.prod(domain)
    counts = [len(range(w, total, wave)) for w in range(wave)]
    assert np.bincount(b.ravel(), minlength=wave).tolist() == counts


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "options",
    [{}, {"swizzle_size": 2}, {"swizzle_size": 4, "column_major": False}, {"num_workers": 3}],
)
def test_persistent_tile_scheduler(run, options):
    rows, cols = 5, 6
    workers = options.get("num_workers", 4)

    @T.prim_func
    def main(A: T.Tensor((rows, cols), "int32")):
        with T.Kernel(workers, threads=THREADS) as block:
            s = T.PersistentTileScheduler(rows, cols, **{"num_workers": workers, **options})
            s.init(block)
            while s.valid():
                T.atomic_add(A[s.m_idx, s.n_idx], 1)
                s.next_tile()

    a = np.zeros((rows, cols), np.int32)
    run(main, a)
    assert (a == THREADS).all()


def test_a_stateless_scheduler(run):
    @T.prim_func
    def main(A: T.Tensor((5, 3), "int32")):
        with T.Kernel(15, threads=THREADS) as block:
            s = T.PersistentTileScheduler(5, 3, 15, swizzle_size=2, stateful=False)
            m, n = s.coord(block)
            T.atomic_add(A[m, n], 1)

    a = np.zeros((5, 3), np.int32)
    run(main, a)
    assert (a == THREADS).all()


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "loop",
    [
        lambda: range(0),
        lambda: range(3, 3),
        lambda: range(3, 5, -1),
        lambda: T.serial(0),
        lambda: T.unroll(0),
        lambda: T.Parallel(0),
        lambda: T.Pipelined(0),
        lambda: T.Pipelined(4, 2),
    ],
)
def test_nothing_is_wrong_with_what_never_runs(run, loop):
    """Bounds of an index without values prove that it is negative, and too large."""

    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((16,), "int32")):
        with T.Kernel(1, threads=THREADS):
            S = T.alloc_shared((16,), "int32")
            T.copy(A, S)
            for k in loop():
                S[k] = A[k - 40] + S[k + 20]
            T.copy(S, B)

    a, b = np.arange(16, dtype=np.int32), np.zeros(16, np.int32)
    run(main, a, b)
    np.testing.assert_array_equal(b, a)


@pytest.mark.parametrize("kind", [T.serial, T.unroll, T.Pipelined])
def test_slices_in_loops_that_never_run(run, kind):
    @T.prim_func
    def main(A: T.Tensor((16,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=THREADS):
            S = T.alloc_shared((4,), "int32")
            T.clear(S)
            for k in kind(0):
                T.copy(A[k : k + 4], S)
            T.copy(S, B)

    b = np.full(4, -1, np.int32)
    run(main, np.arange(16, dtype=np.int32), b)
    assert b.tolist() == [0] * 4


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("leaves", ["break", "continue"])
def test_threads_leave_rounds_of_loops_that_begin_apart(run, leaves):
    @T.prim_func
    def main(A: T.Tensor((40,), "int32"), B: T.Tensor((40,), "int32"), n: T.int32):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            S = T.alloc_shared((40,), "int32")
            for i in range(tx, n, 32):
                S[i] = -1
            T.sync_threads()
            for i in range(tx, n, 32):
                if i % 8 == 7:
                    S[i] = 0
                    if leaves == "break":
                        break
                    else:
                        continue
                S[i] = A[i] * 2
            T.sync_threads()
            for i in range(tx, n, 32):
                B[i] = S[i]

    a, b = drawn(40, dtype="int32"), poisoned(40)
    run(main, a, b, 39)
    expected = np.where(np.arange(39) % 8 == 7, 0, a[:39] * 2)
    assert np.array_equal(b[:39], expected)
