"""Random steps of recurrences: two carried values, of different shapes, that read each other."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tile_api as tile
from support.gradients import Backward, gradients
from tile_api.arrays.function import Function

pytestmark = pytest.mark.filterwarnings("ignore::tile_core.errors.TileWarning")
STEPS, WIDTH = 9, 7
VECTORS = ("{v} * 0.5 + {u}", "np.tanh({v} + {u})", "np.maximum({v}, {u})", "{v}[::-1]",
           "{v} - {v}.mean()", "np.tanh({v}) @ w", "np.where({u} > 0, {v}, {u})",
           "np.roll({v}, 2)", "np.tanh(np.cumsum(row))", "{v} * {s}", "np.exp({v} - {v}.max())",
           "np.abs({v} - {u}).astype('float32')")  # fmt: skip
NUMBERS = ("{s} * 0.9 + {v}.sum()", "({v} * {u}).max()", "np.tanh({s})", "{v}[3]", "{v} @ {u}",
           "np.abs({v}).prod()", "np.minimum({s}, row[0])")  # fmt: skip


SMOOTH = (
    *(v for v in VECTORS if not v.startswith(("np.where", "np.maximum", "np.abs"))),
    "{v} / (2 + np.take({u}, np.argmax({u})) ** 2)",
    "{v} * np.take({v}, np.argmin({u}))",
    "np.take({v}, np.argsort({u}))",
    "np.where(np.arange(7) == np.argmax({v}), {u}, {v})",
)
"""What has slopes next to everywhere: among it, what is read at places that are found."""


def steps(seed: int, of_vectors: tuple[str, ...] = VECTORS) -> str:
    """Return the text of a function of rows and a matrix."""
    random = np.random.default_rng(seed)
    vectors, numbers = ["h", "row"], ["g"]
    lines = ["def f(x, w):", "    def step(carried, row):", "        h, g = carried"]

    def chosen(items: Any) -> str:
        return str(items[random.integers(len(items))])

    for count in range(int(random.integers(2, 6))):
        is_vector = bool(random.random() < 0.65)
        known = {"v": chosen(vectors), "u": chosen(vectors), "s": chosen(numbers)}
        text = chosen(of_vectors if is_vector else NUMBERS).format(**known)
        lines.append(f"        a{count} = {text}")
        (vectors if is_vector else numbers).append(f"a{count}")
    h, g, y = f"np.tanh({vectors[-1]})", f"np.tanh({numbers[-1]})", chosen(vectors)
    lines += [f"        h, g = {h}, {g}", f"        return (h, g), ({y} + h, {chosen(numbers)})"]
    lines += ["    (h, g), (y, z) = tile.scan(step, (x[0], x[1, 0]), x)", "    return h, g, y, z"]
    return "\n".join(lines)


def check(seed: int, run: Any) -> None:
    text = steps(seed)
    names: dict[str, Any] = {"np": np, "tile": tile}
    exec(text, names)
    random = np.random.default_rng(seed)
    x = random.standard_normal((STEPS, WIDTH)).astype("float32")
    w = (random.standard_normal((WIDTH, WIDTH)) / 3).astype("float32")
    wanted = names["f"](x.astype("float64"), w.astype("float64"))
    single = names["f"](x, w)
    for got, exact, plain in zip(run(names["f"])(x, w), wanted, single, strict=True):
        assert got.shape == np.shape(exact)
        allowed = 1e-5 * (1 + np.abs(exact)) + 8 * np.abs(plain - exact).max()
        assert (np.abs(got - exact) <= allowed).all(), text


@pytest.mark.in_turn(3)
@pytest.mark.parametrize("seed", range(40))
def test_what_random_steps_mean(seed: int) -> None:
    check(seed, lambda f: Function(f).interpret)


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("seed", range(40))
def test_slopes_of_random_steps(seed: int) -> None:
    names: dict[str, Any] = {"np": np, "tile": tile}
    exec(steps(seed, SMOOTH), names)
    random = np.random.default_rng(seed)
    x = random.standard_normal((STEPS, WIDTH))
    Backward(names["f"], x, random.standard_normal((WIDTH, WIDTH)) / 3).check()


# 15 and 34 read in a backward step what another kernel of this plan gives
@pytest.mark.parametrize("seed", [2, 10, 15, 34])
def test_backward_kernels_of_random_steps(seed: int) -> None:
    names: dict[str, Any] = {"np": np, "tile": tile}
    exec(steps(seed, SMOOTH), names)
    random = np.random.default_rng(seed)
    x, w = random.standard_normal((STEPS, WIDTH)), random.standard_normal((WIDTH, WIDTH)) / 3
    results, pull = Function(names["f"], target="cpu").vjp(x, w)
    weights = [random.standard_normal(y.shape) for y in results]
    for got, wanted in zip(pull(*weights), gradients(names["f"], weights, x, w), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9 * (1 + np.abs(wanted).max()))


# 124 multiplies elements of a product of matrices, 166 reads a running sum in two ways.
@pytest.mark.in_turn(3)
@pytest.mark.parametrize("seed", [*range(5), 124, 166])
def test_kernels_of_random_steps(seed: int) -> None:
    check(seed, lambda f: Function(f, target="cpu"))


@pytest.mark.parametrize("seed", range(2))
def test_random_steps_in_an_emulator(seed: int) -> None:
    check(seed, lambda f: Function(f, target="cuda:sm_90a@sim"))
