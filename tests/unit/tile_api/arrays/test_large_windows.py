"""Windows of more elements than are written out: their rows are added one after the other."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import torch.nn.functional as F

import tile_api as tile
from tile_api.arrays.function import Function
from tile_api.torch_compile.layouts import memory_order

RANDOM = np.random.default_rng(0)


def whole(*shape: int) -> np.ndarray:
    """Return small whole numbers, whose sums are exact in any order."""
    return RANDOM.integers(-3, 4, shape).astype("float32")


def windows(x, *sizes):
    axes = tuple(range(x.ndim - len(sizes), x.ndim))
    return np.lib.stride_tricks.sliding_window_view(x, sizes, axis=axes)


def filtered(x, w):
    """Return each channel filtered by its own taps."""
    taps = w.ndim - 1
    x = np.pad(x, [(0, 0)] + [(n // 2, n // 2) for n in w.shape[1:]])
    places = tuple(range(-taps, 0))
    own = w.reshape(w.shape[0], *(1,) * taps, *w.shape[1:])
    return np.sum(windows(x, *w.shape[1:]) * own, axis=places)


def last_channels(x, w):
    """Return channels that lie side by side, each filtered by its own taps."""
    k = w.shape[0]
    x = np.pad(x, ((k // 2, k // 2), (k // 2, k // 2), (0, 0)))
    taken = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(0, 1))
    return np.einsum("hwcij,ijc->hwc", taken, w)


def mean_of_each(x):
    return np.mean(windows(x, 6, 6), axis=(-1, -2))


def largest_of_each(x):
    return np.max(windows(x, 7, 5), axis=(-1, -2))


def moving_sum(x):
    return np.sum(windows(x, 31), axis=-1)


CASES = {
    "planes": (filtered, ((3, 9, 13), (3, 7, 7)), 7),
    "a tall window": (filtered, ((2, 23, 10), (2, 9, 3)), 9),
    "a volume": (filtered, ((2, 4, 5, 9), (2, 3, 3, 3)), 3),
    "channels side by side": (last_channels, ((9, 8, 17), (7, 7, 17)), 7),
    "means": (mean_of_each, ((3, 11, 13),), 6),
    "maxima": (largest_of_each, ((2, 11, 13),), 7),
    "one dimension": (moving_sum, ((3, 77),), 31),
}


@pytest.mark.in_turn(4)
@pytest.mark.parametrize("target", ["cpu", "interpret", "cuda:sm_80@sim"])
@pytest.mark.parametrize("case", CASES)
def test_rows_of_windows_are_added_one_after_the_other(case: str, target: str) -> None:
    function, shapes, steps = CASES[case]
    made = Function(function, target=target)
    arrays = [whole(*shape) for shape in shapes]
    assert f"for ko in T.serial({steps}):" in made.source(*arrays)
    found, wanted = made(*arrays), function(*arrays)
    if case == "means":
        np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-6)
    else:
        np.testing.assert_array_equal(found, wanted)


def test_few_results_of_many_elements_are_no_windows() -> None:
    """They are along rows of the elements, which are many: each is a reduction of its own."""

    def correlation(x):
        return np.sum(windows(x, 1000) * x[:1000], axis=-1)

    x = whole(1008)
    found = Function(correlation, target="cpu")
    assert "for ko in T.serial(1000)" not in found.source(x)
    np.testing.assert_array_equal(found(x), correlation(x))


def test_gradients_of_filters_of_single_channels() -> None:
    x, w = whole(3, 9, 13), whole(3, 7, 7)

    def both(x, w, by):
        _, pull = tile.function(filtered, target="cpu").vjp(x, w)
        return pull(by)

    given = [torch.from_numpy(a).requires_grad_() for a in (x, w)]
    y = F.conv2d(given[0][None], given[1][:, None], padding=3, groups=3)[0]
    by = whole(*y.shape)
    y.backward(torch.from_numpy(by))
    for found, right in zip(tile.function(both, target="cpu")(x, w, by), given, strict=True):
        np.testing.assert_array_equal(found, right.grad.numpy())


@pytest.mark.in_turn(2)
@pytest.mark.parametrize("taps", [3, 7])
def test_filters_lie_as_channels_that_are_neighbours_do(taps: int) -> None:
    """In `torch.compile`: results, and how they lie, are those of eager mode."""
    from tile_api.torch_compile import strides

    x = torch.from_numpy(whole(1, 12, 9, 9)).to(memory_format=torch.channels_last)
    w, b = torch.from_numpy(whole(12, 1, taps, taps)), torch.from_numpy(whole(12))
    told = []
    lay_out = strides._lay_taps_out

    def noted(node, changed):
        lay_out(node, changed)
        told.append(memory_order(node.args[1].meta["val"]))

    def f(x, w, b):
        return F.relu(F.conv2d(x, w, b, padding=taps // 2, groups=12))

    torch._dynamo.reset()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(strides, "_lay_taps_out", noted)
        found = torch.compile(f, backend="tile")(x, w, b)
    wanted = f(x, w, b)
    assert told == [(1, 2, 3, 0)]
    assert torch.equal(found, wanted)
    assert found.stride() == wanted.stride()
