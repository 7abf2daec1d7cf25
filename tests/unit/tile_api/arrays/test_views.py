"""Views, joins and parts of arrays against NumPy, and what stands in brackets."""

from __future__ import annotations

import numpy as np
import pytest

from support.captured_arrays import assert_agrees, filled, outputs
from tile_api.arrays.capturing import indexing, joins, numpy_names, views

X = filled((2, 3, 5), "int32", 1, -99, 99)
Y = filled((2, 3, 7), "int8", 2, -99, 99)
M = filled((4, 7), "float32", 3, -99, 99)
V = filled((7,), "float16", 4)
ONES = filled((1, 3, 1), "uint8", 5)
NONE = filled((0, 3), "float32")
PICK = np.array([[1, -1, 0], [2, -3, 1]])

WINDOWS = np.lib.stride_tricks.sliding_window_view
CASES = {
    "transpose": [
        (lambda x: np.transpose(x), X), (lambda x: x.T, X), (lambda x: x.transpose(1, 0, 2), X),
        (lambda x: np.transpose(x, (-1, 0, 1)), X), (lambda x: x.transpose((2, 1, 0)), X),
        (lambda x: x.mT, X), (lambda x: x.transpose(), M), (lambda x: x.T, NONE),
    ],
    "permute_dims": [(lambda x: np.permute_dims(x, (1, 2, 0)), X)],
    "matrix_transpose": [(lambda x: np.matrix_transpose(x), X)],
    "swapaxes": [(lambda x: np.swapaxes(x, 0, -1), X), (lambda x: x.swapaxes(1, 2), X)],
    "moveaxis": [
        (lambda x: np.moveaxis(x, 0, -1), X), (lambda x: np.moveaxis(x, (0, -1), (1, 0)), X),
        (lambda x: np.moveaxis(x, [2], [0]), X),
    ],
    "reshape": [
        (lambda x: np.reshape(x, (3, 10)), X), (lambda x: x.reshape(-1), X),
        (lambda x: x.reshape(6, 5), X), (lambda x: x.reshape((5, -1, 2)), X),
        (lambda x: x.reshape(1, 2, 1, 15, 1), X), (lambda x: x.reshape(2, 14), M),
        (lambda x: x.reshape(7, 4).T.reshape(2, 2, 7), M), (lambda x: x.reshape(0, 5), NONE),
        (lambda x: x.reshape(5, 0, 2), NONE), (lambda x: x.reshape(3), ONES),
        (lambda x: x.reshape(np.int64(6), 5), X), (lambda x: x[0, 0, :1].reshape(()), X),
        (lambda x: x.reshape(x.shape[0] * x.shape[1], x.shape[2]), X),
    ],
    "ravel": [(lambda x: np.ravel(x), X), (lambda x: x.ravel(), ONES), (lambda x: x.flatten(), X)],
    "expand_dims": [
        (lambda x: np.expand_dims(x, 0), X), (lambda x: np.expand_dims(x, (-1, 1)), M),
    ],
    "squeeze": [
        (lambda x: np.squeeze(x), ONES), (lambda x: np.squeeze(x, 0), ONES),
        (lambda x: x.squeeze((0, -1)), ONES),
    ],
    "broadcast_to": [
        (lambda x: np.broadcast_to(x, (2, 3, 4)), ONES), (lambda x: np.broadcast_to(x, (5, 7)), V),
        (lambda x: np.broadcast_to(x, 7), V),
    ],
    "repeat": [
        (lambda x: np.repeat(x, 2, axis=1), X), (lambda x: x.repeat(3), M),
        (lambda x: np.repeat(x, 0, 0), M), (lambda x: np.repeat(x, 2, -1), ONES),
    ],
    "tile": [
        (lambda x: np.tile(x, 2), V), (lambda x: np.tile(x, (2, 1, 3)), M),
        (lambda x: np.tile(x, (3,)), X), (lambda x: np.tile(x, (2, 2)), ONES),
    ],
    "flip": [
        (lambda x: np.flip(x), X), (lambda x: np.flip(x, 1), X), (lambda x: np.flip(x, (0, -1)), X),
        (lambda x: np.flip(x), ONES),
    ],
    "flipud": [(lambda x: np.flipud(x), M)],
    "fliplr": [(lambda x: np.fliplr(x), M)],
    "rot90": [
        (lambda x: np.rot90(x), M), (lambda x: np.rot90(x, 2), M), (lambda x: np.rot90(x, -1), M),
        (lambda x: np.rot90(x, 3, (1, 2)), X), (lambda x: np.rot90(x, 4), M),
    ],
    "resize": [
        (lambda x: np.resize(x, (4, 7)), X), (lambda x: np.resize(x, 5), M),
        (lambda x: np.resize(x, (2, 3)), NONE), (lambda x: np.resize(x, ()), M),
        (lambda x: np.resize(x, (2, 0)), M), (lambda x: np.resize(x[0, 0], (2, 2)), M),
        (lambda x: np.resize(x, x.shape), M),
    ],
    "roll": [
        (lambda x: np.roll(x, 2, 1), X), (lambda x: np.roll(x, -3, -1), X),
        (lambda x: np.roll(x, 4), X), (lambda x: np.roll(x, (1, 2), (0, 2)), X),
        (lambda x: np.roll(x, 9, 0), NONE), (lambda x: np.roll(x, 1, (0, 1)), M),
    ],
    "concatenate": [
        (lambda x, y: np.concatenate([x, y], axis=2), X, Y),
        (lambda x, y: np.concatenate((x, y), -1), X, Y),
        (lambda x, y: np.concatenate([x, y, x], axis=None), X, Y),
        (lambda x: np.concatenate([x, x + 1, x * 2]), V),
        (lambda x: np.concatenate([x, np.zeros((2, 3)), x]), NONE),
        (lambda x: np.concatenate([x, np.arange(2.0)]), V),
    ],
    "concat": [(lambda x, y: np.concat([x, y], axis=2), X, Y)],
    "block": [
        (lambda x: np.block([[x, 2 * x], [np.zeros((1, x.shape[1])), x[:1]]]), M),
        (lambda x: np.block([x, x[:, :1]]), M), (lambda x: np.block([[x[0]], [x[1]]]), M),
    ],
    "append": [(lambda x, y: np.append(x, y), X, Y), (lambda x: np.append(x, x, 0), M)],
    "stack": [
        (lambda x: np.stack([x, x * 2]), M), (lambda x: np.stack([x, x * 2, x], axis=-1), M),
        (lambda x: np.stack([x, x], 1), V), (lambda x: np.stack([x[0], x[1]]), V),
    ],
    "unstack": [(lambda x: np.unstack(x), X), (lambda x: np.unstack(x, axis=1), X)],
    "split": [
        (lambda x: np.split(x, 3, axis=1), X), (lambda x: np.split(x, [2, 5]), V),
        (lambda x: np.split(x, [1, 9], 0), M), (lambda x: np.split(x, 5, -1), X),
    ],
    "array_split": [(lambda x: np.array_split(x, 3), V), (lambda x: np.array_split(x, 2, 1), M)],
    "hsplit": [(lambda x: np.hsplit(x, [2]), M), (lambda x: np.hsplit(x, 7), V)],
    "vsplit": [(lambda x: np.vsplit(x, 2), M)],
    "atleast_1d": [(lambda x: np.atleast_1d(x), V), (lambda x: np.atleast_1d(x[0]), V)],
    "atleast_2d": [(lambda x: np.atleast_2d(x), V), (lambda x: np.atleast_2d(x), X)],
    "atleast_3d": [
        (lambda x: np.atleast_3d(x), V), (lambda x: np.atleast_3d(x), M),
        (lambda x: np.atleast_3d(x[0]), V),
    ],
    "vstack": [(lambda x: np.vstack([x, x + 1]), V), (lambda x: np.vstack((x, x)), M)],
    "hstack": [(lambda x: np.hstack([x, x + 1]), V), (lambda x: np.hstack((x, x)), M)],
    "dstack": [(lambda x: np.dstack([x, x + 1]), V), (lambda x: np.dstack((x, x)), M)],
    "column_stack": [(lambda x: np.column_stack([x, x + 1]), V)],
    "diagonal": [
        (lambda x: np.diagonal(x), M), (lambda x: x.diagonal(2), M),
        (lambda x: np.diagonal(x, -1, 1, 2), X), (lambda x: np.diagonal(x, 9), M),
    ],
    "diag": [
        (lambda x: np.diag(x), V), (lambda x: np.diag(x, 2), V), (lambda x: np.diag(x, -1), V),
        (lambda x: np.diag(x, 1), M), (lambda x: np.diag(x[:1], 1), V),
    ],
    "diff": [
        (lambda x: np.diff(x), V), (lambda x: np.diff(x, 2, 0), M), (lambda x: np.diff(x > 0), M),
        (lambda x: np.diff(x, axis=1), ONES),
    ],
    "pad": [
        (lambda x: np.pad(x, 2), V), (lambda x: np.pad(x, ((1, 0), (0, 3))), M),
        (lambda x: np.pad(x, 1, constant_values=7), X), (lambda x: np.pad(x, (2, 1)), ONES),
        (lambda x: np.pad(x, (1, 2), "edge"), M), (lambda x: np.pad(x, (4, 2), mode="reflect"), V),
        (lambda x: np.pad(x, 3, "symmetric"), M), (lambda x: np.pad(x, 9, mode="wrap"), V),
        (lambda x: np.pad(x, 15, mode="reflect"), V), (lambda x: np.pad(x, 1, "reflect"), ONES),
        (lambda x: np.pad(x, 1, constant_values=((1, 2), (3, 4))), M),
    ],
    "take": [
        (lambda x, i: np.take(x, i), M, PICK), (lambda x, i: np.take(x, i, axis=1), X, PICK),
        (lambda x, i: x.take(i, -1), M, PICK), (lambda x: np.take(x, 2, 0), M),
        (lambda x: np.take(x, np.arange(3), axis=1), M),
        (lambda x, i: np.take(x, i * 9, mode="clip"), M, PICK),
        (lambda x, i: np.take(x, i * 9, 1, mode="wrap"), M, PICK),
    ],
    "ix_": [
        (lambda x, i: x[np.ix_(i[0] % 2, i[1])], M, PICK),
        (lambda x: x[np.ix_(np.arange(2), np.arange(3)[::-1])], M),
    ],
    "select": [
        (lambda x: np.select([x > 3, x > 1], [x, -x], default=7), M),
        (lambda x: np.select([x > 3], [x]), M),
    ],
    "sliding_window_view": [
        (lambda x: WINDOWS(x, 3), V), (lambda x: WINDOWS(x, (2, 3)), M),
        (lambda x: WINDOWS(x, 2, axis=1), X), (lambda x: WINDOWS(x, (1, 2), (-1, 0)), M),
        (lambda x: WINDOWS(x, (2, 2), axis=(1, 1)).sum(axis=-1), M),
    ],
    "take_along_axis": [
        (lambda x, i: np.take_along_axis(x, i, 1), M[:2], PICK),
        (lambda x, i: np.take_along_axis(x, i, axis=0), M[:, :3], PICK),
        (lambda x: np.take_along_axis(x, np.argmax(x, axis=1, keepdims=True), axis=1), M),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_function(name):
    for function, *arrays in CASES[name]:
        assert_agrees(function, *arrays, exact=True)


def test_every_view_is_met():
    rooms = {views.__name__, joins.__name__, indexing.__name__}
    names = {name for name, f in numpy_names.FUNCTIONS.items() if f.__module__ in rooms}
    assert names - {"choose"} <= set(CASES)  # that is met with arrays of indices


I = np.array([2, 0, -1])
J = np.array([[1], [-2]], "int8")
BRACKETS = [
    lambda x, i, j: x[0], lambda x, i, j: x[-1, 2], lambda x, i, j: x[...],
    lambda x, i, j: x[..., 1], lambda x, i, j: x[:, None, 1], lambda x, i, j: x[None, ..., None],
    lambda x, i, j: x[()], lambda x, i, j: x[1:, ::2], lambda x, i, j: x[::-1, -2:, 3:0:-1],
    lambda x, i, j: x[:, 5:], lambda x, i, j: x[:, -9:9:2], lambda x, i, j: x[:, :-1, 4::-3],
    lambda x, i, j: x[:, i], lambda x, i, j: x[..., i], lambda x, i, j: x[j],
    lambda x, i, j: x[:, i, ::2], lambda x, i, j: x[i % 2, :, 1], lambda x, i, j: x[0, :, i],
    lambda x, i, j: x[:, i, j], lambda x, i, j: x[j, :, i], lambda x, i, j: x[:, 1, i],
    lambda x, i, j: x[j, i, i], lambda x, i, j: x[None, :, i, j], lambda x, i, j: x[:, None, i],
    lambda x, i, j: x[i % 2, None, :, j], lambda x, i, j: x[:, np.arange(3)[::-1]],
    lambda x, i, j: x[[1, 0]], lambda x, i, j: x[np.array(1)], lambda x, i, j: x[:, [-1, 0]],
    lambda x, i, j: x[1][2][3], lambda x, i, j: x.T[1:3].T[::-1], lambda x, i, j: x[i[0]],
    lambda x, i, j: [row for row in x], lambda x, i, j: x[:, :0],
]  # fmt: skip


@pytest.mark.parametrize("place", range(len(BRACKETS)))
def test_brackets(place):
    x = filled((2, 3, 5), "float32", 6, -99, 99)
    i = I[1:] if place in (24, 16) else I
    assert_agrees(
        BRACKETS[place], x, np.where(i == 2, 1, i), J % 2 if place == 14 else J, exact=True
    )


REFUSED = [
    lambda x: x[3], lambda x: x[0, 0, 0], lambda x: x[..., 0, ...],
    lambda x: x["a"], lambda x: x[1.0], lambda x: np.transpose(x, (0, 0)), lambda x: x.reshape(5),
    lambda x: x.reshape(-1, -1, 3), lambda x: x.reshape(-2, -3), lambda x: np.squeeze(x, 0),
    lambda x: np.swapaxes(x, 0, 2), lambda x: np.broadcast_to(x, (3, 2)),
    lambda x: np.concatenate([x, x[0]]), lambda x: np.concatenate([x, x[:, :2]]),
    lambda x: np.split(x, 2, 1), lambda x: np.repeat(x, -1),
    lambda x: np.take(x, 9), lambda x: len(x[0, 0]), lambda x: x + x[:, :2],
    lambda x: np.diag(x[None]), lambda x: np.select([x > 0], []),
    lambda x: np.take(x, 0, mode="raises"), lambda x: WINDOWS(x, 4, 1), lambda x: WINDOWS(x, 2),
    lambda x: [k for k in x[0, 0]],
]  # fmt: skip


@pytest.mark.parametrize("function", REFUSED)
def test_what_does_not_fit_is_refused(function):
    x = filled((2, 3), "float32")
    with pytest.raises((ValueError, IndexError, TypeError)):
        function(x)
    with pytest.raises(ValueError, match=r"TL120[45]"):
        outputs(function, x)


def test_a_truth_value_in_brackets_is_refused():
    with pytest.raises(ValueError, match="TL1204"):
        outputs(lambda x: x[True], filled((2, 3), "float32"))
