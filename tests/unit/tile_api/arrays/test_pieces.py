"""Steps of loops that read other places of tensors share kernels, which take pieces of these."""

from __future__ import annotations

import runpy

import numpy as np
import pytest

from tile_api.arrays.capturing import capture, materialisation
from tile_api.arrays.equations.equations import Parameter
from tile_api.arrays.equations.pieces import Piece
from tile_api.arrays.function import Function
from tile_api.arrays.planning import stages as planning
from tile_core.dtypes import dtype_of


def recurrent(x, w, u):
    """Read a row in each step."""
    h = np.zeros((x.shape[1], u.shape[0]), x.dtype)
    for k in range(x.shape[0]):
        h = np.tanh(x[k] @ w + h @ u)
    return h


def recurrent_by_columns(x, w, u):
    """Read a column in each step."""
    h = np.zeros((x.shape[0], u.shape[0]), x.dtype)
    for k in range(x.shape[1]):
        h = np.tanh(x[:, k] @ w + h @ u)
    return h


def layers(x, w, b):
    """Read weights of each layer, and a number."""
    for k in range(w.shape[0]):
        x = b[k, 0] * x + np.tanh(x @ w[k] + b[k])
    return x


def forced(u, f):
    """Add what acts on a plate in each step; the first step stands last."""
    for k in range(f.shape[0]):
        v = u.copy()
        v[1:-1] += 0.25 * (u[2:] + u[:-2] - 2 * u[1:-1]) + f[-1 - k, 1:-1]
        u = v
    return u


def by_blocks(x, w):
    """Read some rows in each step, beside one of the next."""
    total = np.zeros(w.shape[1], x.dtype)
    for k in range(x.shape[0] // 4 - 1):
        total = np.sin(total + (x[4 * k : 4 * k + 4] @ w).max(0)) + x[4 * k + 4, 0]
    return total


def of_what_is_made(x, w):
    """Read rows of an array that is made before."""
    made = np.tanh(x @ w) + np.roll(x @ w, 1, 0)
    y = made[0]
    for k in range(1, x.shape[0]):
        y = np.cos(y + np.roll(y, 1) * np.roll(y, 2)) * made[k].sum() + made[k]
    return y


def _floats(*shapes):
    random = np.random.default_rng(0)
    return [random.uniform(-1, 1, shape) for shape in shapes]


LONG = [
    (recurrent, _floats((16, 3, 5), (5, 7), (7, 7)), 7),
    (recurrent_by_columns, _floats((3, 16, 5), (5, 7), (7, 7)), 8),
    (layers, _floats((3, 5), (20, 5, 5), (20, 5)), 2),
    (forced, _floats((9, 5), (25, 9, 5)), 2),
    (by_blocks, _floats((80, 3), (3, 5)), 4),
    (of_what_is_made, _floats((20, 5), (5, 5)), 6),
]
ROWS = [pytest.param(*row, id=row[0].__name__) for row in LONG]


def _assert_close(found, wanted) -> None:
    for mine, right in zip(found, wanted, strict=True):
        np.testing.assert_allclose(mine, right, rtol=1e-9, atol=1e-9)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("function", "arrays", "most"), ROWS)
def test_steps_share_kernels(function, arrays, most, monkeypatch):
    of = Function(function, target="interpret")
    assert of.equations(*arrays).materialised
    names = [k.name for k in of.explain(*arrays).kernels]
    assert len({*names}) <= most < len(names)
    found = of(*arrays)
    _assert_close([found], [function(*arrays)])
    monkeypatch.setattr(planning, "_changing", lambda reads: [frozenset()] * len(reads[0]))
    whole = Function(function, target="interpret")
    assert len({k.name for k in whole.explain(*arrays).kernels}) > most
    np.testing.assert_array_equal(found, whole(*arrays))  # in every bit


def _many_steps(monkeypatch):
    monkeypatch.setattr(capture, "MOST_EXPRESSIONS", 0)
    monkeypatch.setattr(materialisation, "MOST_BETWEEN", 16)


@pytest.mark.in_turn(3)
@pytest.mark.parametrize(("function", "arrays", "most"), ROWS)
def test_gradients(function, arrays, most, monkeypatch):
    """What changes along a direction is what the gradients say."""
    monkeypatch.setattr("tile_api.arrays.gradients.stages.MOST_JOINED", 4)
    results, pull = Function(function, target="interpret").vjp(*arrays)
    random = np.random.default_rng(1)
    weights = random.uniform(-1, 1, np.shape(results))
    for number, gradient in enumerate(pull(weights)):
        step = random.uniform(-1, 1, gradient.shape)
        ends = []
        for sign in (-1, 1):
            moved = [*arrays]
            moved[number] = arrays[number] + sign * 1e-6 * step
            ends.append((weights * function(*moved)).sum())
        slope = (ends[1] - ends[0]) / 2e-6
        np.testing.assert_allclose((gradient * step).sum(), slope, rtol=1e-5, atol=1e-6)


def test_gradients_share_kernels():
    def distinct(count):
        arrays = _floats((3, 5), (count, 5, 5), (count, 5))
        _, pull = Function(layers, target="interpret").vjp(*arrays)
        made = pull.run.derived.kernels
        return len({k.name for k in made})

    assert distinct(64) <= distinct(40)


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("target", ["cuda:sm_80@sim", "cuda:sm_90a@sim", "cpu"])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_pieces_that_begin_where_vectors_must_not(target, dtype):
    """Rows of 5 elements: those behind the first one begin at no multiple of 16 bytes."""
    arrays = [x.astype(dtype) for x in _floats((16, 8, 5), (5, 8), (8, 8))]
    found = Function(recurrent, target=target)
    for _ in range(2):
        np.testing.assert_allclose(found(*arrays), recurrent(*arrays), rtol=2e-2, atol=2e-2)


@pytest.mark.parametrize(("function", "arrays", "most"), ROWS[1:3])
def test_programs_of_them_run(function, arrays, most, tmp_path, capsys):
    file = tmp_path / "program.py"
    file.write_text(Function(function, target="interpret").source(*arrays))
    names = runpy.run_path(str(file), run_name="__main__")
    assert f"{function.__name__}: " in capsys.readouterr().out  # it compared itself with NumPy
    _assert_close([names["launch"](*arrays)], [function(*arrays)])


def test_other_sizes_are_symbols():
    """The loop is written out for one number of steps; all other sizes may change."""
    of = Function(recurrent, target="interpret")
    for rows in (3, 4, 6):
        arrays = _floats((16, rows, 5), (5, 7), (7, 7))
        _assert_close([of(*arrays)], [recurrent(*arrays)])
    told = str(of.explain(*arrays))
    assert "symbols: x1" in told
    assert len({k.name for k in of.explain(*arrays).kernels}) <= 7


def test_tensors_of_torch():
    torch = pytest.importorskip("torch")
    arrays = _floats((3, 16, 5), (5, 7), (7, 7))
    given = [torch.from_numpy(x).requires_grad_() for x in arrays]
    found = Function(recurrent_by_columns, target="interpret")(*given)
    _assert_close([found.detach().numpy()], [recurrent_by_columns(*arrays)])
    found.sum().backward()
    assert given[0].grad.abs().sum() > 0


@pytest.mark.parametrize(
    ("places", "text", "shape", "is_dense"),
    [
        (((3, -1), None, None), "x[3]", (5, 6), True),
        (((3, -1), (2, -1), (1, -1)), "x[3, 2, 1:2]", (), True),
        (((1, 2), None, None), "x[1:3]", (2, 5, 6), True),
        ((None, (2, -1), None), "x[:, 2]", (4, 6), False),
        (((1, -1), (2, 2), None), "x[1, 2:4]", (2, 6), True),
        (((1, 2), (2, 2), None), "x[1:3, 2:4]", (2, 2, 6), False),
    ],
)
def test_pieces(places, text, shape, is_dense):
    piece = Piece("x", places)
    assert str(piece) == text
    assert piece.parameter("y", Parameter("x", (4, 5, 6), dtype_of("float32"))).shape == shape
    assert piece.is_dense((4, 5, 6)) == is_dense
    x = np.arange(120).reshape(4, 5, 6)
    mine = x[piece.key]
    assert mine.shape == (shape or (1,))
    assert mine.flags.c_contiguous == is_dense
