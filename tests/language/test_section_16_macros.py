"""Macros, helper classes, C functions, statements for their effect."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import counted, drawn, poisoned
from tile_core.errors import TileError


@T.macro
def add_to(B, i, value, times=1):
    """Macros of the module are shared."""
    for _ in T.serial(times):
        B[i] += value


def test_macros_take_buffers_values_and_keywords(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32"), n: T.int32):
        with T.Kernel(1):
            add_to(A, 0, 5)
            add_to(A, 1, n, times=3)
            add_to(A, times=2, value=n + 1, i=2)
            for i in T.serial(4):
                add_to(A, i, i * 100)

    a = counted(4)
    run(main, a, 7)
    assert a.tolist() == [5, 122, 218, 303]


def test_arguments_are_evaluated_once(run):
    @T.macro
    def twice(B, x):
        B[0] = 100
        B[1] = x
        B[2] = x

    @T.prim_func
    def main(A: T.Tensor((3,), "int32")):
        with T.Kernel(1):
            twice(A, A[0] + 1)

    a = counted(3, start=4)
    run(main, a)
    assert a.tolist() == [100, 5, 5]


def test_names_are_hygienic_and_buffers_are_captured(run):
    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1, threads=32):
            S = T.alloc_shared((4,), "int32")

            @T.macro
            def fill(k):
                x = k * 2
                for i in T.serial(4):
                    S[i] = x + i

            x = A[1]
            i = A[2]
            fill(10)
            A[0] = S[3] + x + i
            fill(x)
            A[3] = S[0]

    a = counted(4)
    run(main, a)
    assert a.tolist() == [26, 1, 2, 2]


def test_macros_return_values_and_nest(run):
    @T.macro
    def square(x):
        return x * x

    @T.macro
    def norm(x, y):
        s = square(x) + square(y)
        return s, x - y

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            s, d = norm(A[0], A[1])
            A[2] = s
            A[3] = d

    a = counted(4, start=3)
    run(main, a)
    assert a.tolist() == [3, 4, 25, -1]

    @T.macro
    def early(x):
        if x > 0:
            return x
        return 0

    with pytest.raises(NotImplementedError) as caught:

        @T.prim_func
        def wrong(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                A[0] = early(A[1])

    assert isinstance(caught.value, TileError)


def test_references(run):
    @T.macro
    def step(x: T.Ref, by):
        x = x + by
        x += 1

    @T.macro
    def clear(x: T.Ref):
        x = 0

    @T.prim_func
    def main(A: T.Tensor((4,), "int32")):
        with T.Kernel(1):
            v = T.alloc_var("int32", 10)
            step(v, 5)
            A[0] = v
            step(A[1], 100)
            for i in T.serial(2, 4):
                step(A[i], i)
            clear(v)
            A[0] = A[0] + v

    a = counted(4)
    run(main, a)
    assert a.tolist() == [16, 102, 5, 7]


def test_a_value_is_no_reference():
    @T.macro
    def step(x: T.Ref):
        x = x + 1

    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                step(A[0] + 1)


def test_methods_closures_and_python_arguments(run):
    class Scale:
        def __init__(self, by):
            self.by = by

        @T.macro
        def apply(self, B, i):
            B[i] = B[i] * self.by

    def adder(k):
        @T.macro
        def add(B, i):
            B[i] = B[i] + k

        return add

    scale, add = Scale(10), adder(3)

    @T.macro
    def chain(B, i, first, second):
        first(B, i)
        second(B, i)

    @T.prim_func
    def main(A: T.Tensor((3,), "int32")):
        with T.Kernel(1):
            for i in T.serial(3):
                chain(A, i, scale.apply, add)

    a = counted(3)
    run(main, a)
    assert a.tolist() == [3, 13, 23]


def test_a_macro_with_tile_operators_and_allocations(run):
    @T.macro
    def softmax(X, rows, cols):
        peak = T.alloc_fragment((rows,), "float32")
        total = T.alloc_fragment((rows,), "float32")
        T.reduce_max(X, peak, dim=1)
        for i, j in T.Parallel(rows, cols):
            X[i, j] = T.exp(X[i, j] - peak[i])
        T.reduce_sum(X, total, dim=1)
        for i, j in T.Parallel(rows, cols):
            X[i, j] = X[i, j] / total[i]

    @T.prim_func
    def main(A: T.Tensor((5, 7), "float32"), B: T.Tensor((5, 7), "float32")):
        with T.Kernel(1, threads=32):
            X = T.alloc_fragment((5, 7), "float32")
            T.copy(A, X)
            softmax(X, 5, 7)
            T.copy(X, B)

    a, b = drawn(5, 7), poisoned(5, 7, dtype="float32")
    run(main, a, b)
    e = np.exp(a - a.max(1, keepdims=True))
    np.testing.assert_allclose(b, e / e.sum(1, keepdims=True), rtol=1e-5)


def test_macros_are_no_operands():
    @T.macro
    def positive(x):
        return x > 0

    with pytest.raises(TileError):

        @T.prim_func
        def main(A: T.Tensor((4,), "int32")):
            with T.Kernel(1):
                if A[0] > 1 and positive(A[1]):
                    A[0] = 1


def test_classes_of_helpers(run):
    @T.meta_class
    class Counter:
        def __init__(self, start):
            self.value = T.alloc_var("int32", start)

        @T.inline
        def bump(self, by):
            self.value = self.value + by

    @T.prim_func
    def main(A: T.Tensor((3,), "int32")):
        with T.Kernel(1):
            c = Counter(5)
            for i in T.serial(3):
                c.bump(i)
                A[i] = c.value

    a = poisoned(3)
    run(main, a)
    assert a.tolist() == [5, 6, 8]


C_TEXT = """
#include <math.h>
#include <stdint.h>
static int calls = 0;
float scaled(float x, int k) { return x * k; }
double wide(double x, int64_t k) { return x + k; }
int32_t halved(int8_t x) { return x / 2; }
_Bool odd(uint32_t x) { return x & 1; }
void add_all(const float *a, float *out, int n) { for (int i = 0; i < n; i++) out[0] += a[i]; }
"""


def test_functions_in_c(run):
    @T.prim_func
    def main(
        A: T.Tensor((4,), "float32"), B: T.Tensor((5,), "float64"), S: T.Tensor((1,), "float32")
    ):
        T.import_source(C_TEXT)
        T.import_source(C_TEXT)
        with T.Kernel(1, threads=1):
            B[0] = T.call_extern("float32", "scaled", A[1], 3)
            B[1] = T.call_extern(T.float64, "wide", T.cast(A[2], "float64"), T.int64(2**40))
            B[2] = T.call_pure_extern("int32", "halved", T.int8(-9))
            B[3] = T.if_then_else(T.call_extern("bool", "odd", T.uint32(7)), 1.0, 0.0)
            B[4] = T.call_extern("float64", "hypot", T.float64(3.0), T.float64(4.0))
            S[0] = 0
            for i in T.serial(2):
                T.call_extern(
                    "handle", "add_all", T.access_ptr(A[i * 2], "r"), T.address_of(S[0]), 2
                )

    a, b, s = (
        counted(4, dtype="float32", start=1),
        poisoned(5, dtype="float64"),
        poisoned(1, dtype="float32"),
    )
    if run.target == "interpret":
        with pytest.raises(TileError):
            run(main, a, b, s)
        return
    run(main, a, b, s)
    assert b.tolist() == [6, 3 + 2**40, -4, 1, 5]
    assert s.tolist() == [10]


def test_c_functions_in_parallel_loops_and_threads(run):
    if run.target == "interpret":
        pytest.skip("the interpreter does not run C text")

    @T.prim_func
    def main(
        A: T.Tensor((8,), "float32"), B: T.Tensor((8,), "float32"), C: T.Tensor((8,), "float32")
    ):
        T.import_source(C_TEXT)
        with T.Kernel(1, threads=8):
            tx = T.get_thread_binding()
            B[tx] = T.call_extern("float32", "scaled", A[tx], tx)
        with T.Kernel(1, threads=8):
            for i in T.Parallel(8):
                C[i] = T.call_extern("float32", "scaled", A[i], 2) + 1

    a, b, c = (
        counted(8, dtype="float32"),
        poisoned(8, dtype="float32"),
        poisoned(8, dtype="float32"),
    )
    run(main, a, b, c)
    assert np.array_equal(b, a * a)
    assert np.array_equal(c, 2 * a + 1)


def test_a_pointer_outside_its_tensor_skips_the_call(run):
    if run.target == "interpret":
        pytest.skip("the interpreter does not run C text")

    @T.prim_func
    def main(A: T.Tensor((4,), "float32"), S: T.Tensor((4,), "float32"), k: T.int32):
        T.import_source(C_TEXT)
        with T.Kernel(1, threads=1):
            for i in T.serial(4):
                T.call_extern("handle", "add_all", T.address_of(A[k + i]), T.address_of(S[i]), 1)

    s = np.zeros(4, "float32")
    run(main, counted(4, dtype="float32", start=1), s, 2)
    assert s.tolist() == [3, 4, 0, 0]


def test_an_unknown_c_function():
    @T.prim_func
    def main(A: T.Tensor((4,), "float32")):
        with T.Kernel(1, threads=1):
            A[0] = T.call_extern("float32", "no_such_function_anywhere", A[1])

    with pytest.raises(TileError, match="no_such_function_anywhere"):
        tile.compile(main, target="cpu")


def test_statements_for_their_effect(run):
    @T.prim_func
    def main(A: T.Tensor((2,), "int32")):
        with T.Kernel(1, threads=1):
            T.evaluate(0)
            T.evaluate(T.atomic_add(A[0], 5, return_prev=True))
            A[1] + 3
            "text"
            4.5

    a = counted(2)
    run(main, a)
    assert a.tolist() == [5, 1]


def test_intrinsics_by_name(run):
    @T.prim_func
    def main(A: T.Tensor((3,), "float32")):
        with T.Kernel(1, threads=1):
            A[1] = T.call_intrin("float32", "tir.sqrt", A[0])
            A[2] = T.call_intrin("float32", "exp2", A[1])

    a = np.array([9, 0, 0], "float32")
    run(main, a)
    assert a.tolist() == [9, 3, 8]
