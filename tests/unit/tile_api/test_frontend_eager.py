"""The eager style: constants, declared tensors, outputs."""

from __future__ import annotations

import pytest

import tile_api.language as T
from tile_api.frontend.eager import ConstBinding, eager_function, is_eager
from tile_core.errors import (
    ConstBindingError,
    MissingReturn,
    OutputError,
    ScopeError,
    SignatureError,
)


def add(A, B, block=4, *, scale=1):
    M, N = T.const("M, N")
    A: T.Tensor((M, N), "float32")
    B: T.Tensor[[M, N], T.float32]
    C = T.empty((M, N), "float32")
    with T.Kernel(T.ceildiv(M, block), threads=32) as bx:
        for i, j in T.Parallel(block, N):
            C[bx * block + i, j] = A[bx * block + i, j] + B[bx * block + i, j] * scale
    return C


def trace(function, compile_time, **constants):
    parsed = eager_function(function)
    parsed.signature(compile_time)
    return parsed.trace(compile_time, constants)


def test_phase_one_finds_what_fixes_the_constants():
    parsed = eager_function(add)
    assert parsed.tensor_names == ("A", "B")
    signature = parsed.signature({"block": 4, "scale": 2})
    assert signature.constants == {"M": ConstBinding("A", 0), "N": ConstBinding("A", 1)}
    assert list(signature.tensors) == ["A", "B"]


def test_phase_two_sees_integers():
    kernel = trace(add, {"block": 4, "scale": 2}, M=12, N=8)
    assert [(p.name, p.shape) for p in kernel.params] == [
        ("A", (12, 8)),
        ("B", (12, 8)),
        ("C", (12, 8)),
    ]
    assert kernel.outputs == (2,)
    assert kernel.name == "add"


def test_strides_and_dynamic_dimensions():
    k = T.dynamic("k")

    def f(A, B):
        N, S = T.const("N S")
        A: T.StridedTensor((k, N), (S, 1), "float16")
        B: T.Tensor((N,), "float16")
        with T.Kernel(k) as bx:
            B[0] = A[bx, S - N]

    assert eager_function(f).signature({}).constants == {
        "N": ConstBinding("A", 1),
        "S": ConstBinding("A", 0, is_stride=True),
    }
    kernel = trace(f, {}, N=4, S=6)
    assert kernel.params[0].shape[0] is k
    assert kernel.params[0].strides == (6, 1)


def test_tensors_declared_in_the_signature(kernel_from):
    f = kernel_from("""
        n = 16
        def f(A: T.Tensor((n,), "float32"), m):
            C = T.empty(n, m)
            with T.Kernel(n) as bx:
                C[bx, 0] = A[bx]
            return C
    """)
    assert is_eager(f)
    kernel = trace(f, {"m": 2})
    assert [p.shape for p in kernel.params] == [(16,), (16, 2)]


def test_which_functions_are_eager():
    def factory(M):
        @T.prim_func
        def main(A: T.Tensor((M,), "float32")):
            with T.Kernel(1) as bx:
                A[0] = 0

        return main

    def forwarding(M):
        return factory(M)

    assert is_eager(add)
    assert not is_eager(factory)
    assert not is_eager(forwarding)


def test_statements_before_the_kernel_run_in_both_phases():
    runs = []

    def f(A, n):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        runs.append(isinstance(N, int))
        with T.Kernel(1) as bx:
            runs.append("kernel")
            A[0] = n

    trace(f, {"n": 3}, N=4)
    assert runs == [False, True, "kernel"]


def test_constants_must_be_dimensions():
    def f(A):
        M = T.const("M")
        A: T.Tensor((M * 2,), "int32")
        with T.Kernel(1) as bx:
            A[0] = 1

    with pytest.raises(ConstBindingError, match="no dimension or stride") as caught:
        eager_function(f).signature({})
    assert isinstance(caught.value, RuntimeError)
    assert caught.value.span.line == f.__code__.co_firstlineno + 1


def test_constants_need_a_value_and_an_eager_body():
    with pytest.raises(ConstBindingError, match="the value of the constant 'M' is not known"):
        trace(add, {"block": 4, "scale": 1})
    with pytest.raises(ConstBindingError, match="eager"):
        T.const("M")

    with pytest.raises(ConstBindingError, match="eager"):

        @T.prim_func
        def f(A: T.Tensor((4,), "int32")):
            M = T.const("M")


def test_outputs_must_be_returned():
    def forgets(A):
        A: T.Tensor((4,), "int32")
        C = T.empty((4,), "int32")
        with T.Kernel(4) as bx:
            C[bx] = A[bx]

    def returns_an_input(A):
        A: T.Tensor((4,), "int32")
        with T.Kernel(4) as bx:
            A[bx] = 1
        return A

    with pytest.raises(MissingReturn, match="'C'"):
        trace(forgets, {})
    with pytest.raises(OutputError, match=r"T\.empty"):
        trace(returns_an_input, {})


def test_tensors_are_declared_before_the_kernel():
    def late(A):
        with T.Kernel(4) as bx:
            A: T.Tensor((4,), "int32")
            A[bx] = 1

    with pytest.raises((SignatureError, ScopeError)):
        trace(late, {})
