"""What statements mean inside a kernel."""

import warnings

import numpy as np
import pytest

import tile_api.language as T
from support.arrays import counted, poisoned
from tile_core.errors import TileError


def test_names_are_values_and_variables_are_places(run):
    @T.prim_func
    def main(A: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            first = A[0]
            A[0] = 100
            A[1] = first
            v = T.alloc_var("int32")
            v = 5
            b = v
            v = v + 1
            A[2] = b
            A[3] = v
            v += 10
            A[4] = v
            w = T.alloc_var("int32")
            w = 1
            v, w = w, v
            A[5] = v
            A[6] = w

    a = counted(8, start=3)
    run(main, a)
    assert a.tolist() == [100, 3, 5, 6, 16, 1, 16, 10]


def test_augmented_names_do_not_accumulate_over_a_loop(run):
    @T.prim_func
    def main(A: T.Tensor((3,), "int32"), n: T.int32):
        with T.Kernel(1):
            x = n + 1
            for i in T.serial(3):
                y = x + 10
                A[i] = y

    a = poisoned(3)
    run(main, a, 1)
    assert a.tolist() == [12, 12, 12]


def test_rebinding_a_name_makes_a_new_value(run):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @T.prim_func
        def main(A: T.Tensor((3,), "int32")):
            with T.Kernel(1):
                x = A[0]
                old = x
                x = x + 1
                A[1] = x
                x += 5
                A[2] = x + old

    a = counted(3, start=4)
    run(main, a)
    assert a.tolist() == [4, 5, 14]


def test_augmented_elements(run):
    @T.prim_func
    def main(A: T.Tensor((9,), "int32"), F: T.Tensor((2,), "float32")):
        with T.Kernel(1):
            A[0] += 2
            A[1] -= 2
            A[2] *= 3
            A[3] //= 2
            A[4] %= 3
            A[5] <<= 1
            A[6] >>= 1
            A[7] |= 8
            A[8] ^= 3
            A[7] &= 14
            F[0] /= 4
            F[1] *= F[1]

    a, f = counted(9, start=10), np.array([1, 3], "float32")
    run(main, a, f)
    assert a.tolist() == [12, 9, 36, 6, 2, 30, 8, 24 & 14 | (17 | 8) & 14, 17]
    assert f.tolist() == [0.25, 9.0]


def test_python_values_stay_python_values(run):
    sizes = [2, 3]

    @T.prim_func
    def main(A: T.Tensor((6,), "int32")):
        total = sizes[0] * sizes[1]
        with T.Kernel(1):
            j = 0
            names = ("x", "y")
            S = T.alloc_shared((total, len(names)), "int32")
            for i in T.serial(total):
                S[i, j] = i + j
                S[i, 1] = 1
                A[i] = S[i, j] + S[i, 1]

    a = poisoned(6)
    run(main, a)
    assert a.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.filterwarnings("ignore:.*is bound again")
def test_tuples_chains_and_nested_targets(run):
    @T.prim_func
    def main(A: T.Tensor((6,), "int32")):
        with T.Kernel(1):
            a, b = A[0], A[1]
            a, b = b, a
            A[0], A[1] = a, b
            c = d = A[2] + 1
            (e, (f, g)) = (c, (d, 7))
            A[3], A[4], A[5] = e, f, g

    a = counted(6, start=1)
    run(main, a)
    assert a.tolist() == [2, 1, 3, 4, 4, 7]


def test_aliases_of_buffers_and_regions(run):
    @T.prim_func
    def main(A: T.Tensor((4, 4), "int32"), B: T.Tensor((2,), "int32")):
        with T.Kernel(1):
            b = A
            b[0, 0] = 9
            r = A[1, 1:3]
            T.copy(r, B)
            row = A[3, :]
            T.fill(row, 5)

    a, b = counted(4, 4), poisoned(2)
    run(main, a, b)
    expected = counted(4, 4)
    expected[0, 0], expected[3] = 9, 5
    assert np.array_equal(a, expected)
    assert b.tolist() == [5, 6]


def test_stores_cast_to_the_type_of_the_buffer(run):
    @T.prim_func
    def main(
        A: T.Tensor((4,), "int8"),
        B: T.Tensor((2,), "float16"),
        C: T.Tensor((2,), "bool"),
        x: T.float32,
    ):
        with T.Kernel(1):
            A[0] = 3
            A[1] = T.int32(300)
            A[2] = x
            A[3] = True
            B[0] = x
            B[1] = 1
            C[0] = 5
            C[1] = 0.0

    a, b, c = poisoned(4, dtype="int8"), poisoned(2, dtype="float16"), np.array([False, True])
    run(main, a, b, c, -2.75)
    assert a.tolist() == [3, 300 - 256, -2, 1]
    assert b.tolist() == [-2.75, 1]
    assert c.tolist() == [True, False]


@pytest.mark.parametrize("flag", [True, False, 0, "", [1]])
def test_python_conditions_choose_while_tracing(run, flag):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")

        @T.prim_func
        def main(A: T.Tensor((1,), "int32")):
            with T.Kernel(1):
                if flag:
                    A[0] = 1
                else:
                    A[0] = 2

    a = poisoned(1)
    run(main, a)
    assert a.tolist() == [1 if flag else 2]


def test_run_time_conditions(run):
    @T.prim_func
    def main(A: T.Tensor((9,), "int32"), B: T.Tensor((9,), "int32"), flag: T.bool()):
        with T.Kernel(1):
            for i in T.serial(9):
                x = A[i]
                if x < 3:
                    B[i] = -1
                elif 3 <= x < 5 or x == 7:
                    B[i] = 1
                elif not (x > 5 and flag):
                    B[i] = 2
                else:
                    B[i] = 3 if x == 6 else 4

    b = poisoned(9)
    run(main, counted(9), b, True)
    assert b.tolist() == [-1, -1, -1, 1, 1, 2, 3, 1, 4]
    run(main, counted(9), b, False)
    assert b.tolist() == [-1, -1, -1, 1, 1, 2, 2, 1, 2]


def test_untaken_operands_are_not_evaluated(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), B: T.Tensor((8,), "int32")):
        with T.Kernel(1):
            S = T.alloc_shared((4,), "int32")
            T.copy(A, S)
            for i in T.serial(8):
                B[i] = S[i] if i < 4 else -1
            for i in T.serial(8):
                if i < 4 and S[i] == 2:
                    B[i] = 100
                if i >= 4 or S[i] == 3:
                    B[i] = B[i] - 10

    b = poisoned(8)
    run(main, counted(4), b)
    assert b.tolist() == [0, 1, 100, -7, -11, -11, -11, -11]


def test_range_is_a_run_time_loop(run):
    @T.prim_func
    def main(A: T.Tensor((4, 7), "int32"), n: T.int32):
        with T.Kernel(1):
            for i in range(n):
                A[0, i] = i
            for i in range(2, n):
                A[1, i] = i
            for i in range(1, n, 2):
                A[2, i] = i
            for i in range(6, 1, -2):
                A[3, i] = i

    a = np.full((4, 7), -1, np.int32)
    run(main, a, 6)
    assert a.tolist() == [
        [0, 1, 2, 3, 4, 5, -1],
        [-1, -1, 2, 3, 4, 5, -1],
        [-1, 1, -1, 3, -1, 5, -1],
        [-1, -1, 2, -1, 4, -1, 6],
    ]


def test_while_break_and_continue(run):
    @T.prim_func
    def main(A: T.Tensor((6,), "int32"), B: T.Tensor((6,), "int32")):
        with T.Kernel(1):
            T.clear(B)
            n = T.alloc_var("int32", 0)
            while n < 6:
                n += 1
                if A[n - 1] % 2 == 0:
                    continue
                if n > 4:
                    break
                B[n - 1] = n
            for i in T.serial(6):
                for j in T.serial(6):
                    if j > i:
                        break
                    if j == 1:
                        continue
                    B[i] += 10
                if i == 3:
                    T.loop_break()

    b = poisoned(6)
    run(main, counted(6, start=1), b)
    assert b.tolist() == [11, 10, 23, 30, 0, 0]


def test_conditions_of_while_loops(run):
    with pytest.raises(RuntimeError):

        @T.prim_func
        def endless(A: T.Tensor((1,), "int32")):
            with T.Kernel(1):
                while True:
                    A[0] = 1

    with pytest.warns(UserWarning, match="while"):

        @T.prim_func
        def never(A: T.Tensor((1,), "int32")):
            with T.Kernel(1):
                A[0] = 3
                while False:
                    A[0] = 1

    a = poisoned(1)
    run(never, a)
    assert a.tolist() == [3]


def test_statements_after_a_break_are_dropped(run):
    with pytest.warns(UserWarning, match="break"):

        @T.prim_func
        def main(A: T.Tensor((2,), "int32")):
            with T.Kernel(1):
                for i in T.serial(2):
                    A[i] = 1
                    break
                    A[i] = 2

    a = poisoned(2)
    run(main, a)
    assert a.tolist() == [1, 77]


def test_assertions(run):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32"), n: T.int32):
        assert n > 0, "positive"
        with T.Kernel(1):
            assert A[0] == 1, "one"
            A[1] = n

    a = np.array([1, 77], np.int32)
    run(main, a, 3)
    assert a.tolist() == [1, 3]
    with pytest.raises(TileError, match="positive"):
        run(main, a, 0)
    with pytest.raises(TileError, match="one"):
        run(main, np.zeros(2, np.int32), 3)
    with pytest.raises(AssertionError, match="python"):

        @T.prim_func
        def static(A: T.Tensor((2,), "int32")):
            with T.Kernel(1):
                assert 1 > 2, "python"


def test_helpers_run_while_tracing(run):
    def square(x):
        return x * x

    class Scale:
        def __init__(self, by):
            self.by = by

        def __call__(self, x):
            return x * self.by

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        """Text is ignored."""
        with T.Kernel(1):
            "So is this."

            def twice(x):
                return x * 2

            s = Scale(10)
            for i in T.Parallel(4):
                A[i] = (lambda x, y: x + y)(square(A[i]), twice(s(i)))

    a = counted(4)
    run(main, a)
    assert a.tolist() == [0, 21, 44, 69]


@pytest.mark.parametrize("form", ["name", "tuple", "list", "none"])
def test_one_block_index(run, form):
    if form == "name":

        @T.prim_func
        def main(A: T.Tensor((3,), "int32")):
            with T.Kernel(3) as bx:
                A[bx] = bx

    elif form == "tuple":

        @T.prim_func
        def main(A: T.Tensor((3,), "int32")):
            with T.Kernel(3) as (bx,):
                A[bx] = bx

    elif form == "list":

        @T.prim_func
        def main(A: T.Tensor((3,), "int32")):
            with T.Kernel(3) as [bx]:
                A[bx] = bx

    else:

        @T.prim_func
        def main(A: T.Tensor((3,), "int32")):
            with T.Kernel(3):
                A[T.get_block_binding(0)] = T.get_block_binding(0)

    a = poisoned(3)
    run(main, a)
    assert a.tolist() == [0, 1, 2]


def attempt(kind):
    if kind == "a name used outside its scope":

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                for i in T.serial(4):
                    x = A[i]
                A[0] = x

    elif kind == "adding to a whole buffer":

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                A += 1

    elif kind == "an attribute as a target":

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                A.x = 1

    elif kind == "a buffer as a condition":

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                if A:
                    A[0] = 1

    elif kind == "a loop over a list":

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                for x in [1, 2]:
                    A[x] = 1


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("a name used outside its scope", RuntimeError),
        ("adding to a whole buffer", RuntimeError),
        ("an attribute as a target", TileError),
        ("a buffer as a condition", TypeError),
        ("a loop over a list", TypeError),
    ],
)
def test_refused_statements(kind, error):
    with pytest.raises(error) as caught:
        attempt(kind)
    assert isinstance(caught.value, TileError)
    assert caught.value.span is not None
    assert caught.value.span.file == __file__
