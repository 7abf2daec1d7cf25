"""`tile.jit` around functions whose body is the kernel."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import tile_api as tile
import tile_api.language as T
from tile_core.errors import (
    ArgumentCountError,
    ArgumentLayoutError,
    ArgumentShapeError,
    ArgumentTypeError,
    ConstBindingError,
    FrontendTypeError,
    MissingReturn,
    OutputError,
)


@pytest.fixture
def add():
    """A function in eager style; `add.traced` holds the sizes of each full trace."""
    traced = []

    @tile.jit(target="interpret")
    def add(A, B, block=4, *, scale=1):
        M, N = T.const("M, N")
        A: T.Tensor((M, N), "int32")
        B: T.Tensor((M, N), "int32")
        C = T.empty((M, N), "int32")
        if isinstance(M, int):
            traced.append((M, N, block, scale))
        with T.Kernel(T.ceildiv(M, block), threads=32) as bx:
            for i, j in T.Parallel(block, N):
                C[bx * block + i, j] = A[bx * block + i, j] + B[bx * block + i, j] * scale
        return C

    add.traced = traced
    return add


def i32(*shape):
    return np.arange(np.prod(shape), dtype=np.int32).reshape(shape)


def test_a_call_compiles_and_runs(add):
    a = i32(6, 3)
    found = add(a, a)
    assert add.mode == "eager"
    assert isinstance(found, np.ndarray)
    assert np.array_equal(found, 2 * a)
    found = add(torch.from_numpy(a), torch.from_numpy(a), scale=3)
    assert torch.equal(found, torch.from_numpy(4 * a))


def test_kernels_are_made_once_per_sizes_and_values(add):
    for shape in ((6, 3), (2, 5), (6, 3)):
        a = i32(*shape)
        add(a, a)
        add(A=a, B=a)
        add(a, a, 4)
        add(torch.from_numpy(a), torch.from_numpy(a))
    assert add.traced == [(6, 3, 4, 1), (2, 5, 4, 1)]
    add(a, a, 2)
    add(a, a, block=2)
    add(a, a, scale=True)
    assert add.traced[2:] == [(6, 3, 2, 1), (6, 3, 4, True)]


def test_compiling_without_tensors(add):
    kernel = add.compile(M=6, N=3, block=2)
    assert add.compile(i32(6, 3), i32(6, 3), 2) is kernel
    assert add.compile(A=i32(6, 3), N=3, block=2) is kernel
    assert np.array_equal(kernel(i32(6, 3), i32(6, 3)), 2 * i32(6, 3))
    assert add.get_tir(M=6, N=3).params[0].shape == (6, 3)
    assert add.get_kernel_source(M=6, N=3, block=2) == kernel.kernel_source
    assert [k.params[0].shape for k in add.par_compile([{"M": 2, "N": 3}, {"M": 4, "N": 5}])] == [
        (2, 3),
        (4, 5),
    ]


def test_what_was_compiled_at_once_is_found_by_calls(add):
    first, second = add.par_compile([{"M": 6, "N": 5}, {"M": 3, "N": 7}])
    assert add.compile(M=6, N=5) is first
    a = np.ones((3, 7), np.int32)
    assert add(a, a).tolist() == [[2] * 7] * 3
    assert add.compile(a, a) is second
    assert {first.compile_key(), second.compile_key()} <= set(add.compile_keys())


def test_what_does_not_determine_the_constants(add):
    with pytest.raises(ConstBindingError) as caught:
        add.compile(M=6)
    assert caught.value.message == "the value of the constant 'N' is not known"
    with pytest.raises(ConstBindingError) as caught:
        add.compile(i32(6, 3), M=7)
    assert caught.value.message == "M=7 was given, and M is 6 in A"
    with pytest.raises(ArgumentCountError) as caught:
        add.compile(M=6, N=3, K=1)
    assert caught.value.message == "add has no parameter and no T.const 'K'"
    with pytest.raises(FrontendTypeError) as caught:
        add.compile(M=6.0, N=3)
    assert caught.value.message == "the constant 'M' of add is an int, got float"


@pytest.mark.parametrize(
    ("args", "error", "message"),
    [
        ((i32(6, 3),), ArgumentCountError,
         "add(A, B, block=4, *, scale=1): missing a required argument: 'B'"),
        ((i32(6, 3), 4), ArgumentTypeError, "add.B: expected a tensor, got int"),
        (([1], i32(6, 3)), ArgumentTypeError, "add.A: expected a tensor, got list"),
        ((i32(6), i32(6, 3)), ArgumentShapeError, "add.A.ndim: expected 2 [M, N], got 1 [6]"),
        ((i32(6, 3), i32(6)), ArgumentShapeError, "add.B.ndim: expected 2 [6, 3], got 1 [6]"),
        ((i32(6, 3), i32(6, 4)), ArgumentShapeError, "add.B.shape[1]: expected 3, got 4"),
        ((i32(6, 3), i32(3, 6).T), ArgumentLayoutError, "add.B.strides[0]: expected 3, got 1"),
        ((torch.zeros(6, 3).to_sparse(), i32(6, 3)), ArgumentLayoutError,
         "add.A: the tensor is not plain memory: it is stored as torch.sparse_coo"),
    ],
)  # fmt: skip
def test_refused(add, args, error, message):
    with pytest.raises(error) as caught:
        add(*args)
    assert type(caught.value) is error
    assert caught.value.message == message


def test_strides_bind_constants():
    @tile.jit(target="interpret")
    def rows(A):
        M, N, S = T.const("M N S")
        A: T.StridedTensor((M, N), (S, 1), "float32")
        B = T.empty((M,), "float32")
        with T.Kernel(M) as bx:
            B[bx] = A[bx, N - 1] + S
        return B

    a = np.arange(12, dtype=np.float32).reshape(3, 4)
    assert rows(a).tolist() == [7, 11, 15]
    assert rows(a[:, :2]).tolist() == [5, 9, 13]
    assert rows(torch.from_numpy(a)[::2]).tolist() == [11, 19]
    assert rows.compile(M=3, N=4, S=4) is rows.compile(a)


def test_packed_elements_count_twice():
    @tile.jit(target="interpret")
    def last(A):
        N = T.const("N")
        A: T.Tensor((N,), "int4")
        B = T.empty((1,), "int32")
        with T.Kernel(1):
            B[0] = T.cast(A[N - 1], "int32")
        return B

    assert last(np.array([0x21, 0xF3], np.uint8)).tolist() == [-1]


def test_dynamic_sizes_share_a_kernel():
    m = T.dynamic("m")
    traces = []

    @tile.jit(target="interpret")
    def twice(A):
        N = T.const("N")
        A: T.Tensor((m, N), "int32")
        B = T.empty((m, N), "int32")
        traces.append(N)
        with T.Kernel(m) as bx:
            for j in T.serial(N):
                B[bx, j] = A[bx, j] * 2
        return B

    for size in (1, 5, 3):
        assert np.array_equal(twice(i32(size, 2)), 2 * i32(size, 2))
    assert traces[1:] == [2]


def test_several_outputs_and_none():
    @tile.jit(target="interpret")
    def both(A):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        B = T.empty((N,), "int32")
        C = T.empty((1,), "float32")
        with T.Kernel(N) as bx:
            B[bx] = A[bx] + 1
            if bx == 0:
                C[0] = 0.5
        return C, B

    c, b = both(i32(3))
    assert (b.tolist(), c.tolist()) == ([1, 2, 3], [0.5])

    @tile.jit(target="interpret")
    def in_place(A, n):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        with T.Kernel(N) as bx:
            A[bx] = n

    a = i32(3)
    assert in_place(a, 9) is None
    assert a.tolist() == [9, 9, 9]


def test_tensors_in_the_signature_need_no_constants():
    @tile.jit(target="interpret")
    def negate(A: T.Tensor((3,), "int32"), sign=-1):
        B = T.empty((3,), "int32")
        with T.Kernel(3) as bx:
            B[bx] = A[bx] * sign
        return B

    assert negate(i32(3)).tolist() == [0, -1, -2]
    assert negate(i32(3), 2).tolist() == [0, 2, 4]
    assert negate.compile(sign=5)(i32(3)).tolist() == [0, 5, 10]
    with pytest.raises(ArgumentShapeError, match=r"negate\.A\.shape\[0\]: expected 3, got 4"):
        negate(i32(4))


def test_outputs_are_stated_in_the_body_only():
    @tile.jit(out_idx=[-1], target="interpret")
    def f(A):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        with T.Kernel(N) as bx:
            A[bx] = 1

    with pytest.raises(OutputError) as caught:
        f(i32(3))
    assert isinstance(caught.value, ValueError)
    assert caught.value.message == "f is in eager style, where out_idx has no meaning"
    assert caught.value.hint == "declare outputs with T.empty and return them"


def test_declared_outputs_must_be_returned():
    @tile.jit(target="interpret")
    def f(A):
        N = T.const("N")
        A: T.Tensor((N,), "int32")
        B = T.empty((N,), "int32")
        with T.Kernel(N) as bx:
            B[bx] = A[bx]

    with pytest.raises(MissingReturn, match=r"'B' is declared with T\.empty but not returned"):
        f(i32(3))


def test_compile_time_values_must_be_keys(add):
    with pytest.raises(FrontendTypeError, match="of type ndarray cannot be part of a cache key"):
        add(i32(6, 3), i32(6, 3), scale=i32(2))


def test_the_environment_is_part_of_the_arguments(monkeypatch):
    @tile.jit
    def one(A):
        A: T.Tensor((1,), "int32")
        with T.Kernel(1):
            A[0] = A[0] + 1

    a = np.zeros(1, np.int32)
    monkeypatch.setenv("TILE_TARGET", "toy")
    one(a)
    assert one.compile(a).target == "toy"
    monkeypatch.setenv("TILE_INTERPRET", "1")
    one(a)
    assert one.compile(a).target == "interpret"
    assert a.tolist() == [2]
