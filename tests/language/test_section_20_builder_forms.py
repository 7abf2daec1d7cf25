"""Statements in the form of frames: branches, loops, blocks, indices of threads."""

import numpy as np

import tile_api.language as T
from support.arrays import counted, poisoned


def test_a_branch_with_one_side_guards_it(run):
    @T.prim_func
    def main(A: T.Tensor((40,), "int32"), B: T.Tensor((40,), "int32")):
        with T.Kernel(2, threads=32) as b:
            for i in T.Parallel(32):
                with T.If(b * 32 + i < 37), T.Then():
                    B[b * 32 + i] = A[b * 32 + i] + 1

    a, b = counted(40), np.zeros(40, np.int32)
    run(main, a, b)
    assert b.tolist() == [*range(1, 38), 0, 0, 0]


def test_a_branch_has_two_sides_and_nests(run):
    @T.prim_func
    def main(A: T.Tensor((12,), "int32"), n: T.int32):
        with T.Kernel(1, threads=4):
            for i in T.serial(12):
                with T.If(i < n):
                    with T.Then():
                        A[i] = 1
                    with T.Else(), T.If(i % 2 == 0):
                        with T.Else():
                            A[i] = 3
                        with T.Then():
                            A[i] = 2

    a = poisoned(12)
    run(main, a, 7)
    assert a.tolist() == [1] * 7 + [3, 2, 3, 2, 3]


def test_a_condition_known_now_takes_one_side(run):
    def written(left: bool):
        @T.prim_func
        def main(A: T.Tensor((2,), "int32")):
            with T.Kernel(1, threads=4):
                with T.If(left):
                    with T.Then():
                        A[0] = 1
                    with T.Else():
                        A[1] = 2

        return main

    for left, wanted in ((True, [1, 0]), (False, [0, 2])):
        a = np.zeros(2, np.int32)
        run(written(left), a)
        assert a.tolist() == wanted


def test_variables_are_stored_in_sides_and_loops_are_left_there(run):
    @T.prim_func
    def main(A: T.Tensor((9,), "int32"), B: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=4):
            total = T.alloc_var("int32", 0)
            last = T.alloc_var("int32", -1)
            for i in T.serial(9):
                with T.If(A[i] > 5), T.Then():
                    T.loop_break()
                with T.If(A[i] % 2 == 1), T.Then():
                    total = total + A[i]
                    last = i
            B[0] = total
            B[1] = last

    b = poisoned(2)
    run(main, counted(9), b)
    assert b.tolist() == [9, 5]


def test_a_while_loop_as_a_frame(run):
    @T.prim_func
    def main(A: T.Tensor((7,), "int32"), B: T.Tensor((1,), "int32")):
        with T.Kernel(1, threads=1):
            state = T.alloc_local((2,), "int32")
            state[0] = 0
            state[1] = 0
            with T.While(state[0] < 7):
                state[1] = state[1] + A[state[0]]
                state[0] = state[0] + 2
            B[0] = state[1]

    b = poisoned(1)
    run(main, counted(7), b)
    assert b.tolist() == [0 + 2 + 4 + 6]


def test_a_block_states_what_it_touches(run):
    @T.prim_func
    def main(A: T.Tensor((5, 6), "int32"), B: T.Tensor((5, 6), "int32")):
        with T.Kernel(5, threads=8) as row:
            for j in T.serial(8):
                with T.sblock("B"):
                    vi = T.axis.spatial(5, row)
                    vj = T.axis.spatial(8, j)
                    T.where(j < 6)
                    T.reads(A[vi, 0:6], A[vi, vj])
                    T.writes([B[vi, vj]])
                    T.sblock_attr({"anything": 1})
                    B[vi, vj] = A[vi, vj] * 2

    a, b = counted(5, 6), poisoned(5, 6)
    run(main, a, b)
    np.testing.assert_array_equal(b, a * 2)


def test_a_block_starts_its_reduction_once(run):
    @T.prim_func
    def main(A: T.Tensor((3, 7), "int32"), B: T.Tensor((3,), "int32"), C: T.Tensor((3,), "int32")):
        with T.Kernel(1, threads=1):
            for i, k in T.grid(3, 7):
                with T.block("sum"):
                    vi, vk = T.axis.remap("SR", [i, k])
                    with T.init():
                        B[vi] = 100
                    B[vi] = B[vi] + A[vi, vk]
            for i in T.serial(3):
                for k in T.serial(2, 7):
                    with T.sblock("rest"):
                        vi = T.axis.spatial(3, i)
                        vk = T.axis.reduce((2, 7), k)
                        with T.init():
                            C[vi] = 0
                        C[vi] = C[vi] + A[vi, vk]

    a, b, c = counted(3, 7), poisoned(3), poisoned(3)
    run(main, a, b, c)
    np.testing.assert_array_equal(b, a.sum(1) + 100)
    np.testing.assert_array_equal(c, a[:, 2:].sum(1))


def test_indices_of_threads_as_loops_and_as_values(run):
    @T.prim_func
    def main(A: T.Tensor((3, 4, 8), "int32")):
        with T.Kernel(3, threads=(8, 4)) as b:
            ty = T.thread_binding(4, thread="threadIdx.y")
            block = T.thread_binding(0, 3, thread="blockIdx.x")
            for tx in T.thread_binding(10, 18, thread="threadIdx.x"):
                A[b, ty, tx - 10] = block * 1000 + ty * 100 + tx

    a = poisoned(3, 4, 8)
    run(main, a)
    b, y, x = np.indices(a.shape)
    np.testing.assert_array_equal(a, b * 1000 + y * 100 + x + 10)


def test_index_of_threads_by_position(run):
    @T.prim_func
    def main(A: T.Tensor((32,), "int32"), n: T.int32):
        with T.Kernel(n, threads=16) as b:
            bx = T.thread_binding(0, n, "blockIdx.x")
            bz = T.thread_binding(0, 1, "blockIdx.z")
            with T.thread_binding(16, "threadIdx.x") as tx:
                A[b * 16 + tx] = bx * 100 + tx + bz

    a = poisoned(32)
    run(main, a, 2)
    assert a.tolist() == [*range(16), *range(100, 116)]


def test_names_stand_for_values_that_are_taken_once(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32"), B: T.Tensor((8, 4), "int32")):
        with T.Kernel(1, threads=8):
            for i in T.serial(8):
                x = T.int32()
                T.let(x, A[i] * 2)
                A[i] = 0
                y = T.int32()
                with T.let(y, x + 1.5):
                    B[i, 0] = y
                B[i, 1] = x
                z = T.int32()
                B[i, 2] = T.let(z, x + 1, z * z)
                w = T.int32()
                B[i, 3] = T.Let(w + z, {z: x, w: z + 1})

    a, b = counted(8), poisoned(8, 4)
    run(main, a, b)
    assert b.tolist() == [[x + 1, x, (x + 1) ** 2, 2 * x + 1] for x in range(0, 16, 2)]
