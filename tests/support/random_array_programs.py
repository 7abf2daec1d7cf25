"""Random compositions of NumPy's functions."""

from __future__ import annotations

import numpy as np
from hypothesis import strategies as st

from support.captured_arrays import filled
from tile_api.arrays.capturing.array import Array
from tile_api.arrays.capturing.capture import inside

DTYPES = ["bool", "int8", "uint8", "int32", "int64", "float64"]
SIZES = st.sampled_from([0, 1, 2, 3, 5, 7])
SHAPES = st.lists(SIZES, min_size=1, max_size=3).map(tuple)


def bounded(x):
    """Keep whole numbers so small that no step rounds."""
    return np.clip(x, -9, 9) if x.dtype in ("float64", "float32") else x


PAIRS = [
    lambda x, y: x + y, lambda x, y: bounded(x) * bounded(y), lambda x, y: np.maximum(x, y),
    lambda x, y: x == y, lambda x, y: x <= y, lambda x, y: np.where(x > y, x, y),
    lambda x, y: np.where(y > 1, 0, x), lambda x, y: np.minimum(x, y[..., ::-1]),
    lambda x, y: np.logical_xor(x, y),
]  # fmt: skip
ALONE = [
    lambda x: x.T, lambda x: x[..., ::-1], lambda x: x[::2], lambda x: x[1:], lambda x: x[:, None],
    lambda x: x[None], lambda x: x.reshape(-1), lambda x: np.abs(x), lambda x: x + 1,
    lambda x: 2 * x, lambda x: np.concatenate([x, x[:1], x]), lambda x: np.stack([x, x], -1),
    lambda x: np.roll(x, 2, -1), lambda x: np.tril(x, 1), lambda x: np.pad(x, (1, 2)),
    lambda x: np.repeat(x, 2, 0), lambda x: np.tile(x, 2), lambda x: np.flip(x),
    lambda x: np.sign(x.astype("int32")), lambda x: x // 3, lambda x: x % 4,
    lambda x: bounded(x) ** 3, lambda x: x.astype("float64"), lambda x: x != 0,
    lambda x: np.expand_dims(x, -1), lambda x: np.moveaxis(x, 0, -1), lambda x: np.diag(x),
    lambda x: x[np.arange(len(x)) // 2], lambda x: x * (np.arange(x.shape[-1]) % 3),
    lambda x: np.take(x, x.astype("int64") % max(1, x.shape[0]), axis=0),
    lambda x: bounded(x) @ bounded(x), lambda x: np.diff(x), lambda x: np.trace(x),
    lambda x: bounded(x) @ np.swapaxes(bounded(x), -1, -2),
]  # fmt: skip
FOLDS = [
    lambda x, k: x.sum(k), lambda x, k: x.max(k), lambda x, k: x.min(k, keepdims=True),
    lambda x, k: np.any(x, axis=k), lambda x, k: np.all(x, k, keepdims=True),
    lambda x, k: np.argmax(x, axis=k), lambda x, k: np.argmin(x, k), lambda x, k: np.ptp(x, axis=k),
    lambda x, k: np.count_nonzero(x, axis=k), lambda x, k: np.sum(x, k, where=x > 0, keepdims=True),
]  # fmt: skip


@st.composite
def programs(draw, types=DTYPES):
    """Return arrays and up to eight steps that NumPy takes: functions and their operands."""
    dtypes = draw(st.tuples(st.sampled_from(types), st.sampled_from(types)))
    first = draw(SHAPES)
    second = draw(st.sampled_from([first, first[-1:], (1,) * len(first)]))
    arrays = [filled(first, dtypes[0], 0), filled(second, dtypes[1], 1)]
    values, steps = list(arrays), []
    for _ in range(draw(st.integers(1, 8))):
        kind = draw(st.sampled_from([PAIRS, ALONE, ALONE, FOLDS]))
        function = draw(st.sampled_from(kind))
        last = st.integers(max(0, len(values) - 3), len(values) - 1)
        operands = [draw(last) for _ in range(2 if kind is PAIRS else 1)]
        if kind is not PAIRS and not values[operands[0]].ndim:
            continue  # NumPy alone finds an axis there
        extra = (draw(st.integers(-1, 1)),) if kind is FOLDS else ()
        try:
            with np.errstate(all="ignore"):
                made = function(*(values[k] for k in operands), *extra)
        except (TypeError, ValueError, IndexError, OverflowError):
            continue  # NumPy refuses it
        if made.size > 3000 or made.ndim > 5:
            continue
        values.append(np.asarray(made))
        steps.append((function, operands, extra))
    return arrays, steps


def composed(steps):
    """Return steps as one function."""

    def run(x, y):
        values = [x, y]
        for function, operands, extra in steps:
            if isinstance(x, Array):  # a function in a list is out of sight of the capture
                function = inside(function)
            values.append(function(*(values[k] for k in operands), *extra))
        return values[-1]

    return run
