"""Parameters that are addresses, in eager style: tensors are made of them in the body."""

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from support.arrays import drawn, poisoned
from tile_core.errors import TileError


def scaling(target):
    @tile.jit(target=target)
    def scale(A: T.ptr, B: T.ptr("float32"), n: int, dtype: T.dtype, factor: int = 2):
        A = T.make_tensor(A, (n,), dtype)
        B = T.make_tensor(B, (n,), "float32")
        with T.Kernel(T.ceildiv(n, 32), threads=32) as block:
            for i in T.Parallel(32):
                B[block * 32 + i] = A[block * 32 + i] * factor

    return scale


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("n", [1, 37, 64])
def test_a_call_with_arrays_and_with_addresses(run, n):
    scale = scaling(run.target)
    a, b = drawn(n), poisoned(n, dtype="float32")
    scale(a, b, n, "float32")
    assert np.array_equal(b, a * 2)
    scale(a, B=b.ctypes.data, n=n, dtype="float32", factor=3)
    assert np.array_equal(b, a * 3)


def test_compiling_without_arguments_of_launches(run):
    scale = scaling(run.target)
    kernels = [
        scale.compile(A=T.ptr(), B=T.ptr(), n=40, dtype="float32"),
        scale.compile(T.ptr, None, 40, "float32"),
        *scale.par_compile([{"A": T.ptr(), "B": T.ptr(), "n": 40, "dtype": "float32"}]),
    ]
    for kernel in kernels:
        a, b = drawn(40), poisoned(40, dtype="float32")
        kernel(a, b)
        assert np.array_equal(b, a * 2)
    assert kernels[1] is kernels[0]


def test_pointers_beside_tensors_whose_sizes_are_constants(run):
    @tile.jit(target=run.target)
    def add(where: T.ptr, A: T.Tensor, table):
        n = T.const("n")
        A: T.Tensor((n,), "float32")
        table: T.Tensor((2,), T.ptr)
        C = T.empty((n,), "float32")
        B = T.match_buffer(where, (n,), "float32")
        with T.Kernel(1, threads=32):
            last = T.make_tensor(table[1], (n,), "float32")
            for i in T.Parallel(n):
                C[i] = A[i] + B[i] + last[i]
        return C

    a, b, c = (drawn(21, seed=k) for k in range(3))
    addresses = np.array([0, c.ctypes.data], np.int64)
    assert np.array_equal(add(b, a, addresses), a + b + c)


def test_an_address_is_a_tensor_or_a_number():
    with pytest.raises(TileError) as caught:
        scaling("cpu")(drawn(4), 0.5, 4, "float32")
    assert caught.value.message == "scale.B: expected an address (int) or a tensor, got float"
