"""Explicit threads, barriers, exchanges, vector accesses, printing and assertions."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import DeviceAssertError


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("threads", "says_so"), [(1, 1), (7, 1), (32, 1), (64, 1), (64, 0)])
def test_barriers_order_the_phases_of_threads(run, threads, says_so):
    """They come by themselves where a kernel has none."""

    @T.prim_func
    def main(A: T.Tensor((threads,), "int32"), B: T.Tensor((threads,), "int32")):
        with T.Kernel(1, threads=threads):
            tx = T.get_thread_binding()
            S = T.alloc_shared((threads,), "int32")
            S[tx] = A[tx] * 2
            if says_so:
                T.sync_threads()
            x = S[threads - 1 - tx]
            if says_so:
                T.sync_threads()
            S[tx] = x + 1
            if says_so:
                T.sync_threads()
            B[tx] = S[(tx + 1) % threads]

    a, b = drawn(threads, dtype="int32"), poisoned(threads)
    run(main, a, b)
    assert np.array_equal(b, np.roll(a[::-1] * 2 + 1, -1))


def test_a_tree_of_sums_with_barriers_in_a_loop(run):
    @T.prim_func
    def main(A: T.Tensor((3, 64), "int32"), B: T.Tensor((3,), "int32")):
        with T.Kernel(3, threads=64) as bx:
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            S[tx] = A[bx, tx]
            T.sync_threads()
            for k in T.serial(6):
                if tx < (32 >> k):
                    S[tx] += S[tx + (32 >> k)]
                T.sync_threads()
            if tx == 0:
                B[bx] = S[0]

    a, b = drawn(3, 64, dtype="int32"), poisoned(3)
    run(main, a, b)
    assert np.array_equal(b, a.sum(1))


def test_named_barriers_and_warps(run):
    @T.prim_func
    def main(B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            S[tx] = tx
            T.sync_warp()
            T.sync_threads(1, 64)
            B[tx] = S[63 - tx]
            T.sync_warp(0xFFFFFFFF)

    b = poisoned(64)
    run(main, b)
    assert b.tolist() == list(range(63, -1, -1))


def test_the_grid_waits(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((4,), "int32")):
        with T.Kernel(4, threads=1) as bx:
            A[bx] = bx * 3
            T.sync_grid()
            B[bx] = A[3 - bx]

    a, b = poisoned(4), poisoned(4)
    run(main, a, b)
    assert b.tolist() == [9, 6, 3, 0]


SHUFFLES = {
    "shfl_xor": lambda v, k: v[np.arange(32) ^ k],
    "shfl_down": lambda v, k: np.where(np.arange(32) + k < 32, v[(np.arange(32) + k) % 32], v),
    "shfl_up": lambda v, k: np.where(np.arange(32) >= k, v[np.arange(32) - k], v),
    "shfl_sync": lambda v, k: np.full(32, v[k]),
}


@pytest.mark.in_turn(6)
@pytest.mark.parametrize("dtype", ["int32", "float32", "float16", "float64"])
@pytest.mark.parametrize("name", SHUFFLES)
def test_shuffles(run, name, dtype):
    @T.prim_func
    def main(A: T.Tensor((32,), dtype), B: T.Tensor((4, 32), dtype)):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            v = A[tx]
            for k in T.unroll(4):
                B[k, tx] = getattr(T, name)(v, 1 << k)

    a, b = drawn(32, dtype=dtype), poisoned(4, 32, dtype=dtype)
    run(main, a, b)
    assert np.array_equal(b, [SHUFFLES[name](a, 1 << k) for k in range(4)])


def test_shuffles_within_parts_of_a_warp(run):
    @T.prim_func
    def main(B: T.Tensor((4, 64), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[0, tx] = T.shfl_sync(tx, 2, width=8)
            B[1, tx] = T.shfl_down(tx, 3, width=8)
            B[2, tx] = T.shfl_up(tx, 3, 8)
            B[3, tx] = T.shfl_xor(tx, 5, width=16, mask=0xFFFFFFFF)

    b = poisoned(4, 64)
    run(main, b)
    t = np.arange(64)
    assert np.array_equal(b[0], t // 8 * 8 + 2)
    assert np.array_equal(b[1], np.where(t % 8 + 3 < 8, t + 3, t))
    assert np.array_equal(b[2], np.where(t % 8 >= 3, t - 3, t))
    assert np.array_equal(b[3], t ^ 5)


def test_a_warp_sum_by_shuffles(run):
    @T.prim_func
    def main(A: T.Tensor((64,), "float32"), B: T.Tensor((2,), "float32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            v = T.alloc_var("float32")
            v = A[tx]
            for k in T.serial(5):
                v += T.shfl_xor(v, 16 >> k)
            if T.get_lane_idx() == 0:
                B[T.get_warp_idx()] = v

    a, b = drawn(64), poisoned(2, dtype="float32")
    run(main, a, b)
    assert np.array_equal(b, a.reshape(2, 32).sum(1))


def test_votes(run):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((9, 64), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[0, tx] = T.any_sync(A[tx] > 5)
            B[1, tx] = T.all_sync(A[tx] > 5)
            B[2, tx] = T.cast(T.ballot_sync(A[tx] > 5), "int32")
            B[3, tx] = T.cast(T.ballot(A[tx] > 5), "int32")
            B[4, tx] = T.cast(T.match_any_sync(A[tx]), "int32")
            B[5, tx] = T.syncthreads_count(A[tx] > 5)
            B[6, tx] = T.syncthreads_and(A[tx] >= 0)
            B[7, tx] = T.syncthreads_or(A[tx] > 100)
            B[8, tx] = T.cast(T.activemask(), "int32")

    a = drawn(64, low=0, high=9, dtype="int32")
    a[32:] = 7
    b = poisoned(9, 64)
    run(main, a, b)
    warps = a.reshape(2, 32)

    def bits(mask):
        return np.uint32(sum(1 << k for k, x in enumerate(mask) if x))

    def each(values):
        return np.repeat(np.array(values), 32)

    u = b.view("uint32")
    assert np.array_equal(b[0], each([(w > 5).any() for w in warps]))
    assert np.array_equal(b[1], each([(w > 5).all() for w in warps]))
    assert np.array_equal(u[2], each([bits(w > 5) for w in warps]))
    assert np.array_equal(u[3], u[2])
    assert np.array_equal(u[4], [bits(w == x) for w in warps for x in w])
    assert (b[5] == (a > 5).sum()).all()
    assert (b[6] == 1).all()
    assert (b[7] == 0).all()
    assert (u[8] == 0xFFFFFFFF).all()


def test_match_all(run):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "uint32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            B[tx] = T.match_all_sync(A[tx])

    a = counted(64)
    a[32:] = 5
    b = poisoned(64, dtype="uint32")
    run(main, a, b)
    assert b.tolist() == [0] * 32 + [0xFFFFFFFF] * 32


def test_votes_of_a_part_of_a_warp(run):
    @T.prim_func
    def main(B: T.Tensor((32,), "uint32")):
        with T.Kernel(1, threads=32):
            tx = T.get_thread_binding()
            T.clear(B)
            if tx < 5:
                B[tx] = T.activemask()

    b = poisoned(32, dtype="uint32")
    run(main, b)
    assert b.tolist() == [31] * 5 + [0] * 27


def test_who_am_i(run):
    @T.prim_func
    def main(B: T.Tensor((6, 256), "int32")):
        with T.Kernel(1, threads=256):
            tx = T.get_thread_binding()
            B[0, tx] = T.get_lane_idx()
            B[1, tx] = T.get_warp_idx()
            B[2, tx] = T.get_warp_idx_sync()
            B[3, tx] = T.get_warp_group_idx()
            B[4, tx] = T.if_then_else(T.shuffle_elect(64), 1, 0)
            B[5, tx] = T.cast(T.shuffle_elect(0), "int32")

    b = poisoned(6, 256)
    run(main, b)
    t = np.arange(256)
    assert np.array_equal(b, [t % 32, t // 32, t // 32, t // 128, t % 64 == 0, t == 0])


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("bits", [32, 64, 128, 256])
@pytest.mark.parametrize("dtype", ["float32", "float16", "int8", "uint32", "float64"])
def test_vector_accesses_of_tensors(run, bits, dtype):
    size = poisoned(1, dtype=dtype).itemsize * 8
    if bits < size:
        pytest.skip("less than one element")
    lanes = bits // size
    load, store = getattr(T, f"ldg{bits}"), getattr(T, f"stg{bits}")

    @T.prim_func
    def main(A: T.Tensor((4, lanes), dtype), B: T.Tensor((4, lanes), dtype)):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            v = load(A[tx, 0])
            store(B[3 - tx, 0], v)

    a, b = counted(4, lanes, dtype=dtype), poisoned(4, lanes, dtype=dtype)
    run(main, a, b)
    assert np.array_equal(b, a[::-1])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("bits", [32, 64, 128])
def test_vector_accesses_of_shared_memory(run, bits):
    lanes = bits // 32
    load, store = getattr(T, f"lds{bits}"), getattr(T, f"sts{bits}")

    @T.prim_func
    def main(
        A: T.Tensor((8, lanes), "float32"),
        B: T.Tensor((8, lanes), "float32"),
        W: T.Tensor((8,), "uint32"),
    ):
        with T.Kernel(1, threads=8):
            tx = T.get_thread_binding()
            S = T.alloc_shared((8, lanes), "float32")
            store(S[tx, 0], getattr(T, f"ldg{bits}")(A[tx, 0]))
            T.sync_threads()
            words = load(S[7 - tx, 0])
            getattr(T, f"stg{bits}")(B[tx, 0], words)
            W[tx] = words if bits == 32 else T.extract_lane(words, lanes - 1)

    a, b, w = drawn(8, lanes), poisoned(8, lanes, dtype="float32"), poisoned(8, dtype="uint32")
    run(main, a, b, w)
    assert np.array_equal(b, a[::-1])
    assert np.array_equal(w, a[::-1, -1].copy().view("uint32"))


def test_predicated_vector_accesses_and_read_only_loads(run):
    @T.prim_func
    def main(
        A: T.Tensor((4, 4), "float32"), B: T.Tensor((4, 4), "float32"), C: T.Tensor((4,), "float32")
    ):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            v = T.ldg128(A[tx, 0], pred=tx != 1)
            T.stg128(B[tx, 0], v, pred=tx != 2)
            C[tx] = T.__ldg(A[tx, 3])

    a, b, c = drawn(4, 4), poisoned(4, 4, dtype="float32"), poisoned(4, dtype="float32")
    run(main, a, b, c)
    expected = a.copy()
    expected[1], expected[2] = 0, 77
    assert np.array_equal(b, expected)
    assert np.array_equal(c, a[:, 3])


def lines(capfd):
    return capfd.readouterr().out.splitlines()


def test_printing(run, capfd):
    @T.prim_func
    def main(A: T.Tensor((2, 2), "float32"), n: T.int32):
        with T.Kernel(1, threads=1):
            S = T.alloc_shared((3,), "int32")
            v = T.alloc_var("int8", -5)
            T.fill(S, 4)
            T.print("start")
            T.print(msg="100%")
            T.print(A, msg="hello")
            T.print(S)
            T.print(S[1:3])
            T.print(A[1, 1] * 2)
            T.print(n, "n")
            T.print(v)
            T.print(n > 3, msg="flag")

    run(main, np.array([[0, 1.5], [-2, 3]], "float32"), 9)
    assert lines(capfd) == [
        "start",
        "100%",
        "hello: A[0, 0] = 0",
        "hello: A[0, 1] = 1.5",
        "hello: A[1, 0] = -2",
        "hello: A[1, 1] = 3",
        "S[0] = 4",
        "S[1] = 4",
        "S[2] = 4",
        "S[1] = 4",
        "S[2] = 4",
        "6",
        "n: 9",
        "-5",
        "flag: 1",
    ]


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(
    "dtype", ["float16", "bfloat16", "float64", "uint8", "int64", "uint64", "bool", "float8_e4m3fn"]
)
def test_printing_every_type(run, dtype, capfd):
    @T.prim_func
    def main(A: T.Tensor((2,), dtype)):
        with T.Kernel(1, threads=1):
            T.print(A)
            T.print(A[1])

    run(main, counted(2, dtype=dtype))
    assert lines(capfd) == ["A[0] = 0", "A[1] = 1", "1"]


def test_printing_from_every_thread_and_parallel_loops(run, capfd):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            T.print(tx * 10, msg="t")
        with T.Kernel(1, threads=32):
            for i in T.Parallel(4):
                if A[i] > 1:
                    T.print(A[i] + i, msg="p")

    run(main, counted(4))
    assert sorted(lines(capfd)) == ["p: 4", "p: 6", "t: 0", "t: 10", "t: 20", "t: 30"]


def test_tiles_are_printed_by_those_who_hold_them(run, capfd):
    @T.prim_func
    def main(n: T.int32):
        with T.Kernel(1, threads=32):
            spread = T.alloc_fragment((2, 2), "float32")
            own = T.alloc_local((2,), "int32")
            for i, j in T.Parallel(2, 2):
                spread[i, j] = i + j * T.float32(0.5)
            T.fill(own, 7)
            T.print("once")
            T.print(n, msg="n")
            T.print(spread, msg="f")
            T.print(own)
        with T.Kernel(1, threads=2):
            tx = T.get_thread_binding()
            mine = T.alloc_local((1,), "int32")
            mine[0] = tx * 10
            T.print(mine)

    run(main, 5)
    told = lines(capfd)  # what different threads tell is in no order
    assert told[:2] == ["once", "n: 5"]
    assert sorted(told[2:]) == [
        "f: spread[0, 0] = 0",
        "f: spread[0, 1] = 0.5",
        "f: spread[1, 0] = 1",
        "f: spread[1, 1] = 1.5",
        "mine[0] = 0",
        "mine[0] = 10",
        "own[0] = 7",
        "own[1] = 7",
    ]


def test_assertions_on_the_device(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=4):
            tx = T.get_thread_binding()
            T.device_assert(A[tx] >= 0, "not negative")
            T.device_assert(A[tx] != 100, msg="hundred", no_stack_info=True)
            T.device_assert(A[tx] != 50)
            A[tx] = A[tx] + 1

    a = counted(4)
    run(main, a)
    assert a.tolist() == [1, 2, 3, 4]
    for value, told in ((-1, "not negative"), (100, "hundred"), (50, "50")):
        a = counted(4)
        a[2] = value
        with pytest.raises(DeviceAssertError, match=told):
            run(main, a)


def test_barriers_the_compiler_inserts(run):
    @T.prim_func
    def main(A: T.Tensor((64,), "int32"), B: T.Tensor((64,), "int32")):
        with T.Kernel(1, threads=64):
            tx = T.get_thread_binding()
            S = T.alloc_shared((64,), "int32")
            R = T.alloc_shared((64,), "int32")
            T.copy(A, S)
            R[tx] = S[63 - tx]
            T.cumsum(R)
            for i in T.Parallel(64):
                B[i] = R[i]

    a, b = drawn(64, dtype="int32"), poisoned(64)
    run(main, a, b)
    assert np.array_equal(b, np.cumsum(a[::-1]))


def test_threads_of_two_dimensions_with_private_memory(run):
    @T.prim_func
    def main(
        A: T.Tensor((4, 8, 3), "int32"), B: T.Tensor((4, 8), "int32"), C: T.Tensor((4,), "int32")
    ):
        with T.Kernel(1, threads=(8, 4)):
            tx = T.get_thread_binding(0)
            ty = T.get_thread_binding(1)
            L = T.alloc_local((3,), "int32")
            S = T.alloc_shared((4,), "int32")
            if tx == 0:
                S[ty] = 0
            for k in T.serial(3):
                L[k] = A[ty, tx, k]
            T.sync_threads()
            total = T.alloc_var("int32", 0)
            for k in T.serial(3):
                total += L[2 - k]
            B[ty, tx] = total
            T.atomic_add(S[ty], total)
            T.sync_threads()
            if tx == 7:
                C[ty] = S[ty]

    a, b, c = drawn(4, 8, 3, dtype="int32"), poisoned(4, 8), poisoned(4)
    run(main, a, b, c)
    assert np.array_equal(b, a.sum(2))
    assert np.array_equal(c, a.sum((1, 2)))


@pytest.mark.parametrize("scope", ["block", "grid"])
def test_all_elements_of_a_parallel_loop_get_to_a_barrier_in_it(run, scope):
    size, block = 96, 32

    @T.prim_func
    def main(A: T.Tensor((size,), "int32"), B: T.Tensor((size,), "int32")):
        with T.Kernel(size // block, threads=block) as b:
            turned = T.alloc_fragment((block,), "int32")
            shared = T.alloc_shared((block,), "int32")
            for i in T.Parallel(block):
                at = b * block + i
                if scope == "grid":
                    A[at] += 1
                    T.sync_grid()
                    turned[i] = A[size - 1 - at]
                else:
                    shared[i] = A[at] + 1
                    T.sync_threads()
                    turned[i] = shared[block - 1 - i]
                B[at] = turned[i]

    a, b = counted(size), poisoned(size)
    run(main, a, b)
    rows = (counted(size) + 1).reshape(-1, size if scope == "grid" else block)
    assert b.tolist() == rows[:, ::-1].ravel().tolist()
