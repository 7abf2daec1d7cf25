"""Allocations: tiles, variables, workspaces, reducers."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import TileError, UninitialisedRead, UnsupportedOnTarget

SCRATCH = {
    "shared": lambda shape, dtype: T.alloc_shared(shape, dtype),
    "static shared": lambda shape, dtype: T.alloc_shared(shape, dtype, scope="shared"),
    "fragment": lambda shape, dtype: T.alloc_fragment(shape, dtype),
    "local": lambda shape, dtype: T.alloc_local(shape, dtype),
    "buffer": lambda shape, dtype: T.alloc_buffer(shape, dtype, scope="shared"),
}


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("kind", SCRATCH)
@pytest.mark.parametrize("dtype", ["float32", "bool", "float16", "int8", "float8_e4m3fn"])
def test_scratch_of_every_scope(run, kind, dtype):
    allocate = SCRATCH[kind]

    @T.prim_func
    def main(A: T.Tensor((3, 5), dtype), B: T.Tensor((3, 5), dtype)):
        with T.Kernel(1, threads=32):
            S = allocate((3, 5), dtype)
            for i, j in T.grid(3, 5):
                S[i, j] = A[i, j]
            for i, j in T.grid(3, 5):
                B[2 - i, j] = S[i, j]

    a, b = counted(3, 5, dtype=dtype, modulo=2), poisoned(3, 5, dtype=dtype)
    run(main, a, b)
    assert np.array_equal(b, a[::-1])


def test_shapes_may_be_ints(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4), "int32")
            R = T.alloc_shared(4, "int32")
            F = T.alloc_fragment(1, "int32")
            L = T.alloc_local([1], T.int32)
            T.copy(A, S)
            T.copy(S, R)
            F[0] = R[3]
            L[0] = F[0] + 1
            A[0] = L[0]

    a = counted(4)
    run(main, a)
    assert a.tolist() == [4, 1, 2, 3]


@pytest.mark.parametrize("threads", [1, 4])
def test_local_memory_belongs_to_a_thread(run, threads):
    @T.prim_func
    def main(A: T.Tensor((threads,), "int32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            L = T.alloc_local((3,), "int32")
            v = T.alloc_var("int32", 0)
            for i in T.serial(3):
                L[i] = tx * 10 + i
            T.sync_threads()
            for i in T.serial(3):
                v += L[i]
            A[tx] = v

    a = poisoned(threads)
    run(main, a)
    assert a.tolist() == [t * 30 + 3 for t in range(threads)]


def test_forms_of_variables(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "float64"), x: T.float32):
        with T.Kernel(1):
            a = T.alloc_var("int32", 5)
            b = T.alloc_var("float32", 2.5, "local.var")
            c = T.alloc_var("int32", "local.var")
            d = T.alloc_var(T.bool, True)
            e = T.alloc_var("int8", init=-1)
            f = T.alloc_var("float16", x)
            g = T.alloc_var("int64", init=2**40)
            c = 7
            A[0] = a
            A[1] = b
            A[2] = c
            A[3] = T.if_then_else(d, 1, 0)
            A[4] = e
            A[5] = f
            A[6] = g
            h = T.alloc_var("int32", a)
            h = h + 1
            A[7] = h * 10 + a

    a = poisoned(8, dtype="float64")
    run(main, a, 0.25)
    assert a.tolist() == [5, 2.5, 7, 1, -1, 0.25, 2**40, 65]


def test_a_start_value_must_fit():
    with pytest.raises(ValueError, match="float32"):

        @T.prim_func
        def main(A: T.Tensor((1,), "float32")):
            with T.Kernel(1):
                v = T.alloc_var("float32", 1e300)
                A[0] = v


def test_variables_in_branches_and_loops(run):
    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), B: T.Tensor((6,), "int32")):
        with T.Kernel(1):
            best = T.alloc_var("int32", -1)
            for i in T.serial(6):
                if A[i] > best:
                    best = A[i]
                B[i] = best

    a, b = np.array([3, 1, 4, 1, 5, 2], np.int32), poisoned(6)
    run(main, a, b)
    assert b.tolist() == [3, 3, 4, 4, 5, 5]


def test_workspaces(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 3), "int32"), B: T.Tensor((3,), "int32")):
        W = T.alloc_global((n, 3), "int32")
        with T.Kernel(n, threads=32) as i:
            for j in T.Parallel(3):
                W[i, j] = A[i, j] * 2
        with T.Kernel(1, threads=32):
            total = T.alloc_fragment((3,), "int32")
            T.clear(total)
            for i in T.serial(n):
                for j in T.Parallel(3):
                    total[j] += W[i, j]
            T.copy(total, B)

    for rows in (1, 7):
        a, b = drawn(rows, 3, dtype="int32"), poisoned(3)
        run(main, a, b)
        assert np.array_equal(b, 2 * a.sum(0))


def test_a_workspace_inside_a_kernel(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            W = T.alloc_global((4,), "int32")
            T.copy(A, W)
            for i in T.Parallel(4):
                A[i] = W[3 - i]

    a = counted(4)
    run(main, a)
    assert a.tolist() == [3, 2, 1, 0]


def test_reading_what_nobody_wrote():
    import tile_api as tile

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4,), "int32")
            for i in T.serial(4):
                A[i] = S[i]

    with pytest.raises(UninitialisedRead):
        tile.compile(main, target="interpret")(poisoned(4))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("op", ["sum", "max", "min"])
@pytest.mark.parametrize("replication", ["all", "none"])
@pytest.mark.filterwarnings("ignore:.*replication")
def test_reducers_that_are_fragments(run, op, replication):
    start = {"sum": 0, "max": -99, "min": 99}[op]

    @T.prim_func
    def main(A: T.Tensor((7, 5), "int32"), B: T.Tensor((7,), "int32")):
        with T.Kernel(1, threads=32):
            acc = T.alloc_reducer((7,), "int32", op=op, replication=replication)
            T.fill(acc, start)
            for i, j in T.Parallel(7, 5):
                if op == "sum":
                    acc[i] += A[i, j]
                elif op == "max":
                    acc[i] = T.max(acc[i], A[i, j])
                else:
                    acc[i] = T.min(A[i, j], acc[i])
            T.finalize_reducer(acc)
            T.copy(acc, B)

    a, b = drawn(7, 5, dtype="int32"), poisoned(7)
    run(main, a, b)
    assert np.array_equal(b, getattr(a, op)(axis=1))


V2 = {
    "sum": np.add, "max": np.maximum, "min": np.minimum,
    "bitand": np.bitwise_and, "bitor": np.bitwise_or, "bitxor": np.bitwise_xor,
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("op", V2)
def test_reducers_with_epochs(run, op):
    @T.prim_func
    def main(A: T.Tensor((7, 5), "int32"), B: T.Tensor((7,), "int32")):
        with T.Kernel(1, threads=32):
            acc = T.alloc_reducer((7,), "int32", op)
            out = T.alloc_fragment((7,), "int32")
            T.reducer_init(acc)
            for i, j in T.Parallel(7, 5):
                T.reducer_update(acc[i], A[i, j])
            T.finalize_reducer(acc, out)
            T.copy(out, B)

    a, b = drawn(7, 5, dtype="int32"), poisoned(7)
    run(main, a, b)
    assert np.array_equal(b, V2[op].reduce(a, axis=1))


def test_bits_of_floats_are_not_reduced():
    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((7,), "float32")):
            with T.Kernel(1, threads=32):
                acc = T.alloc_reducer((7,), "float32", "bitand")
                T.reducer_init(acc)


def test_barriers_in_memory(run):
    @T.prim_func
    def main(A: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=32):
            bars = T.alloc_barrier([32] * 2)
            T.mbarrier_arrive(bars[0])
            T.mbarrier_wait_parity(bars[0], 0)
            A[0] = 1

    if run.target.startswith("cuda:sm_80"):  # Hopper has them
        with pytest.raises(UnsupportedOnTarget):
            run(main, poisoned(1))
        return
    a = poisoned(1)
    run(main, a)
    assert a[0] == 1
