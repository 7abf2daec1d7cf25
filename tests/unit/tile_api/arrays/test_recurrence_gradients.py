"""Gradients of what is carried from step to step: recurrences that take the steps backwards."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch

import tile_api as tile
from support import recurrent_programs as programs
from support.gradients import Backward, equations_of, gradients
from support.recurrent_programs import before, filtered, within
from tile_api.arrays.deriving import derive
from tile_api.arrays.equations.evaluate import evaluated
from tile_api.arrays.function import Function
from tile_api.arrays.gradients.residuals import passes
from tile_api.arrays.gradients.stages import adjoint_of
from tile_api.arrays.planning.plan import Blocks
from tile_api.arrays.printing.numpy_text import equations_in_numpy

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
RNG = np.random.default_rng(0)


def floats(*shape):
    return RNG.standard_normal(shape)


def mirrored(x, h):
    """Elements meet others of the step before."""
    return tile.scan(lambda h, x: (np.tanh(h * x + h[::-1]), h * x), h, x)


def of_the_largest(step):
    """Each step reads what it carries where that is largest: at a place that it finds itself."""

    def run(x):
        return tile.scan(lambda h, k: (step(h, k, np.argmax(h)), None), x, np.arange(5))[0]

    return run


def counted(x):
    def step(carried, x):
        n, h = carried
        return (n + 1, h * x + n), h / (n + 1)

    return tile.scan(step, (0, np.ones(x.shape[1:])), x)[1]


def decayed(q, k, v, a):
    def step(h, now):
        q, k, v, a = now
        h = a[:, None, None] * h + k[:, :, None] * v[:, None, :]
        return h, np.einsum("hn,hnp->hp", q, h)

    return tile.scan(step, np.zeros((*k.shape[1:], v.shape[-1]), v.dtype), (q, k, v, a))


def table(x):
    sums = np.cumsum(x * x, 0)
    return sums @ sums.T


def distances(x):
    """A sum of what a recurrence gives is read by another one of its sums."""
    y = np.cumprod(x, axis=-1)
    y = y / np.abs(y).max(axis=0, keepdims=True)
    return (y.prod(axis=0) - y) ** 2


def multiplied(x):
    """What a recurrence takes is changed by what it gives at all steps."""
    y = x / np.abs(x).max(axis=0, keepdims=True)
    y = y - y.mean(axis=-1, keepdims=True)
    return x, np.nan_to_num(y), np.repeat(np.cumprod(y, axis=-1), 2, axis=0)


@tile.function
def energy(x):
    return (np.cumsum(x * x, -1) ** 2).sum()


@tile.function
def chained(x):
    return tile.scan(lambda h, x: (np.tanh(h * x + x), h), 0.5, x)[1].sum()


SLOPES = {
    "sums of columns": (lambda x: np.cumsum(x**2, 0) * x, floats(3, 5)),
    "sums of sums": (lambda x: np.cumsum(np.cumsum(x**2, 0), 1) * x, floats(4, 4)),
    "all elements": (lambda x: np.cumsum(x)[::-1], floats(3, 5)),
    "the last": (lambda x: np.cumsum(x * x, 0)[-1], floats(3, 5)),
    "a diagonal": (lambda x: np.diagonal(np.cumsum(x, 1) ** 2), floats(4, 4)),
    "smallest so far": (lambda x: np.minimum.accumulate(x, 0), floats(3, 7)),
    "products of sums": (table, floats(4, 4)),
    "filtered": (filtered, floats(6)),
    "before": (before, floats(5, 2)),
    "within": (within, floats(4, 3)),
    "mirrored": (mirrored, floats(5, 3), floats(3)),
    "counted": (counted, floats(5, 3)),
    "its largest": (of_the_largest(lambda h, k, p: h + np.take(h, p)), floats(5)),
    "the largest moved": (
        of_the_largest(lambda h, k, p: np.where(np.arange(5) == k, np.take(h, p), h * 2)),
        floats(5),
    ),
    "the largest of a product": (
        of_the_largest(lambda h, k, p: h * 2 + np.take(h * 2, p)),
        floats(5),
    ),
    "divided by its largest": (of_the_largest(lambda h, k, p: h / np.take(h, p)), floats(5)),
    "multiplied by its largest": (of_the_largest(lambda h, k, p: h * np.take(h, p)), floats(5)),
    "what it meets": (of_the_largest(lambda h, k, p: h * 2 + np.take(h, k)), floats(5)),
    "recurrent": (programs.recurrent, floats(5, 2, 3), floats(3, 4), floats(4, 4), floats(4, 2)),
    "selective": (programs.selective, *(floats(5, 3) for _ in "xd"), floats(3, 4), floats(5, 4),
                  floats(5, 4)),
    "linear attention": (programs.linear_attention, *(floats(5, 2, n) for n in (3, 3, 4))),
    "mamba": (programs.mamba_2, floats(5, 2, 3), floats(5, 2), floats(2), *2 * [floats(5, 4)],
              floats(2)),
    "decayed": (decayed, floats(5, 2, 3), floats(5, 2, 3), floats(5, 2, 4), floats(5, 2)),
    "retention": (programs.gated_retention, *(floats(5, 2, n) for n in (3, 3, 4)), floats(5, 2)),
    "distances from a product": (distances, 2 + floats(4, 3, 2)),
    "centred, then multiplied": (multiplied, floats(5, 3)),
    "second derivatives": (lambda x, d: (energy.grad(x) * d).sum(), floats(3, 4), floats(3, 4)),
    "second of a chain": (lambda x, d: (chained.grad(x) * d).sum(), floats(4), floats(4)),
}  # fmt: skip


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("name", SLOPES)
def test_a_gradient_is_a_slope(name: str) -> None:
    function, *arrays = SLOPES[name]
    Backward(function, *arrays).check()


ROWS = np.where(RNG.random((3, 6)) < 0.3, 0, floats(3, 6))
OF_TORCH = {
    "cumsum": (lambda x: np.cumsum(x, -1), lambda x: x.cumsum(-1), ROWS),
    "cumprod, with zeros": (lambda x: np.cumprod(x, -1), lambda x: x.cumprod(-1), ROWS),
    "cummax": (
        lambda x: np.maximum.accumulate(x, -1), lambda x: x.cummax(-1).values, floats(3, 7),
    ),
    "logcumsumexp": (
        lambda x: np.logaddexp.accumulate(x, -1), lambda x: x.logcumsumexp(-1), floats(3, 5),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", OF_TORCH)
def test_as_in_torch(name: str) -> None:
    function, reference, x = OF_TORCH[name]
    cotangent = floats(*x.shape)
    (found,) = gradients(function, [cotangent], x)
    tensor = torch.tensor(x, requires_grad=True)
    (wanted,) = torch.autograd.grad(reference(tensor), tensor, torch.tensor(cotangent))
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_equal_ones_share_the_gradient_of_a_running_maximum() -> None:
    x = np.array([2.0, 2.0, 1.0, 2.0])
    (found,) = gradients(lambda x: np.maximum.accumulate(x), [np.array([0, 0, 0, 1.0])], x)
    np.testing.assert_array_equal(found, [0.25, 0.25, 0, 0.5])


def check(function, *arrays, target: str) -> None:
    """Compare with what the equations of the gradient give in 64 bits."""
    single = [x.astype("float32") for x in arrays]
    result, pull = Function(function, target=target).vjp(*single)
    results = result if isinstance(result, tuple) else (result,)
    weights = [floats(*y.shape).astype("float32") for y in results]
    found = pull(*weights)
    wide = [x.astype("float64") for x in (*weights, *single)]
    wanted = gradients(function, wide[: len(weights)], *wide[len(weights) :])
    for got, right in zip(found if isinstance(found, tuple) else (found,), wanted, strict=True):
        assert got.dtype == np.float32
        assert np.abs(got - right).max() <= 3e-6 * (1 + np.abs(right).max())


def sums_of_products(q, k, v):
    return programs.sums_of_products(q, k, v)


CHUNKED = (sums_of_products, floats(37, 3), floats(37, 3), floats(37, 4))
KERNELS = {
    "sums": (lambda x: np.cumsum(x, -1), floats(3, 70)),
    "maxima": (lambda x: np.maximum.accumulate(x, 0), floats(9, 5)),
    "chunks": CHUNKED,
    "decays": (decayed, *(floats(20, 2, n) for n in (3, 3, 4)), RNG.uniform(0, 1, (20, 2))),
    "exponential decays": (
        programs.gated_retention,
        *(floats(20, 2, n) for n in (3, 3, 4)),
        floats(20, 2),
    ),
    "recurrent": SLOPES["recurrent"],
    "mirrored": SLOPES["mirrored"],
}
ON_GPUS = {"cuda:sm_80@sim": "mirrored", "cuda:sm_90a@sim": "chunks", "hip:gfx942@sim": "sums"}
HEADS = (
    programs.mamba_2,
    floats(64, 2, 24),
    floats(64, 2),
    floats(2),
    *2 * [floats(64, 16)],
    floats(2),
)


@pytest.mark.in_turn(5)
@pytest.mark.parametrize("name", KERNELS)
def test_on_the_cpu(name: str) -> None:
    check(*KERNELS[name], target="cpu")


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ON_GPUS)
def test_on_gpus(target: str) -> None:
    check(*KERNELS[ON_GPUS[target]], target=target)


def test_what_forward_passes_take_in_chunks_backward_passes_do() -> None:
    """What each head gives to keys that all share is summed afterwards."""
    equations = equations_of(HEADS[0], *(x.astype("float32") for x in HEADS[1:]))
    made = passes(equations, [p.name for p in equations.parameters])
    for part in (made.forward, made.backward):
        notes = [n for k in derive(part, Blocks()).explanation.kernels for n in k.rules]
        stepped = [n for n in notes if "one after the other" in n]
        assert sum("in chunks of" in n for n in notes) == (1 if part is made.forward else 5)
        assert all("they are read in no product" in n for n in stepped)  # one number for a head


def test_normalisers_are_carried_apart_from_tables() -> None:
    arrays = [floats(64, 2, n).astype("float32") for n in (16, 16, 24)]
    equations = equations_of(programs.linear_attention, *arrays)
    made = passes(equations, [p.name for p in equations.parameters])
    notes = [n for k in derive(made.backward, Blocks()).explanation.kernels for n in k.rules]
    assert sum("1 value, 64 steps in chunks of" in n for n in notes) == 3
    assert sum("one after the other" in n for n in notes) == 1


@pytest.mark.parametrize("rate", [-200.0, 200.0])
def test_decays_that_underflow_have_gradients_of_nothing(rate: float) -> None:
    def f(k, v, x):
        decay = np.exp(-np.exp(x))

        def step(h, now):
            k, v, a = now
            h = a * h + k[:, None] * v
            return h, h.sum(axis=-1)

        return tile.scan(step, np.zeros((3, 4)), (k, v, decay))[1]

    x = np.full(6, rate)
    *_, found = gradients(f, [np.ones((6, 3))], floats(6, 3), floats(6, 4), x)
    np.testing.assert_allclose(found, 0, atol=1e-12)


def faded(x, rate, b, c):
    """A table of each head decays, as in Mamba-2."""

    def step(h, now):
        x, rate, b, c = now
        h = np.exp(-rate)[:, None, None] * h + x[:, :, None] * b
        return h, h @ c

    return tile.scan(step, np.zeros((*x.shape[1:], b.shape[-1]), x.dtype), (x, rate, b, c))[1]


def faded_backwards(x, rate, b, c):
    return faded(*(y[::-1] for y in (x, rate, b, c)))[::-1]


def of_rates(arrays, weights, dtype):
    """Return the gradient of rates step by step: of each table, with that of what reads it."""
    (x, rate, b, c), weights = (y.astype(dtype) for y in arrays), weights.astype(dtype)
    decay = np.exp(-rate)[..., None, None]
    tables = [np.zeros((*x.shape[1:], b.shape[-1]), dtype)]
    for t in range(len(x)):
        tables.append(decay[t] * tables[-1] + x[t][..., None] * b[t])
    made, later = np.zeros(rate.shape, dtype), np.zeros_like(tables[0])
    for t in reversed(range(len(x))):
        later = later + weights[t][..., None] * c[t]
        made[t] = -(later * decay[t] * tables[t]).sum(axis=(1, 2))
        later = decay[t] * later
    return made


def rates_of(steps, dtype):
    shapes = (steps, 2, 8), (steps, 2), (steps, 4), (steps, 4), (steps, 2, 8)
    x, rate, b, c, weights = (floats(*shape).astype(dtype) for shape in shapes)
    return (x, np.abs(rate), b, c), weights


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("steps", [1, 7, 64, 65, 67, 192])
def test_running_sums_of_spans_are_gradients_of_rates(steps: int) -> None:
    arrays, weights = rates_of(steps, "float64")
    for function, order in ((faded, 1), (faded_backwards, -1)):
        given = [y[::order] for y in (*arrays, weights)]
        found = gradients(function, [given[-1]], *given[:-1])[1][::order]
        wanted = of_rates(arrays, weights, "float64")
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)


def test_rounding_of_a_running_sum_is_that_of_a_span() -> None:
    arrays, weights = rates_of(1021, "float32")
    wanted = of_rates(arrays, weights, "float64")
    usual = np.abs(of_rates(arrays, weights, "float32") - wanted).max()
    _, pull = Function(faded, target="cpu").vjp(*arrays)
    error, rounding = pull(weights)[1] - wanted, np.finfo("float32").eps
    assert np.abs(error).max() <= 8 * (usual + rounding * np.abs(wanted).max())
    whole = np.abs(wanted.sum(axis=0)).max()
    assert np.abs(error.sum(axis=0)).max() <= 64 * rounding * whole


def test_equations_of_a_gradient_in_numpy() -> None:
    function, *arrays = SLOPES["mirrored"]
    made = adjoint_of(equations_of(function, *arrays), ["x", "h"])
    weights = [floats(3), floats(5, 3)]
    names = {"np": np, "math": math}
    exec("\n".join(equations_in_numpy(made)), names)
    found = names["in_numpy"](*arrays, *weights)
    held = dict(zip((p.name for p in made.parameters), (*arrays, *weights), strict=True))
    for got, wanted in zip(found, evaluated(made, held), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


def tiled(x):
    return np.tile(x, (2, 1))


def repeated(x):
    return np.repeat(x, 3, axis=1)


def in_heads(x):
    return np.swapaxes(x.reshape(*x.shape[:2], 3, 4), 1, 2)


@pytest.mark.parametrize("view", [tiled, repeated, in_heads])
def test_running_sums_are_stored_in_parts_of_dimensions(view) -> None:
    def f(x):
        y = np.cumsum(x, axis=0)
        return y, view(y).max(axis=-1), np.square(view(y)).sum(axis=-1)

    x = floats(6, 5, 12)
    y, most, squares = f(x)
    weights = [floats(*r.shape) for r in (y, most, squares)]
    found, pull = Function(f, target="interpret").vjp(x)
    for got, wanted in zip(found, (y, most, squares), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
    torch_x = torch.tensor(x, requires_grad=True)
    z = torch.cumsum(torch_x, 0)
    of = torch.tensor(view(np.arange(y.size).reshape(y.shape)))
    shown = z.flatten()[of]
    results = (z, shown.amax(-1), shown.square().sum(-1))
    sum((r * torch.tensor(w)).sum() for r, w in zip(results, weights, strict=True)).backward()
    np.testing.assert_allclose(pull(*weights), torch_x.grad.numpy(), rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("target", ["interpret", "cpu"])
def test_places_that_a_step_finds_are_checked_in_it(target: str) -> None:
    """Steps backwards read a table where what was saved of theirs says."""

    def f(x):
        means = np.cumprod(x, axis=-1).mean(axis=0, keepdims=True)
        return np.interp(means, [-2, 0, 1], [0.5, 4, -1])

    x, direction = floats(17, 2), floats(17, 2)
    _, pull = Function(f, target=target).vjp(x)
    step = 1e-6
    slope = (f(x + step * direction) - f(x - step * direction)).sum() / (2 * step)
    np.testing.assert_allclose((pull(np.ones((1, 2))) * direction).sum(), slope, rtol=1e-6)
