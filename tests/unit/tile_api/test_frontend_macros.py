"""Macros: what arguments and names mean where a macro is expanded."""

from __future__ import annotations

import functools

import pytest

import tile_api.language as T
from support.printed import body
from tile_core.errors import ControlFlowError, FrontendTypeError, ReturnInControlFlow, ScopeError


@T.macro
def scale(buf, index, factor=2, *, offset=0):
    x = buf[index] * factor
    buf[index] = x + offset


@T.macro
def increment(x: T.Ref, by):
    x = x + by


def test_scalars_by_value_buffers_by_reference_defaults_and_keywords():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(8) as bx:
            x = 5
            scale(A, bx + n)
            scale(A, 0, offset=x, factor=n)

    assert body(f) == [
        "let index: int32 = bx + n",
        "let x: int32 = A[index] * 2",
        "A[index] = x",
        "let x_1: int32 = A[0] * n",
        "A[0] = x_1 + 5",
    ]


def test_a_variable_is_read_at_the_call():
    @T.macro
    def write(buf, value):
        buf[0] = 9
        buf[1] = value

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            v = T.alloc_var("int32", init=1)
            write(A, v)
            write(A, A[0])

    assert body(f)[2:] == [
        "let value: int32 = v[0]",
        "A[0] = 9",
        "A[1] = value",
        "let value_1: int32 = A[0]",
        "A[0] = 9",
        "A[1] = value_1",
    ]


def test_references_store_to_the_argument():
    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(8) as bx:
            v = T.alloc_var("int32", init=0)
            increment(v, 3)
            increment(A[bx], v)
            increment(A[A[0]], 1)

    @T.macro
    def blank(part: T.Ref):
        part = 0

    @T.prim_func
    def h(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(8) as bx:
            blank(A[n : n + 2])

    assert body(h) == ["@fill(dst=A[n:2], value=0)"]

    assert body(f)[2:] == [
        "v[0] = v[0] + 3",
        "let by: int32 = v[0]",
        "A[bx] = A[bx] + by",
        "let x: int32 = A[0]",
        "A[x] = A[x] + 1",
    ]
    with pytest.raises(FrontendTypeError, match=r"T\.Ref parameter 'x'"):

        @T.prim_func
        def g(A: T.Tensor((8,), "int32")):
            with T.Kernel(8) as bx:
                increment(bx, 3)


def test_names_are_the_macro_s_own():
    @T.macro
    def bind_x(buf):
        x = buf[3]
        buf[4] = x

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            x = 1
            for _ in range(2):
                bind_x(A)
            A[0] = x

    assert body(f)[-1] == "A[0] = 1"


def test_values_are_returned_from_the_end():
    @T.macro
    def total(buf, n):
        acc = T.alloc_var("int32", init=0)
        for i in range(n):
            acc += buf[i]
        return acc, n + 1

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            s, m = total(A, 4)
            A[m] = s

    assert body(f)[-2:] == ["let s: int32 = acc[0]", "A[5] = s"]

    @T.macro
    def early(n):
        if n > 0:
            return 1
        return 2

    with pytest.raises(ReturnInControlFlow, match="alloc_var") as caught:

        @T.prim_func
        def g(A: T.Tensor((8,), "int32"), n: T.int32):
            with T.Kernel(1) as bx:
                A[0] = early(n)

    assert any("while expanding 'early'" in note.text for note in caught.value.notes)

    @T.prim_func
    def h(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            A[0] = early(3)

    assert body(h) == ["A[0] = 1"]


def test_macros_nest_and_capture():
    def make(amount):
        @T.macro
        def inner(buf, i):
            buf[i] += amount

        @T.macro
        def outer(buf):
            for i in range(3):
                inner(buf, i)

        return outer

    add_seven = make(7)

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            tile = T.alloc_local((4,), "int32")

            @T.macro
            def into_tile(i):
                tile[i] = A[i]

            add_seven(A)
            into_tile(2)

    assert body(f) == [
        "alloc tile: local int32[4]",
        "for i: int32 in range(0, 3, 1) serial:",
        "  A[i] = A[i] + 7",
        "tile[2] = A[2]",
    ]


def test_methods_can_be_macros():
    class Helper:
        def __init__(self, size):
            self.size = size

        @T.macro
        def clear(self, buf):
            for i in range(self.size):
                buf[i] = 0

    helper = Helper(5)

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            helper.clear(A)

    assert body(f)[0] == "for i: int32 in range(0, 5, 1) serial:"


def test_meta_classes_keep_state_while_tracing():
    @T.meta_class
    class Counter:
        def __init__(self, start):
            self.value = T.alloc_var("int32", init=start)
            self.calls = 0

        def bump(self):
            self.value += 1
            self.calls = self.calls + 1

    @T.prim_func
    def f(A: T.Tensor((8,), "int32")):
        with T.Kernel(1) as bx:
            c = Counter(4)
            c.bump()
            c.bump()
            A[c.calls] = c.value

    assert body(f) == [
        "alloc value: local.var int32[1]",
        "value[0] = 4",
        "value[0] = value[0] + 1",
        "value[0] = value[0] + 1",
        "A[2] = value[0]",
    ]


@pytest.mark.parametrize("use", ["n > 0 and one()", "one() or n > 0", "one() if n > 0 else 2"])
def test_macros_are_refused_in_operands(use, kernel_from):
    with pytest.raises(ControlFlowError, match="the macro 'one' is called in an operand"):
        kernel_from(f"""
            @T.macro
            def one():
                return 1

            @T.prim_func
            def f(A: T.Tensor((8,), "int32"), n: T.int32):
                with T.Kernel(1) as bx:
                    x = {use}
        """)


def test_macros_need_a_kernel_and_an_end():
    with pytest.raises(ScopeError, match="the macro 'scale'"):
        scale(None, 0)

    @T.macro
    def forever(n):
        forever(n)

    with pytest.raises(ControlFlowError, match="calls itself without end"):

        @T.prim_func
        def f(n: T.int32):
            with T.Kernel(1) as bx:
                forever(n)


def test_plain_functions_and_lambdas_build_expressions():
    def square(x):
        return x * x

    @T.prim_func
    def f(A: T.Tensor((8,), "int32"), n: T.int32):
        with T.Kernel(1) as bx:
            twice = functools.partial(lambda x: x + x)
            A[0] = square(n) + twice(n)
            A[1] = sum([square(n) for _ in range(2)])

    assert body(f) == ["A[0] = n * n + (n + n)", "A[1] = n * n + n * n"]
