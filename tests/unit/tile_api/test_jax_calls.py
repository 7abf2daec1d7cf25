"""Kernels as functions of JAX: eager, traced, batched and differentiated."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import tile_api as tile
import tile_api.language as T
from tile_core.errors import ArgumentDtypeError, ArgumentShapeError, JaxCallError

jax = pytest.importorskip("jax")
jnp = jax.numpy

m = T.dynamic("m")


@T.prim_func
def fma(
    A: T.Tensor((m, 8), "float32"),
    B: T.Tensor((m, 8), "float32"),
    x: T.float32,
    C: T.Tensor((m, 8), "float32"),
):
    with T.Kernel(m) as i:
        for j in T.Parallel(8):
            C[i, j] = A[i, j] * B[i, j] + x


@T.prim_func
def fma_gradients(
    dC: T.Tensor((m, 8), "float32"),
    A: T.Tensor((m, 8), "float32"),
    B: T.Tensor((m, 8), "float32"),
    dA: T.Tensor((m, 8), "float32"),
    dB: T.Tensor((m, 8), "float32"),
):
    with T.Kernel(m) as i:
        for j in T.Parallel(8):
            dA[i, j] = dC[i, j] * B[i, j]
            dB[i, j] = dC[i, j] * A[i, j]


@T.prim_func
def split(
    A: T.Tensor((m,), "bfloat16"), S: T.Tensor((m,), "int32"), low: T.Tensor((m,), "bfloat16")
):
    with T.Kernel(m) as i:
        S[i] = S[i] + 1
        low[i] = A[i] * 0.5


@pytest.fixture(scope="module")
def kernel() -> Any:
    return tile.compile(fma, out_idx=[-1], target="cpu")


@pytest.fixture(scope="module")
def function(kernel: Any) -> Any:
    return kernel.as_jax()


def rows(count: int, start: int = 0) -> Any:
    return jnp.arange(start, start + count * 8, dtype=jnp.float32).reshape(count, 8)


def test_it_is_called_on_arrays(function: Any) -> None:
    found = function(rows(5), rows(5, 2), 3.0)
    assert isinstance(found, jax.Array)
    assert jnp.array_equal(found, rows(5) * rows(5, 2) + 3)


def test_it_is_traced(function: Any) -> None:
    program = jax.jit(lambda a, b, x: function(a * 2, b, x) - 1)
    for count in (5, 9):
        assert jnp.array_equal(program(rows(count), rows(count), 3.0), rows(count) ** 2 * 2 + 2)


def test_shapes_are_known_before_it_runs(function: Any) -> None:
    found = jax.eval_shape(function, rows(5), rows(5), 3.0)
    assert (found.shape, found.dtype) == ((5, 8), jnp.float32)


def test_vmap_calls_it_for_each_entry(function: Any) -> None:
    batch = jnp.stack([rows(3, k) for k in range(4)])
    found = jax.vmap(lambda a, b: function(a, b, 1.0), in_axes=(0, None))(batch, rows(3))
    assert jnp.array_equal(found, batch * rows(3) + 1)


def test_arguments_do_not_change() -> None:
    function = tile.compile(split, out_idx=[-1], target="cpu").as_jax()
    a = jnp.arange(6, dtype=jnp.bfloat16)
    s = jnp.arange(6, dtype=jnp.int32)
    for call in (function, jax.jit(function)):
        low, updated = call(a, s)
        assert low.dtype == jnp.bfloat16
        assert jnp.array_equal(low, a / 2)
        assert jnp.array_equal(updated, s + 1)
        assert jnp.array_equal(s, jnp.arange(6))
    assert function.updated == ("S",)


def test_a_function_gives_gradients(kernel: Any) -> None:
    def backward(arguments: Any, result: Any, gradient: Any) -> Any:
        a, b, x = arguments
        assert result.shape == a.shape
        return gradient * b, gradient * a, None

    function = kernel.as_jax(backward=backward)
    found = jax.grad(lambda a, b: function(a, b, 1.0).sum(), argnums=(0, 1))(rows(4), rows(4, 3))
    assert jnp.array_equal(found[0], rows(4, 3))
    assert jnp.array_equal(found[1], rows(4))


def test_a_kernel_gives_gradients(kernel: Any) -> None:
    gradients = tile.compile(fma_gradients, out_idx=[-2, -1], target="cpu")
    function = kernel.as_jax(backward=gradients)
    loss = jax.jit(jax.grad(lambda a, b: (function(a, b, 1.0) * 2).sum(), argnums=(0, 1)))
    found = loss(rows(4), rows(4, 3))
    assert jnp.array_equal(found[0], rows(4, 3) * 2)
    assert jnp.array_equal(found[1], rows(4) * 2)


def test_arguments_that_are_not_there_have_no_gradient() -> None:
    @T.prim_func
    def double(
        A: T.Tensor((m,), "float32"),
        unused: T.Tensor((m,), "float32"),
        C: T.Tensor((m,), "float32"),
    ):
        with T.Kernel(m) as i:
            C[i] = A[i] * 2

    compiled = tile.compile(double, out_idx=[-1], target="cpu")
    function = compiled.as_jax(backward=lambda arguments, result, gradient: (gradient * 2, None))
    found = jax.grad(lambda a: function(a, None).sum())(jnp.ones(3))
    assert jnp.array_equal(found, jnp.full(3, 2.0))


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_gradients_of_other_numbers_of_arguments_are_refused(kernel: Any, wrap: Any) -> None:
    function = kernel.as_jax(backward=lambda arguments, result, gradient: (gradient,))
    with pytest.raises(JaxCallError) as caught:
        wrap(jax.grad(lambda a: function(a, rows(4), 1.0).sum()))(rows(4))
    assert caught.value.message == "the gradient of fma gave 1 values for 3 arguments"
    assert caught.value.hint == (
        "return one for each argument, None for those that have no gradient"
    )


def test_gradients_may_be_a_list(kernel: Any) -> None:
    function = kernel.as_jax(backward=lambda arguments, result, gradient: [gradient, None, None])
    assert jnp.array_equal(
        jax.grad(lambda a: function(a, rows(4), 1.0).sum())(rows(4)), jnp.ones((4, 8))
    )


def test_numbers_may_be_traced(function: Any) -> None:
    found = jax.jit(lambda x: function(rows(3), rows(3), x))(2.0)
    assert jnp.array_equal(found, rows(3) ** 2 + 2)


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit])
def test_wrong_arguments_are_told(function: Any, wrap: Any) -> None:
    with pytest.raises(
        ArgumentShapeError, match=re.escape("fma.B.shape[0]: expected m = 5, got 4")
    ):
        wrap(function)(rows(5), rows(4), 1.0)
    with pytest.raises(ArgumentDtypeError, match="expected float32, got int32"):
        wrap(function)(rows(5).astype(jnp.int32), rows(5), 1.0)


def test_numpy_s_arrays_are_taken_too(function: Any) -> None:
    found = function(np.ones((2, 8), np.float32), rows(2), 1.0)
    assert jnp.array_equal(found, rows(2) + 1)
