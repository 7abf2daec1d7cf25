"""Launching grids of blocks."""

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, poisoned
from tile_core.errors import TileError


def test_up_to_three_extents_first_fastest(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n, 3, 2), "int32"), B: T.Tensor((n, 3), "int32")):
        with T.Kernel(2, 3, n, threads=32) as (bx, by, bz):
            A[bz, by, bx] = bx + 10 * by + 100 * bz
        with T.Kernel(3, n) as (bx, by):
            B[by, bx] = A[by, bx, 1]

    a, b = poisoned(5, 3, 2), poisoned(5, 3)
    run(main, a, b)
    z, y, x = np.indices((5, 3, 2))
    assert np.array_equal(a, x + 10 * y + 100 * z)
    assert np.array_equal(b, a[:, :, 1])


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("threads", [None, 1, 7, 128, (4, 8), [4, 2, 2], (32,)])
def test_threads(run, threads):
    shape = (
        (128,) if threads is None else (threads,) if isinstance(threads, int) else tuple(threads)
    )
    seen = []

    @T.prim_func
    def main(A: T.Tensor((128,), "int32")):
        with T.Kernel(1, threads=threads):
            seen.append(T.get_thread_extents())
            x, y, z = T.get_thread_bindings()
            x = T.get_thread_binding()
            y = T.get_thread_binding(1)
            z = T.get_thread_binding(2)
            A[x + seen[0][0] * (y + seen[0][1] * z)] = x + 100 * y + 1000 * z

    a = poisoned(128)
    run(main, a)
    x, y, z = (*shape, 1, 1)[:3]
    expected = [i + 100 * j + 1000 * k for k in range(z) for j in range(y) for i in range(x)]
    assert a[: len(expected)].tolist() == expected
    assert tuple(seen[0]) == (x, y, z)
    assert (a[len(expected) :] == 77).all()


@pytest.mark.parametrize("threads", [0, -1, (32, 0)])
def test_threads_are_positive(threads):
    with pytest.raises(ValueError, match="threads must be positive"):

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1, threads=threads):
                A[0] = 1


def test_no_extents_mean_one_block(run):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32")):
        with T.Kernel(threads=32):
            A[0] += 1
        with T.Kernel():
            A[1] += 2

    a = np.zeros(2, np.int32)
    run(main, a)
    assert a.tolist() == [1, 2]


def test_introspection(run):
    seen = []

    @T.prim_func
    def main(A: T.Tensor((6,), "int32")):
        with T.Kernel(3, 2, threads=(8, 4)):
            seen.append(
                (T.get_block_extent(0), tuple(T.get_block_extents())[:2], T.get_thread_extent(1))
            )
            bx, by = T.get_block_bindings()[:2]
            A[T.get_block_binding(1) * 3 + bx] = by * 10 + T.get_block_binding(0)
            assert T.KernelLaunchFrame.Current() is not None

    a = poisoned(6)
    run(main, a)
    assert a.tolist() == [0, 1, 2, 10, 11, 12]
    assert seen == [(3, (3, 2), 4)]


def test_outside_of_a_kernel():
    with pytest.raises(TileError) as caught:
        T.Kernel(1).__enter__()
    assert (
        "JITNoBuilderError" in [c.__name__ for c in type(caught.value).__mro__] or caught.value.code
    )


def test_old_arguments(run):
    with pytest.warns(UserWarning, match="is_cpu"):

        @T.prim_func
        def main(A: T.Tensor((2,), "int32")):
            with T.Kernel(2, is_cpu=True) as bx:
                A[bx] = bx

    a = poisoned(2)
    run(main, a)
    assert a.tolist() == [0, 1]


def test_kernels_of_one_function_run_in_order(run):
    @T.prim_func
    def main(A: T.Tensor((5,), "int32"), B: T.Tensor((5,), "int32")):
        W = T.alloc_global((5,), "int32") if hasattr(T, "alloc_global") else None
        with T.Kernel(5) as i:
            W[i] = A[i] * 2
        with T.Kernel(5) as i:
            B[i] = W[4 - i]

    b = poisoned(5)
    run(main, counted(5), b)
    assert b.tolist() == [8, 6, 4, 2, 0]


def test_empty_kernels(run):
    @T.prim_func
    def empty(A: T.Tensor((5,), "int32")):
        with T.Kernel(2, threads=32):
            pass

    @T.prim_func
    def dead(A: T.Tensor((5,), "int32")):
        with T.Kernel(2, threads=32) as bx:
            S = T.alloc_shared((5,), "int32")
            F = T.alloc_fragment((5,), "int32")
            T.clear(S)
            for i in T.Parallel(5):
                F[i] = i

    @T.prim_func
    def none(A: T.Tensor((5,), "int32")):
        pass

    a = counted(5)
    for kernel in (empty, dead, none):
        run(kernel, a)
    assert a.tolist() == [0, 1, 2, 3, 4]


def test_an_empty_grid_is_an_error_at_run_time(run):
    n = T.dynamic("n")

    @T.prim_func
    def main(A: T.Tensor((n,), "int32"), k: T.int32):
        with T.Kernel(n // 4, threads=32) as bx:
            A[bx] = k

    a = poisoned(9)
    run(main, a, 1)
    assert a.tolist() == [1, 1] + [77] * 7
    with pytest.raises(TileError, match="grid"):
        run(main, poisoned(3), 1)


def test_prelude_is_source_text(run):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32")):
        with T.Kernel(1, prelude="#define UNUSED 1\n"):
            A[0] = 1

    a = poisoned(2)
    run(main, a)
    assert a.tolist() == [1, 77]
