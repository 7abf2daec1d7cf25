"""Which dimensions may be split among machines: rules that equations tell."""

from __future__ import annotations

import numpy as np
import pytest

import tile_api as tile
from support.captured_arrays import filled
from support.sharded import assert_holds, check_gradient_rules, check_rules
from tile_api import nn
from tile_api.arrays.function import Function
from tile_api.arrays.sharding.rules import Rule, pieces_of
from tile_core.errors import TileError


def softmax(x):
    e = np.exp(x - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def norm(x, weight):
    return x / np.sqrt(np.mean(x * x, -1, keepdims=True)) * weight


def masked(x):
    return np.where(np.arange(x.shape[0])[:, None] <= np.arange(x.shape[1]), x, 0)


def attended(q, k, v, mask):
    return softmax(np.where(mask, q @ np.swapaxes(k, -1, -2), -1e30)) @ v


def carried(x, start):
    return tile.scan(lambda h, x: (2 * h + x, h), start, x)


X, W = filled((6, 4), "float64"), filled((4, 5), "float64", 1)
CUBE, ROW = filled((4, 3, 5), "float64", 2), filled((5,), "float64", 3)
IDS = filled((7,), "int64", 4, 0, 6)
EXPECTED = {
    "x0": (lambda x: 2 * x + 1, (X,), ["x0", "x1"]),
    "product": (lambda x, w: x @ w, (X, W), ["x0", "x1", "w1"]),
    "scaled product": (lambda x, w: (x @ w) * 0.5, (X, W), ["x0", "x1", "w1"]),
    "product and bias": (lambda x, w, b: x @ w + b, (X, W, ROW), ["x0", "w1"]),
    "activated product": (lambda x, w: np.maximum(x @ w, 0), (X, W), ["x0", "w1"]),
    "product of two sums": (lambda x, w: x.sum(0) * (w.sum(1)), (X, W), ["x1"]),
    "with itself": (lambda x: x @ x.T, (X,), ["x1"]),
    "squared sums": (lambda x: x.sum(0) ** 2, (X,), ["x1"]),
    "sum of all": (lambda x: x.sum(), (X,), ["x0", "x1"]),
    "sum of sums": (lambda x: x.sum(0).sum(), (X,), ["x0", "x1"]),
    "largest sum": (lambda x: x.sum(0).max(), (X,), ["x1"]),
    "largest of all": (lambda x: x.max(), (X,), ["x0", "x1"]),
    "largest, at least 0": (lambda x: np.maximum(x.max(0), 0), (X,), ["x0", "x1"]),
    "sum and maximum": (lambda x: x.sum(0) + x.max(0), (X,), ["x1"]),
    "product of all": (lambda x: x.prod(0), (X,), ["x1"]),
    "mean": (lambda x: x.mean(0), (X,), ["x1"]),
    "times the size": (lambda x: x * x.shape[0], (X,), ["x1"]),
    "sums for each row": (lambda x: np.broadcast_to(x.sum(0), x.shape), (X,), ["x1"]),
    "sum of products of all": (lambda x: (x @ x.T).sum(), (X,), ["x1"]),
    "sums of products": (lambda x: (x @ x.T).sum(1), (X,), ["x1"]),
    "a mask of sums": (lambda x, m: np.where(m, x.sum(0), 0), (X, X > 0), ["x0", "m1", "m0"]),
    "a mask of what is summed": (lambda x: np.where(x > 0, x.sum(0), 0), (X,), ["x1"]),
    "the first running sum": (lambda x: np.cumsum(x, 1)[:, 0], (X,), ["x0"]),
    "by position": (lambda x, y: x[:, 0] + y[np.arange(x.shape[0])], (X, IDS), []),
    "divided by the size": (lambda x: x.sum(0) / x.shape[0], (X,), ["x1"]),
    "less than the mean": (lambda x: x - x.mean(0), (X,), ["x1"]),
    "any": (lambda x: (x > 2).any(0), (X,), ["x1"]),
    "positions": (lambda x: np.argmax(x, 0), (X,), ["x1"]),
    "turned": (lambda x: x.T, (X,), ["x0", "x1"]),
    "backwards": (lambda x: x[::-1], (X,), ["x1"]),
    "shifted": (lambda x: np.roll(x, 1, 0), (X,), ["x1"]),
    "differences": (lambda x: np.diff(x, axis=0), (X,), ["x1"]),
    "first rows": (lambda x: x[:2], (X,), ["x1"]),
    "twice": (lambda x: np.concatenate([x, x]), (X,), ["x1"]),
    "interleaved": (lambda x: np.repeat(x, 2, 0), (X,), ["x0", "x1"]),
    "padded": (lambda x: np.pad(x, ((0, 0), (1, 1))), (X,), ["x0"]),
    "triangle": (masked, (X,), []),
    "running sums": (lambda x: np.cumsum(x, 1), (X,), ["x0"]),
    "carried": (carried, (CUBE, filled((3, 5), "float64")), ["start0", "start1"]),
    "rows by number": (lambda ids, x: x[ids], (IDS, X), ["ids0", "x1"]),
    "broadcast": (lambda x, row: x + row, (CUBE, ROW), ["x0", "x1", "x2"]),
    "a column": (lambda x, y: x * y, (X, X[:, :1]), ["x0", "x1"]),
    "flattened": (lambda x: x.reshape(-1, 5), (CUBE,), ["x0"]),
    "of halves": (lambda x: x.reshape(2, -1, 4), (X,), []),
    "two results": (lambda x, w: (x @ w, w * 2), (X, W), ["x0", "x1", "w1"]),
    "softmax": (softmax, (X,), ["x0"]),
    "norm": (norm, (CUBE, ROW), ["x0", "x1"]),
    "attention": (attended, (X, X, X, X @ X.T > 0), ["mask0", "v1"]),
    "attention of heads": (
        attended, (CUBE, CUBE, CUBE, np.ones((3, 3), "bool")), ["q0", "mask0", "v2"],
    ),
}  # fmt: skip
ROUNDED = {"softmax", "norm", "attention", "attention of heads"}


@pytest.mark.parametrize("name", EXPECTED)
def test_what_may_be_split(name):
    function, arrays, wanted = EXPECTED[name]
    made = tile.function(function)
    roundings = 1e-12 if name in ROUNDED else 0
    assert check_rules(made, arrays, 2, roundings=roundings) == wanted


@pytest.mark.parametrize("machines", [3, 7])
@pytest.mark.parametrize("name", EXPECTED)
def test_pieces_of_any_size(name, machines):
    function, arrays, wanted = EXPECTED[name]
    roundings = 1e-12 if name in ROUNDED else 0
    assert set(check_rules(tile.function(function), arrays, machines, roundings=roundings)) <= set(
        wanted
    )


def test_pieces_of_one_element_and_of_none():
    def rules(function, *arrays, machines=6):
        return check_rules(tile.function(function), arrays, machines)

    rows = filled((3, 4), "float64")
    assert rules(lambda x, w: x @ w, rows, W) == ["x0", "x1", "w1"]  # of one element, and of none
    assert rules(lambda x: x.max(0), rows) == ["x1"]  # nothing has no maximum
    assert rules(lambda x: x.max(0), rows, machines=3) == ["x0", "x1"]
    assert rules(lambda x: x.sum(0) if x.shape[0] > 1 else x[0] * 2, rows, machines=2) == ["x1"]
    assert rules(lambda x: x * x.shape[0], rows[:1]) == ["x1"]  # one element cannot be split
    assert rules(lambda x: x + 1, rows[:, :0]) == ["x0"]


GRADIENTS = {
    "product": (("x", "w"), ["x0", "x1", "w1"]),
    "product and bias": (("x", "w", "b"), ["x0", "x1", "w1"]),
    "activated product": (("x", "w"), ["x0", "w1"]),
    "with itself": (("x",), ["x1"]),
    "sum of all": (("x",), ["x0", "x1"]),
    "broadcast": (("x", "row"), ["x0", "x1", "x2"]),
    "running sums": (("x",), ["x0"]),
    "carried": (("x", "start"), ["start0", "start1"]),
    "rows by number": (("x",), ["ids0", "x1"]),
    "flattened": (("x",), ["x0"]),
    "softmax": (("x",), ["x0"]),
    "norm": (("x", "weight"), ["x0", "x1"]),
    "attention": (("q", "k", "v"), ["mask0"]),
}


@pytest.mark.parametrize("name", GRADIENTS)
def test_gradients_have_rules_of_their_own(name):
    wrt, wanted = GRADIENTS[name]
    function, arrays, _ = EXPECTED[name]
    roundings = 1e-12 if name in ROUNDED else 0
    found = check_gradient_rules(tile.function(function), arrays, 2, wrt, roundings)
    assert found == wanted


def heads(*shape, seed=0):
    return filled(shape, "float32", seed)


LOGITS, TARGET = heads(4, 6), filled((4,), "int64", 1, 0, 6)
DEFINED = {
    "softmax": (nn.softmax, (heads(4, 6),), {}, ["x0"]),
    "log_softmax": (nn.log_softmax, (heads(4, 6),), {}, ["x0"]),
    "logsumexp": (nn.logsumexp, (heads(4, 6),), {}, ["x0"]),
    "rms_norm": (nn.rms_norm, (heads(2, 4, 6), heads(6)), {}, ["x0", "x1"]),
    "layer_norm": (nn.layer_norm, (heads(2, 4, 6), heads(6), heads(6)), {}, ["x0", "x1"]),
    "silu": (nn.silu, (heads(4, 6),), {}, ["x0", "x1"]),
    "gelu": (nn.gelu, (heads(4, 6),), {}, ["x0", "x1"]),
    "attention": (
        nn.attention, (heads(2, 2, 4, 6), heads(2, 2, 8, 6, seed=1), heads(2, 2, 8, 6, seed=2)),
        {}, ["q0", "q1", "q2", "v3"],
    ),
    "causal attention": (
        nn.attention, (heads(2, 2, 8, 6), heads(2, 2, 8, 6, seed=1), heads(2, 2, 8, 6, seed=2)),
        {"causal": True}, ["q0", "q1", "v3"],
    ),
    "losses": (nn.cross_entropy, (LOGITS, TARGET), {}, ["target0"]),
}  # fmt: skip


@pytest.mark.parametrize("name", DEFINED)
def test_definitions(name):
    function, arrays, settings, wanted = DEFINED[name]
    assert check_rules(function, arrays, 2, roundings=1e-6, **settings) == wanted


def test_a_mesh_of_two_dimensions():
    @tile.function
    def squares(x):
        return x * x if x.shape[0] * x.shape[1] > 8 else x

    x = filled((8, 8), "float64")
    assert [rule.dimension for rule in squares.sharding(x, machines=4).rules] == ["x0", "x1"]
    found = squares.sharding(x, machines=(2, 2))
    assert [rule.dimension for rule in found.rules] == ["x0"]
    assert found.whole == {"x1": "pieces along x0 split it otherwise"}


def test_a_wrong_rule_is_found():
    """What these tests compare with tells rules apart."""
    wrong = {
        "product": Rule("x1", {"x": 1}, ("sum",)),
        "product and bias": Rule("x1", {"x": 1, "w": 0}, ("sum",)),
        "mean": Rule("x0", {"x": 0}, ("sum",)),
        "running sums": Rule("x1", {"x": 1}, (1,)),
        "triangle": Rule("x0", {"x": 0}, (0,)),
        "two results": Rule("w1", {"w": 1}, (1, None)),
        "with itself": Rule("x0", {"x": 0}, (0,)),
        "backwards": Rule("x0", {"x": 0}, (0,)),
    }
    for name, rule in wrong.items():
        function, arrays, _ = EXPECTED[name]
        made = tile.function(function)

        def run(named, made=made):
            found = made.interpret(**named)
            return [*found] if isinstance(found, tuple) else [found]

        with pytest.raises((AssertionError, ValueError, TileError)):
            assert_holds(run, rule, made._bound(arrays, {})[0], 2)


def test_sizes_of_pieces():
    assert pieces_of(6, [2]) == {3}
    assert pieces_of(7, [2]) == {4, 3}
    assert pieces_of(5, [4]) == {2, 1, 0}
    assert pieces_of(8, [2, 2]) == {4, 2}


def test_told():
    product = Function(lambda x, w: (x @ w).clip(0))
    assert str(product.sharding(X, W)) == (
        "x0: split x.shape[0] -> split in dimension 0\n"
        "w1: split w.shape[1] -> split in dimension 1\n"
        "x1: whole: the sum of all pieces is needed before maximum is computed"
    )
