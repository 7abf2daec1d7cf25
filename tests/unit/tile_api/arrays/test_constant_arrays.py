"""Arrays that stand in a function: formulas if they are ramps or bands, else hidden arguments."""

from __future__ import annotations

import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest

from support.captured_arrays import filled
from tile_api.arrays.function import Function
from tile_core.errors import ImpureFunction

X = filled((5, 7), "float32", 1)
WEIGHTS = filled((7, 3), "float32", 2)
LOOKUP = (np.arange(64) ** 1.5).astype("float32")


def linear(x):
    return np.maximum(x @ WEIGHTS, 0)


def looked_up(x):
    return np.take(LOOKUP, x)


def smoothed(x):
    return np.convolve(x, np.float32([1, 2, 1]) / 4, "same")


@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim", "hip:gfx942@sim"])
def test_as_kernels(target):
    codes = np.random.default_rng(0).integers(0, 64, (4, 9)).astype("uint8")
    for function, x in ((linear, X), (looked_up, codes), (smoothed, X[0])):
        found = Function(function, target=target)
        np.testing.assert_allclose(found(x), function(x), rtol=1e-6, atol=1e-6)
        np.testing.assert_allclose(found.interpret(x), function(x), rtol=1e-6, atol=1e-6)


def test_sizes_become_symbols():
    function = Function(linear, target="cpu")
    for rows in (3, 5, 8, 13, 21):
        x = filled((rows, 7), "float32", rows)
        np.testing.assert_allclose(function(x), linear(x), rtol=1e-6, atol=1e-6)
    assert function.equations(X).arguments[0].name == "x"


FORMULAS = [
    np.float32(range(4)), np.tri(4, 6, 1, dtype="float32"), np.triu(np.ones((6, 4))), np.eye(3),
    ~np.tri(5, 5, -2, dtype=bool), np.abs(np.subtract.outer(range(6), range(6))) < 3,
    np.tril(np.ones((3, 3)), -1), np.array([[0, 1], [1, 0]]), np.float64([[0, -0.0], [0, 0]]),
]  # fmt: skip
TABLES = [
    np.float32([1.5, 2, 7]), np.array([[1, 2], [2, 2]]), np.array([True, False]),
    np.float64([[1, np.nan], [1, 1]]), np.float64([0, -0.0, 0]), np.float16([1, 2, 5]),
    np.array([np.nan, np.nan]), np.array([0, -0.0, 0]).astype(ml_dtypes.bfloat16),
    np.array([[1, 2], [4, 8]]).astype(ml_dtypes.bfloat16),
    np.where(np.eye(4, k=2) > 0, 1, -np.eye(4)),
]  # fmt: skip


@pytest.mark.parametrize("given", FORMULAS + TABLES, ids=lambda a: str(a.tolist()))
def test_elements_bit_by_bit(given):
    function = Function(lambda x: (np.where(x[0, 0] < 2e9, given, given), x + 1), target="cpu")
    found, _ = function(X)
    assert isinstance(found, np.ndarray)
    assert (found.dtype, found.shape) == (given.dtype, given.shape)
    numbers = ~np.isnan(given)  # which NaN it is means nothing
    assert found[numbers].tobytes() == given[numbers].tobytes()
    assert np.isnan(found[~numbers]).all()
    is_formula = any(given is known for known in FORMULAS)
    assert bool(function.equations(X).constants) == (not is_formula)


def test_equal_tables_are_one():
    equations = Function(lambda x: (x @ WEIGHTS) @ WEIGHTS.T + x @ WEIGHTS.copy() @ WEIGHTS.T)
    constants = equations.equations(X).constants
    assert [t.values.shape for t in constants] == [(7, 3), (3, 7)]


def test_a_parameter_of_that_name():
    function = Function(lambda constant, constant1: constant * LOOKUP[:7] + constant1 * LOOKUP[1:8])
    assert [p.name for p in function.equations(X, X).parameters] == [
        "constant", "constant1", "constant_", "constant1_",
    ]  # fmt: skip
    wanted = X * LOOKUP[:7] + X * LOOKUP[1:8]
    np.testing.assert_allclose(function.on("cpu")(X, X), wanted, rtol=1e-6)


def test_gradients():
    torch = pytest.importorskip("torch")
    function = Function(lambda x: (np.tanh(x @ WEIGHTS) ** 2).sum(), target="cpu")

    def in_torch(x):
        return (torch.tanh(x @ torch.tensor(WEIGHTS)) ** 2).sum()

    x, y = (torch.tensor(X / 8, requires_grad=True) for _ in range(2))
    for found, argument in ((function, x), (in_torch, y)):
        (first,) = torch.autograd.grad(found(argument), argument, create_graph=True)
        first.sum().backward()
    torch.testing.assert_close(x.grad, y.grad, rtol=1e-4, atol=1e-5)
    within = Function(lambda x: function.vjp(x)[1](np.float32(2)))
    np.testing.assert_allclose(within.interpret(X), 2 * function.grad(X), rtol=1e-5, atol=1e-6)


def test_what_is_printed(tmp_path):
    source = Function(linear, target="cpu").source(X)
    assert "def launch(x, constant):" in source
    file = tmp_path / "linear.py"
    file.write_text(source)
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    edited = Function(linear, target="cpu", kernels=str(file))
    np.testing.assert_allclose(edited(X), linear(X), rtol=1e-6, atol=1e-6)


def test_remark():
    told = str(Function(linear, target="cpu").explain(X))
    line = linear.__code__.co_firstlineno + 1
    assert (
        f"an array of 84 bytes stands in line {line}: kernels take it as 'constant', as it was "
        "when the function was captured"
    ) in told


def test_random_tables_are_refused():
    def noisy(x):
        return x * np.random.default_rng().random(x.shape)

    with pytest.raises(ImpureFunction) as error:
        Function(noisy)(X)
    assert error.value.message == (
        "noisy is captured twice, and an array that stands in it has other elements the second time"
    )


def test_results_are_of_the_kind_of_arguments():
    torch = pytest.importorskip("torch")
    created = Function(lambda x: np.arange(x.shape[0], dtype="float32") * 2, target="cpu")
    assert isinstance(created(X), np.ndarray)
    assert isinstance(created(torch.tensor(X)), torch.Tensor)
    assert isinstance(Function(lambda: np.arange(3.0) * 2, target="cpu")(), np.ndarray)
