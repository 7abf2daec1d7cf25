"""Atomic operations on elements and on tiles."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import TileError

TYPES = ["float32", "float64", "float16", "bfloat16", "int32", "uint32", "int64", "uint64"]
OPS = {"add": np.add, "max": np.maximum, "min": np.minimum}


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("dtype", TYPES)
def test_many_blocks_meet_in_few_elements(run, dtype):
    few = T.Tensor((2, 7), dtype)

    @T.prim_func
    def main(A: T.Tensor((24, 7), dtype), added: few, largest: few, smallest: few):
        with T.Kernel(24, threads=32) as bx:
            for j in T.Parallel(7):
                T.atomic_add(added[bx % 2, j], A[bx, j])
                T.atomic_max(largest[bx % 2, j], A[bx, j])
                T.atomic_min(smallest[bx % 2, j], A[bx, j])

    low = 0 if dtype.startswith("u") else -6
    a = drawn(24, 7, low=low, high=7, dtype=dtype)
    start = drawn(2, 7, seed=1, low=0, high=3, dtype=dtype)
    found = {op: start.copy() for op in OPS}
    run(main, a, *found.values())
    for op, b in found.items():
        expected = OPS[op].reduce(a.reshape(12, 2, 7).astype("float64"), axis=0)
        wanted = OPS[op](expected, start.astype("float64"))
        assert np.array_equal(b.astype("float64"), wanted), op


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("op", ["add", "max", "min"])
@pytest.mark.parametrize("scope", ["global", "shared"])
def test_the_previous_value(run, op, scope):
    atomic = getattr(T, f"atomic_{op}")

    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=1):
            S = A if scope == "global" else T.alloc_shared((4,), "int32")
            if scope == "shared":
                T.copy(A, S)
            for i in T.serial(4):
                B[i] = atomic(S[i], 2, return_prev=True)
            if scope == "shared":
                T.copy(S, A)

    a, b = counted(4), poisoned(4)
    run(main, a, b)
    assert b.tolist() == [0, 1, 2, 3]
    assert np.array_equal(a, OPS[op](counted(4), 2))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("source", ["shared", "fragment"])
def test_tiles(run, op, source):
    """Into tensors, into regions of them, and from an element on."""
    atomic = getattr(T, f"atomic_{op}")
    allocate = {"shared": T.alloc_shared, "fragment": T.alloc_fragment}[source]
    tensor = T.Tensor((6, 5), "float32")

    @T.prim_func
    def main(A: tensor, B: tensor, C: tensor, D: tensor):
        with T.Kernel(3, threads=32):
            S = allocate((6, 5), "float32")
            T.copy(A, S)
            atomic(B, S)
            atomic(C[0:6, 0:5], S[0:6, 0:5])
            atomic(D[0, 0], S)

    a, start = drawn(6, 5), drawn(6, 5, seed=1)
    found = {form: start.copy() for form in ("buffer", "region", "element")}
    run(main, a, *found.values())
    for form, b in found.items():
        assert np.array_equal(b, start + 3 * a if op == "add" else OPS[op](start, a)), form


def test_tiles_that_hang_over_the_edge(run):
    m, n = T.dynamic("m, n")

    @T.prim_func
    def main(B: T.StridedTensor((m, n), (16, 1), "int32")):
        with T.Kernel(T.ceildiv(n, 4), T.ceildiv(m, 4), threads=32) as (bx, by):
            S = T.alloc_shared((4, 4), "int32")
            for i, j in T.Parallel(4, 4):
                S[i, j] = by * 100 + bx
            T.atomic_add(B[by * 4, bx * 4], S)

    whole = np.zeros((9, 16), np.int32)
    run(main, whole[:7, :5])
    i, j = np.indices((7, 5))
    assert np.array_equal(whole[:7, :5], i // 4 * 100 + j // 4)
    assert whole.sum() == whole[:7, :5].sum()


def test_tiles_into_shared_memory_and_with_casts(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "float16"), B: T.Tensor((8,), "float32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((8,), "float32")
            F = T.alloc_fragment((8,), "float16")
            T.clear(S)
            T.copy(A, F)
            T.atomic_add(S, F)
            T.atomic_add(S, F)
            T.copy(S, B)

    b = poisoned(8, dtype="float32")
    run(main, counted(8, dtype="float16"), b)
    assert b.tolist() == [2.0 * i for i in range(8)]


@pytest.mark.parametrize("op", ["add", "max", "min"])
def test_the_previous_value_of_tiles_is_refused(op):
    with pytest.raises(NotImplementedError):

        @T.prim_func
        def main(B: T.Tensor((8,), "int32")):
            with T.Kernel(1, threads=32):
                S = T.alloc_shared((8,), "int32")
                T.clear(S)
                getattr(T, f"atomic_{op}")(B, S, return_prev=True)


def test_every_thread_adds_variables_and_constants(run):
    @T.prim_func
    def main(B: T.Tensor((3,), "float32"), C: T.Tensor((1,), "int32")):
        with T.Kernel(4, threads=32) as bx:
            v = T.alloc_var("float32", 0.5)
            T.atomic_add(B[0], v)
            T.atomic_add(B[1], 1)
            T.atomic_max(B[2], T.cast(bx, "float32"), memory_order="relaxed")
            T.atomic_add(C[0], bx, memory_order="seq_cst")

    b, c = np.zeros(3, "float32"), np.zeros(1, "int32")
    run(main, b, c)
    assert b.tolist() == [2 * 32, 4 * 32, 3]
    assert c.tolist() == [6 * 32]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    ("width", "dtype"),
    [(2, "float32"), (4, "float32"), (2, "float16"), (2, "bfloat16"), (4, "float16")],
)
@pytest.mark.parametrize("source", ["global", "shared"])
def test_vectors(run, width, dtype, source):
    atomic = {2: T.atomic_addx2, 4: T.atomic_addx4}[width]

    @T.prim_func
    def main(A: T.Tensor((3, 8), dtype), B: T.Tensor((8,), dtype)):
        with T.Kernel(3, threads=1) as bx:
            S = T.alloc_shared((8,), dtype)
            T.copy(A[bx, :], S)
            for i in T.serial(8 // width):
                if source == "global":
                    atomic(B[i * width], A[bx, i * width])
                else:
                    atomic(B[i * width], S[i * width])

    a, b = drawn(3, 8, dtype=dtype), np.ones(8).astype(poisoned(1, dtype=dtype).dtype)
    run(main, a, b)
    assert np.array_equal(b.astype("float32"), a.astype("float32").sum(0) + 1)


def test_vectors_return_what_was_there(run):
    @T.prim_func
    def main(
        B: T.Tensor((4,), "float32"), A: T.Tensor((4,), "float32"), P: T.Tensor((4,), "float32")
    ):
        with T.Kernel(1, threads=1):
            old = T.atomic_addx4(B[0], A[0], return_prev=True)
            P[0] = T.extract_lane(old, 0)
            P[1] = T.extract_lane(old, 1)
            P[2] = T.extract_lane(old, 2)
            P[3] = T.extract_lane(old, 3)

    b, p = counted(4, dtype="float32"), poisoned(4, dtype="float32")
    run(main, b, counted(4, dtype="float32", start=10), p)
    assert p.tolist() == [0, 1, 2, 3]
    assert b.tolist() == [10, 12, 14, 16]


@pytest.mark.parametrize("order", ["relaxed", "acquire", "consume", "seq_cst"])
def test_loads(run, order):
    @T.prim_func
    def main(A: T.Tensor((3,), "int32"), B: T.Tensor((3,), "int32")):
        with T.Kernel(3, threads=1) as bx:
            B[bx] = T.atomic_load(A[bx], memory_order=order)

    b = poisoned(3)
    run(main, counted(3), b)
    assert b.tolist() == [0, 1, 2]


@pytest.mark.parametrize("order", ["relaxed", "release", "seq_cst"])
def test_stores_and_or(run, order):
    @T.prim_func
    def main(A: T.Tensor((3,), "int32"), B: T.Tensor((1,), "int32"), U: T.Tensor((1,), "uint32")):
        with T.Kernel(3, threads=1) as bx:
            T.atomic_store(A[bx], bx * 5, memory_order=order)
            T.atomic_or(B[0], 1 << bx)
            T.atomic_or(U[0], 1 << (bx * 8))

    a, b, u = poisoned(3), np.zeros(1, np.int32), np.zeros(1, np.uint32)
    run(main, a, b, u)
    assert a.tolist() == [0, 5, 10]
    assert b.tolist() == [7]
    assert u.tolist() == [0x10101]


def test_wrong_orders():
    def attempt(function):
        @T.prim_func
        def main(A: T.Tensor((3,), "int32")):
            with T.Kernel(1):
                function(A)

    for function in (
        lambda A: T.atomic_load(A[0], memory_order="release"),
        lambda A: T.atomic_store(A[0], 1, memory_order="acquire"),
        lambda A: T.atomic_add(A[0], 1, memory_order="sometimes"),
    ):
        with pytest.raises(ValueError, match="order") as caught:
            attempt(function)
        assert isinstance(caught.value, TileError)


def test_a_lock_free_count_of_threads(run):
    @T.prim_func
    def main(N: T.Tensor((1,), "int32"), Seen: T.Tensor((64,), "int32")):
        with T.Kernel(2, threads=32):
            ticket = T.alloc_var("int32")
            tx = T.get_thread_binding()
            ticket = T.atomic_add(N[0], 1, return_prev=True)
            Seen[ticket] = tx

    n, seen = np.zeros(1, np.int32), poisoned(64)
    run(main, n, seen)
    assert n.tolist() == [64]
    assert sorted(seen.tolist()) == sorted([*range(32), *range(32)])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("form", ["add", "constant", "x2", "x4", "branch", "max", "previous"])
def test_every_thread_runs_what_stands_outside_of_loops(run, form):
    """With 16 threads: an addition counts them, a maximum does not."""

    @T.prim_func
    def main(A: T.Tensor((16,), "float32"), B: T.Tensor((16,), "float32")):
        with T.Kernel(1, threads=16):
            if form == "add":
                T.atomic_add(B[0], A[0])
            elif form == "constant":
                T.atomic_add(B[0], 1.0)
            elif form == "x2":
                T.atomic_addx2(B[0], A[0])
            elif form == "x4":
                T.atomic_addx4(B[0], A[0])
            elif form == "branch":
                if A[3] > 0:
                    for _ in T.serial(2):
                        T.atomic_add(B[0], 0.5)
            elif form == "max":
                T.atomic_max(B[0], 16.0)
            else:
                old = T.atomic_add(B[0], 1.0, return_prev=True)
                T.atomic_add(B[8], old)

    b = np.zeros(16, np.float32)
    run(main, np.ones(16, np.float32), b)
    width = {"x2": 2, "x4": 4}.get(form, 1)
    assert b[:4].tolist() == [16.0] * width + [0.0] * (4 - width)
    assert b[8] == (sum(range(16)) if form == "previous" else 0)


def test_previous_vectors_are_assigned_to_slices(run):
    @T.prim_func
    def main(
        A: T.Tensor((3, 2), "float16"), B: T.Tensor((2,), "float16"), C: T.Tensor((3, 2), "float16")
    ):
        with T.Kernel(1, threads=1):
            for i in T.serial(3):
                C[i, 0:2] = T.atomic_addx2(B[0:2], A[i, 0:2], return_prev=True)

    a = np.arange(6).reshape(3, 2).astype("float16")
    b, c = np.ones(2, "float16"), np.zeros((3, 2), "float16")
    run(main, a, b, c)
    assert np.array_equal(b, 1 + a.sum(0))
    assert np.array_equal(c, 1 + a.cumsum(0) - a)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("op", OPS)
@pytest.mark.parametrize("value", ["tile", "region", "scalar"])
def test_each_thread_updates_memory_of_its_own(run, op, value):
    """Nobody else sees it, so that it is updated once by each thread, not by all of them."""
    atomic = getattr(T, f"atomic_{op}")

    @T.prim_func
    def main(A: T.Tensor((3, 7), "float32"), B: T.Tensor((4, 3, 7), "float32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            own = T.alloc_local((3, 7), "float32")
            for i, j in T.grid(3, 7):
                own[i, j] = tx
            if value == "tile":
                atomic(own, A)
            elif value == "region":
                atomic(own[1:3, 2:7], A[0:2, 0:5])
            else:
                atomic(own, 2.0)
            for i, j in T.grid(3, 7):
                B[tx, i, j] = own[i, j]

    a, b = drawn(3, 7, low=-3, high=6, dtype="float32"), poisoned(4, 3, 7, dtype="float32")
    run(main, a, b)
    wanted = np.broadcast_to(np.arange(4.0)[:, None, None], b.shape).copy()
    if value == "region":
        wanted[:, 1:3, 2:7] = OPS[op](wanted[:, 1:3, 2:7], a[0:2, 0:5])
    else:
        wanted = OPS[op](wanted, a if value == "tile" else 2)
    assert np.array_equal(b, wanted)


def test_elements_of_a_threads_own_memory_are_updated_loaded_and_stored(run):
    @T.prim_func
    def main(B: T.Tensor((4, 6), "int32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            own = T.alloc_local((6,), "int32")
            for i in T.serial(6):
                T.atomic_store(own[i], 8)
            own[1] = T.atomic_add(own[0], tx, return_prev=True)
            T.atomic_or(own[2], 3)
            T.atomic_addx2(own[3], own[1])
            own[5] = T.atomic_load(own[0])
            for i in T.serial(6):
                B[tx, i] = own[i]

    b = poisoned(4, 6)
    run(main, b)
    assert b.tolist() == [[8 + t, 8, 11, 16, 19, 8 + t] for t in range(4)]
