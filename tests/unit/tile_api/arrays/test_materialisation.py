"""Long functions are cut where few elements are stored, and mean what they meant."""

from __future__ import annotations

import itertools
import runpy

import numpy as np
import pytest

import tile_api as tile
from tile_api.arrays.capturing import capture, materialisation
from tile_api.arrays.capturing.materialisation import MOST_BETWEEN, weight
from tile_api.arrays.function import Function
from tile_api.arrays.planning.stages import stages
from tile_api.arrays.printing.numpy_text import equations_in_numpy
from tile_core.errors import ImpureFunction


def heat(u, steps=12):
    """Go through steps of a stencil."""
    for _ in range(steps):
        p = np.pad(u, 1, mode="edge")
        around = p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:]
        u = u + 0.125 * (around - 4 * u)
    return u


def life(u, steps=8):
    """Go through steps of a cellular automaton, whose states are integers."""
    turns = [(i, j) for i in (-1, 0, 1) for j in (-1, 0, 1) if i or j]
    for _ in range(steps):
        count = sum(np.roll(np.roll(u, i, 0), j, 1) for i, j in turns)
        u = ((count == 3) | ((u == 1) & (count == 2))).astype(np.int32)
    return u


def pendulums(y, steps=10):
    """Integrate with four slopes for each step, stacked."""

    def slope(y):
        return np.stack([y[:, 1], -np.sin(y[:, 0]) - 0.125 * y[:, 1]], 1)

    for _ in range(steps):
        first = slope(y)
        second = slope(y + 0.125 * first)
        third = slope(y + 0.125 * second)
        y = y + 0.25 / 6 * (first + 2 * second + 2 * third + slope(y + 0.25 * third))
    return y


def bodies(x, v, steps=8):
    """Carry two arrays; each step makes a larger one of all pairs."""
    for _ in range(steps):
        apart = x[None] - x[:, None]
        v = v + 0.01 * (apart / ((apart**2).sum(-1) + 0.125)[..., None]).sum(1)
        x = x + 0.01 * v
    return x, v


def iteration(a, steps=8):
    """Multiply a vector by a matrix again and again; return all of its norms, too."""
    v, norms = np.ones(a.shape[0]), []
    for _ in range(steps):
        v = a @ v
        norms.append(np.linalg.norm(v))
        v = v / norms[-1]
    return v, np.stack(norms)


def in_place(u, steps=10):
    """Assign to a part of an array in each step."""
    u = u.copy()
    for _ in range(steps):
        u[1:-1] = 0.5 * u[1:-1] + 0.25 * (u[:-2] + u[2:])
        u[0] = u[-1]
    return u


def scanned(x, steps=24):
    """Read an array that is computed in a long way in a recurrence, and what it gives in a loop."""
    for _ in range(steps):
        x = np.tanh(x + np.roll(x, 1, 0))
    carry, ys = tile.scan(lambda c, row: (0.5 * c + row, c), np.zeros(x.shape[1]), x)
    for _ in range(steps):
        ys = ys + 0.5 * np.roll(ys, 1, 0)
    return carry, ys


def _floats(*shapes):
    random = np.random.default_rng(0)
    return [random.uniform(-1, 1, shape) for shape in shapes]


LONG = [
    (heat, _floats((9, 7))),
    (life, [np.random.default_rng(0).integers(0, 2, (7, 9)).astype("int32")]),
    (pendulums, _floats((5, 2))),
    (bodies, _floats((7, 3), (7, 3))),
    (iteration, _floats((6, 6))),
    (in_place, _floats((17,))),
    (scanned, _floats((6, 3))),
]
ROWS = [pytest.param(*row, id=row[0].__name__) for row in LONG]


def _assert_close(found, wanted) -> None:
    several = isinstance(wanted, (tuple, list))
    for mine, right in zip(*((found, wanted) if several else ([found], [wanted])), strict=True):
        assert mine.dtype == right.dtype
        np.testing.assert_allclose(mine, right, rtol=1e-11, atol=1e-11)


@pytest.mark.parametrize(("function", "arrays"), ROWS)
def test_equations_are_cut(function, arrays):
    equations = Function(function).equations(*arrays)
    assert equations.materialised
    heaviest = max(weight(o.element) for o in equations.computed)
    assert heaviest <= 2 * MOST_BETWEEN
    _assert_close(Function(function).interpret(*arrays), function(*arrays))


@pytest.mark.in_turn(2, classes=lambda target, **_: [target])
@pytest.mark.parametrize("target", ["interpret", "cpu"])
@pytest.mark.parametrize(("function", "arrays"), ROWS)
def test_kernels(function, arrays, target):
    _assert_close(Function(function, target=target)(*arrays), function(*arrays))


@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "hip:gfx942@sim"])
def test_kernels_of_gpus(target):
    (x,) = _floats((6, 5))
    x = x.astype("float32")
    found = Function(heat, target=target)(x)
    np.testing.assert_allclose(found, heat(x), rtol=1e-5, atol=1e-6)


def test_steps_have_the_same_kernels():
    (x,) = _floats((9, 7))

    def kernels(steps):
        return [k.name for k in Function(heat, target="interpret").explain(x, steps).kernels]

    few, many = kernels(20), kernels(60)
    assert len(many) > 2 * len(few)
    assert len({*many}) <= len({*few}) + 1


def test_what_runs_often_is_told_once():
    (x,) = _floats((9, 7))
    function = Function(heat, target="interpret")
    told = str(function.explain(x, 40))
    names = [k.name for k in function.explain(x, 40).kernels]
    often = max(names, key=names.count)
    assert told.count(f"{often}: ") == 1
    assert f"  runs: {names.count(often)} times" in told


@pytest.mark.parametrize(("function", "arrays"), ROWS[2:4])
def test_programs_of_them_run(function, arrays, tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_text(Function(function, target="interpret").source(*arrays))
    names = runpy.run_path(str(file), run_name="__main__")
    assert f"{function.__name__}: " in capsys.readouterr().out  # it compared itself with NumPy
    _assert_close(names["launch"](*arrays), function(*arrays))
    equations = Function(function).equations(*arrays)
    lines = "\n".join(["import numpy as np", *equations_in_numpy(equations)])
    exec(lines, names)
    _assert_close(names["in_numpy"](*arrays), function(*arrays))


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("function", "arrays"), [row for row in ROWS if row.id != "life"])
def test_gradients(function, arrays, monkeypatch):
    """Compare with the gradients of what is not cut, of a few steps."""
    few = {"steps": 2}

    def gradients():
        results, pull = Function(function, target="interpret").vjp(*arrays, **few)
        results = results if isinstance(results, tuple) else (results,)
        random = np.random.default_rng(1)
        return pull(*(random.uniform(-1, 1, np.shape(x)) for x in results))

    whole = gradients()
    monkeypatch.setattr(capture, "MOST_EXPRESSIONS", 0)
    monkeypatch.setattr(materialisation, "MOST_BETWEEN", 16)
    assert Function(function).equations(*arrays, **few).materialised
    _assert_close(gradients(), whole)


def test_gradients_of_many_steps():
    """What changes along a direction is what the gradient says."""
    (x,) = _floats((5, 4))
    weights, step = (np.random.default_rng(k).uniform(-1, 1, x.shape) for k in (1, 2))
    _, pull = Function(heat, target="interpret").vjp(x)
    slope = (weights * (heat(x + step) - heat(x))).sum()  # it is linear
    assert abs((pull(weights) * step).sum() - slope) < 1e-11


def test_a_gradient_within_a_function_is_of_all_it_reads():
    """Arrays of the function whose gradient is asked for are none of the outer one."""

    def energy(y):
        for _ in range(2):
            y = y + 0.125 * np.sin(y + np.roll(y, 1))
        return (y**2).sum()

    inner = Function(energy)

    def function(x):
        for _ in range(3):
            x = x - 0.125 * inner.grad(x)
        return x

    (x,) = _floats((5,))
    assert Function(function).equations(x).materialised
    right = x
    for _ in range(3):
        steps = 1e-6 * np.eye(5)
        slopes = [(energy(right + e) - energy(right - e)) / 2e-6 for e in steps]
        right = right - 0.125 * np.array(slopes)
    np.testing.assert_allclose(Function(function, target="interpret")(x), right, atol=1e-8)


def test_names_of_users_stay():
    def function(s0, s1):
        for _ in range(12):
            s0 = s0 + 0.125 * np.roll(np.tanh(s0), 1) * s1
        return s0

    arrays = _floats((7,), (7,))
    equations = Function(function).equations(*arrays)
    assert not {o.name for o in equations.materialised} & {"s0", "s1"}
    _assert_close(Function(function, target="interpret")(*arrays), function(*arrays))


@pytest.mark.parametrize("wrt", [None, "x"])
def test_dimensions_are_split_as_before(wrt):
    def rows(x, steps):
        for _ in range(steps):
            x = x - 0.25 * np.tanh(x - x.mean(1, keepdims=True))
        return x

    x = np.zeros((8, 5))
    assert Function(rows).equations(x, 30).materialised
    few, many = (Function(rows).sharding(x, n, machines=2, wrt=wrt) for n in (2, 30))
    assert few.rules == many.rules
    assert few.rules


def test_a_long_function_that_differs_each_time_is_told():
    steps = itertools.count(20)

    def function(x):
        for _ in range(next(steps)):
            x = x + 0.125 * np.roll(np.tanh(x), 1)
        return x

    with pytest.raises(ImpureFunction):
        Function(function).equations(np.zeros(7))


def test_steps_that_differ_in_the_sign_of_zero_have_their_own_kernels():
    def function(x):
        for k in range(13):
            grown = x + np.roll(x, 1) * np.roll(x, 2) * np.roll(x, 3) * np.roll(x, 4)
            x = np.where(x > 5, grown, 0.0 if k % 2 else -0.0)
        return x

    (x,) = _floats((9,))
    equations = Function(function).equations(x)
    keys = [stage.key for stage in stages(equations)]
    assert len(keys) > len({*keys}) > 2
    found = Function(function, target="interpret")(x)
    np.testing.assert_array_equal(np.signbit(found), np.signbit(function(x)))


@pytest.mark.parametrize("shape", [(0, 5), (3, 0), (1, 1), (1, 5)])
def test_sizes_of_none_and_of_one(shape):
    def function(x):
        for _ in range(20):
            x = x + 0.125 * (np.roll(x, 1, 0) * np.roll(x, 1, 1) - np.roll(x, -1, 0))
        return x, x.sum(0)

    x = np.ones(shape)
    _assert_close(Function(function, target="interpret")(x), function(x))
