"""Random numbers: a Philox stream per thread."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import poisoned
from support.philox import philox


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("threads", [1, 8])
def test_random_bits_are_those_of_philox(run, threads):
    @T.prim_func
    def main(B: T.Tensor((2, threads, 6), "uint32"), F: T.Tensor((2, threads), "float32")):
        with T.Kernel(2, threads=threads) as bx:
            tx = T.get_thread_binding()
            T.rng_init(1234567, off=3)
            for i in T.serial(6):
                B[bx, tx, i] = T.rng_rand()
            F[bx, tx] = T.rng_rand_float()

    b, f = poisoned(2, threads, 6, dtype="uint32"), poisoned(2, threads, dtype="float32")
    run(main, b, f)
    for block in range(2):
        for thread in range(threads):
            words = [philox(1234567, block * threads + thread, 3 + k) for k in range(7)]
            assert b[block, thread].tolist() == words[:6]
            assert f[block, thread] == np.float32(words[6] * 2.0**-32 + 2.0**-33)


@pytest.mark.in_turn(3)
def test_random_floats(run):
    @T.prim_func
    def main(A: T.Tensor((3, 400), "float64"), seed: T.int32):
        with T.Kernel(1, threads=1):
            T.rng_init(seed, 7)
            for i in T.serial(400):
                A[0, i] = T.rng_rand_float()
                A[1, i] = T.rng_rand_float(bit=64)
                A[2, i] = T.rng_rand_float(dist="normal")

    a, b = poisoned(3, 400, dtype="float64"), poisoned(3, 400, dtype="float64")
    run(main, a, 1)
    run(main, b, 2)
    assert (a != b).mean() > 0.99
    assert ((a[:2] > 0) & (a[:2] <= 1)).all()
    assert abs(a[:2].mean() - 0.5) < 0.05
    assert abs(a[2].mean()) < 0.2
    assert abs(a[2].std() - 1) < 0.1
    with pytest.raises(ValueError, match="dice"):

        @T.prim_func
        def wrong(A: T.Tensor((1,), "float32")):
            with T.Kernel(1):
                T.rng_init(1, generator="dice")


def test_random_numbers_in_parallel_loops(run):
    @T.prim_func
    def main(A: T.Tensor((16,), "uint32")):
        with T.Kernel(1, threads=16):
            tx = T.get_thread_binding()
            T.rng_init(9, tx)
            A[tx] = T.rng_rand()

    a = poisoned(16, dtype="uint32")
    run(main, a)
    assert a.tolist() == [philox(9, t, 0) for t in range(16)]


@pytest.mark.in_turn(4)
@pytest.mark.parametrize(
    ("threads", "shape"), [(32, (16, 4)), (32, (7, 5)), (1, (2, 3)), ((8, 4), (1, 70))]
)
def test_iterations_draw_from_the_threads_in_turn(run, threads, shape):
    count, total = int(np.prod(threads)), int(np.prod(shape))

    @T.prim_func
    def main(A: T.Tensor((2, *shape), "uint32"), F: T.Tensor((2, total), "float32"), n: T.int32):
        with T.Kernel(2, threads=threads) as b:
            T.rng_init(7)
            for i, j in T.Parallel(*shape):
                bits = T.rng_rand()
                A[b, i, j] = bits
            for i in T.Parallel(n):
                F[b, i] = T.rng_rand_float() + T.rng_rand_float()

    a, f = poisoned(2, *shape, dtype="uint32"), poisoned(2, total, dtype="float32")
    run(main, a, f, total)
    drawn = [[0] * count, [0] * count]

    def word(block: int, k: int) -> int:
        thread = k % count
        drawn[block][thread] += 1
        return philox(7, block * count + thread, drawn[block][thread] - 1)

    def uniform(block: int, k: int) -> np.float32:
        return np.float32(word(block, k) * 2.0**-32 + 2.0**-33)

    for block in range(2):
        assert a[block].ravel().tolist() == [word(block, k) for k in range(total)]
        wanted = [uniform(block, k) + uniform(block, k) for k in range(total)]
        assert f[block].tolist() == wanted


def test_what_loops_draw_meets_tiles_and_branches(run):
    @T.prim_func
    def main(
        A: T.Tensor((40,), "float32"), B: T.Tensor((40,), "float32"), C: T.Tensor((1,), "float32")
    ):
        with T.Kernel(1, threads=32):
            T.rng_init(3, 0)
            tile = T.alloc_fragment((40,), "float32")
            shared = T.alloc_shared((40,), "float32")
            total = T.alloc_fragment((1,), "float32")
            T.copy(A, tile)
            for i in T.Parallel(40):
                if i % 2 == 0:
                    tile[i] = T.if_then_else(T.rng_rand_float() < 2.0, tile[i] + 1, 0)
            T.copy(tile, shared)
            for i in T.Parallel(40):
                shared[i] = shared[i] + 0 * T.rng_rand_float()
            for i in T.Parallel(40):
                B[i] = shared[39 - i]
            T.reduce_sum(tile, total)
            T.copy(total, C)

    a, b, c = (
        np.arange(40, dtype="float32"),
        poisoned(40, dtype="float32"),
        poisoned(1, dtype="float32"),
    )
    run(main, a, b, c)
    wanted = a + (np.arange(40) % 2 == 0)
    assert np.array_equal(b, wanted[::-1])
    assert c[0] == wanted.sum()
